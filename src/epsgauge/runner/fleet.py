"""Fleet: a crew of a cluster's workers. What all jobs share is sent once; a job is a few numbers."""

from __future__ import annotations

import pickle
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from epsgauge.errors import EpsgaugeError
from epsgauge.runner.code import Sources
from epsgauge.runner.crew import Batch, Crew, JobLost
from epsgauge.runner.parcel import packed
from epsgauge.runner.plan import Plan
from epsgauge.runner.same import Expected
from epsgauge.runner.site import Job, Reply

T = TypeVar("T")

REMEDY = "What is done is kept: start it again, and run the same command."


class Fleet(ABC):
    """What crews of all kinds of clusters have in common. A subclass sends jobs, and settles what comes back."""

    bundle: int | None = None

    def __init__(self, plan: Plan) -> None:
        self.sources = Sources(plan)
        self.expected = Expected(self.sources.code)
        self.run = uuid.uuid4().hex
        self.payload = packed(plan, self.sources)
        self._heads: dict[tuple[int, ...], tuple[str, tuple[Any, ...]]] = {}

    @property
    @abstractmethod
    def in_flight(self) -> int:
        """How many jobs to hand out at once."""

    @abstractmethod
    def publish(self, name: str, head: bytes) -> None:
        """Make what jobs of this name share known to all workers, each of which asks for it once."""

    @abstractmethod
    def send(self, job: Job, future: Future[Any]) -> None:
        """Have a job done, and `settle` the future with what comes of it."""

    @abstractmethod
    def leave(self, *, at_once: bool) -> None: ...

    def submit(self, job: Callable[..., list[T]], *args: Any, batches: list[Batch] | None = None) -> Future[list[T]]:
        return self._submit(job, args, batches, fresh=False)

    def _submit(
        self, job: Callable[..., list[T]], args: tuple[Any, ...], batches: list[Batch] | None, *, fresh: bool
    ) -> Future[list[T]]:
        import cloudpickle  # type: ignore[import-untyped]

        shared = (job, *args)
        key = tuple(map(id, shared))  # they are kept, so that no other object can have these numbers
        if key not in self._heads:
            name = f"{self.run}-{len(self._heads)}"
            self.publish(name, cloudpickle.dumps(shared))
            self._heads[key] = name, shared
        future: Future[list[T]] = Future()
        future.set_running_or_notify_cancel()
        self.send(Job(self.run, self._heads[key][0], batches, fresh), future)
        return future

    def settle(self, future: Future[Any], reply: Reply | Exception) -> None:
        """Let a future have what a worker replied, or why there is no reply; the first that comes counts."""
        if future.done():
            return
        if isinstance(reply, Exception):
            future.set_exception(reply)
        elif reply.done is not None:
            future.set_result(pickle.loads(reply.done))
        else:
            future.set_exception(reply.error or JobLost(reply.why))

    def fail(self, flying: dict[Any, Future[Any]], sentence: str) -> None:
        """Let all that is on its way end with a sentence: whoever hands out jobs is gone."""
        while flying:
            self.settle(flying.popitem()[1], EpsgaugeError(f"{sentence} {REMEDY}"))

    def late(self) -> dict[tuple[int, ...], str]:
        return {}

    def replace(self, *, alone: bool) -> None:
        raise EpsgaugeError("the cluster takes no more jobs. What is done is kept: run it again.")

    def apart(self) -> Crew:
        return _Apart(self)


class _Apart:
    """The same cluster, for a job that gets a process of its own."""

    bundle: int | None = 1

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.sources, self.expected = fleet.sources, fleet.expected
        self.late, self.replace = fleet.late, fleet.replace
        self.in_flight = 1

    def submit(self, job: Callable[..., list[T]], *args: Any, batches: list[Batch] | None = None) -> Future[list[T]]:
        return self._fleet._submit(job, args, batches, fresh=True)

    def apart(self) -> Crew:
        return self

    def leave(self, *, at_once: bool) -> None:
        """Its process has ended by itself."""
