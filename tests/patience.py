"""Waits for what must happen, as long as a busy machine may need."""

import time

PATIENCE = 600.0  # seconds until something that must happen is taken to have failed


def until(happened, what):
    """Return once `happened()` is true."""
    deadline = time.monotonic() + PATIENCE
    while not happened():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{what}, but not within {PATIENCE:g} seconds")
        time.sleep(0.01)
