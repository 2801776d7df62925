"""Canaries for one training: many records, of which fair coins decide which go in."""
