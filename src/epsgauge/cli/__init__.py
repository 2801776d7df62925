"""Thin commands over the library, one file per group."""
