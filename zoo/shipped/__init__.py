"""Bugs that were shipped, each run on the wheel that has it, and a repaired twin of each."""
