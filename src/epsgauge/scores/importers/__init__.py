"""Scores as other tools write them, one file per tool, one table."""
