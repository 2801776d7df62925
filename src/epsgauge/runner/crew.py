"""Crew: who plays the models of a plan, whatever they are: processes here, an executor of the user's, a cluster."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol, TypeVar, runtime_checkable

from epsgauge.runner.code import Sources
from epsgauge.runner.plan import Plan
from epsgauge.runner.same import Expected

T = TypeVar("T")
Batch = list[int]  # models that one call of a job trains


class JobLost(Exception):
    """The process that did a job is gone, and no other job is lost with it.

    `why` is a sentence where it is known; `vanished` says that its machine went with it, which may not be its fault.
    """

    def __init__(self, why: str | None = None, *, vanished: bool = False) -> None:
        super().__init__(why or "the process that did a job is gone")
        self.why, self.vanished = why, vanished


class Crew(Protocol):
    """Who plays the models of one plan. A job is a function of the plan and further arguments."""

    sources: Sources
    expected: Expected  # in every process that plays
    bundle: int | None  # models that are sent in one message; None: as many as take a moment

    @property
    def in_flight(self) -> int:
        """How many jobs to hand out at once."""
        ...

    def submit(self, job: Callable[..., list[T]], *args: Any, batches: list[Batch] | None = None) -> Future[list[T]]:
        """`job(plan, *args, batches)`, or without the last where there is none.

        It raises `BrokenExecutor` where all that is in flight is lost, and `JobLost` where it alone is.
        """
        ...

    def late(self) -> dict[tuple[int, ...], str]:
        """Which jobs of workers that died had taken too long, each with a sentence."""
        ...

    def replace(self, *, alone: bool) -> None:
        """Start again after a worker died, with one worker or with all."""

    def apart(self) -> Crew:
        """A process of its own for one job, which can leave nothing there for a model; to be left by itself."""
        ...

    def leave(self, *, at_once: bool) -> None:
        """Nothing more is to be done; `at_once` kills what is still at work."""


@runtime_checkable
class Cluster(Protocol):
    """What makes a crew of the workers of a cluster."""

    def crew(self, plan: Plan) -> Crew: ...
