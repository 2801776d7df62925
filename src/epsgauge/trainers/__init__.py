"""Data -> model -> losses."""
