"""What trainers have started outside their process, and how it is ended before that process ends abruptly."""

from __future__ import annotations

from collections.abc import Callable

_endings: list[Callable[[], None]] = []


def before_abrupt_end(ending: Callable[[], None]) -> Callable[[], None]:
    """Register a function, as a decorator: a worker whose parent is gone calls it and runs no `finally` blocks."""
    _endings.append(ending)
    return ending


def end_all() -> None:
    for ending in _endings:
        ending()
