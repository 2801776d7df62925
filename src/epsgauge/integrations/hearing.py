"""Who hears of privacy assertions: pytest's plugin, which must load nothing else for tests that make none."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from epsgauge.integrations.assertion import Checked


@dataclass(frozen=True)
class Hearing:
    """Is told of every assertion, and knows the command that repeats it."""

    heard: Callable[[Checked], None]
    command: Callable[[Checked], str]
    models: int | None = None  # for each game, in the place of what its seconds allow
    folder: Callable[[], Path | None] = lambda: None  # where the run of the next game is kept


HEARING: ContextVar[Hearing | None] = ContextVar("epsgauge_hearing", default=None)
