"""How far a run has come, and who is told."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epsgauge.games.signals import Outcome

if TYPE_CHECKING:
    from epsgauge.probing.result import Probe, Unprobed
    from epsgauge.runner.view import Run


@dataclass(frozen=True)
class Progress:
    """Models done and failed of all, how many this process has played, and the seconds since its first was done."""

    n_models: int
    n_done: int
    n_failed: int
    n_here: int = 0
    seconds: float = 0.0

    @property
    def n_left(self) -> int:
        return self.n_models - self.n_done - self.n_failed

    @property
    def rate(self) -> float | None:
        """Models per second of this process, without the time that its workers need to start."""
        return (self.n_here - 1) / self.seconds if self.n_here > 1 and self.seconds > 0 else None

    @property
    def seconds_left(self) -> float | None:
        return None if self.rate is None else self.n_left / self.rate


class Clock:
    """Seconds since it was first read: workers take a while to start, which says nothing about the rest."""

    def __init__(self) -> None:
        self._first: float | None = None

    def seconds(self) -> float:
        now = time.perf_counter()
        self._first = now if self._first is None else self._first
        return now - self._first


class Enough(Exception):
    """Raised by a watch that has seen what it waited for."""


class Watch:
    """Is told what happens in a run, in the process that called `run`. A subclass says what it cares about.

    An outcome is in the store before it is told, so whatever is raised here stops the run and loses nothing.
    """

    stop_when: str | None = None  # what it will stop the run for, by raising `Enough`; kept in the store

    def stage(self, name: str) -> None:
        """The run begins with "preparing" (code and data), "probing" (what the accountant assumes), "ranking"
        (worst-case points), "rehearsing" (models set apart) or "playing"."""

    def opened(self, run: Run) -> None:
        """The store is there, and nothing was played by this process: the moment to refuse."""

    def probed(self, probe: Probe | Unprobed) -> None:
        """What the accountant assumes was tested, before any model is trained."""

    def ranked_one(self, progress: Progress) -> None:
        """A ranking model is done; `progress` counts ranking models."""

    def rehearsed_one(self, progress: Progress) -> None:
        """A model of the rehearsal is done; `progress` counts those."""

    def started(self, run: Run, remaining: int) -> None:
        """So many models are about to be played; `run` is what the store holds at this moment."""

    def waiting(self) -> None:
        """No model has come for about a second."""

    def finished_one(self, outcome: Outcome, progress: Progress) -> None:
        """A model is done, or has failed and `outcome.error` says why."""
