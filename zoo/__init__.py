"""Broken pipelines with their repaired twins, and who finds which."""
