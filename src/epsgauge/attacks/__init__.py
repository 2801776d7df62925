"""Signals -> scores, one attack per file."""
