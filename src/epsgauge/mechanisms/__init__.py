"""Randomised functions whose ε is known."""
