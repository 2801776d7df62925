"""Accounting, verdict, comparison of runs."""
