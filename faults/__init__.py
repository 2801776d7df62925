"""Faults that are done to runs and files on purpose, and what comes of them."""
