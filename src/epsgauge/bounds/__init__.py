"""Bounds with a proof, each for what it is given: counts, guesses, scores or models."""
