"""Thin commands over the library, one file a group."""
