"""Points, always handled by index."""
