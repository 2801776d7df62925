"""How our own processes start: without the current folder on Python's path."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def safe_path() -> Iterator[None]:
    """Processes started meanwhile import nothing from the folder in which they start, whatever their command is."""
    before = os.environ.get(SAFE_PATH)
    os.environ[SAFE_PATH] = "1"
    try:
        yield
    finally:
        restore_path(before)


def restore_path(before: str | None) -> None:
    """Set the variable to what it was: programs that the user starts have their own folder on their path."""
    if before is None:
        os.environ.pop(SAFE_PATH, None)
    else:
        os.environ[SAFE_PATH] = before


def python_words(function: str, *arguments: str) -> list[str]:
    """The command of a child that calls `module:function` with these texts.

    It searches where this process does, and the current folder last, if at all.
    """
    module, _, name = function.partition(":")
    places = [*filter(None, sys.path), *([os.getcwd()] if "" in sys.path else [])]
    begins = (
        f"import json, sys; sys.path[:] = json.loads(sys.argv[1]); from {module} import {name}; {name}(*sys.argv[2:])"
    )
    return [sys.executable, "-P", "-c", begins, json.dumps(places), *arguments]
