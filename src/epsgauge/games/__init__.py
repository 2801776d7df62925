"""Seeds, challenge points, bits, one experiment -> signals."""
