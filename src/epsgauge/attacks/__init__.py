"""Signals -> scores, one attack a file."""
