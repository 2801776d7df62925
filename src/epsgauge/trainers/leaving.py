"""Which process trainers run in, what they have started outside it, and how that is ended before an abrupt end."""

from __future__ import annotations

import os
from collections.abc import Callable

from epsgauge.trainers.reaper import BETWEEN, MARK

# Whether this is a worker process of a run: Ctrl-C is for the one that started it, and is ignored here.
in_worker = False
_endings: list[Callable[[], None]] = []


def before_abrupt_end(ending: Callable[[], None]) -> Callable[[], None]:
    """Register a function, as a decorator: a worker whose parent is gone calls it and runs no `finally` blocks."""
    _endings.append(ending)
    return ending


def end_all() -> None:
    for ending in _endings:
        ending()


def is_users_own(error: BaseException) -> bool:
    """Whether it is the user who interrupts, and not a training that raised what an interrupt raises."""
    return isinstance(error, KeyboardInterrupt) and not in_worker


def scratch() -> str | None:
    """A folder that is removed with the run that this process works for; None where it works for none."""
    folder = os.environ.get(MARK, "").rpartition(BETWEEN)[2]
    return folder if folder and os.path.isdir(folder) else None
