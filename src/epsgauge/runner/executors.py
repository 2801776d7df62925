"""Where models are trained: worker processes that may die, this process, or an executor of the user's own."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, TypeVar
from weakref import WeakSet

from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.runner import worker
from epsgauge.runner.code import Sources
from epsgauge.runner.crew import Batch, Cluster, Crew
from epsgauge.runner.plan import Plan
from epsgauge.runner.pool import Pool
from epsgauge.runner.same import Expected

T = TypeVar("T")


class InProcess(Executor):
    """Runs each job in this process when it is submitted; for tests, debuggers and models that use all cores."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Workers:
    """Processes of our own on this machine."""

    bundle: int | None = 1

    def __init__(self, plan: Plan, count: int) -> None:
        self.sources = Sources(plan)
        self.expected = Expected(self.sources.code)
        self._plan, self._count = plan, count
        self._pool = Pool(pickled(plan), count, plan.execution.timeout)
        self.crashes, self.late, self.replace, self.leave = (
            self._pool.crashes,
            self._pool.late,
            self._pool.replace,
            self._pool.leave,
        )

    @property
    def in_flight(self) -> int:
        return 2 * self._count

    def submit(self, job: Callable[..., list[T]], *args: Any, batches: list[Batch] | None = None) -> Future[list[T]]:
        return self._pool.submit(worker.with_plan, job, *_with(args, batches))

    def apart(self) -> Crew:
        return Workers(self._plan, 1)


class Lent:
    """The user's executor, which is theirs to start and to stop."""

    bundle: int | None = 1

    def __init__(self, plan: Plan, executor: Executor, count: int | None) -> None:
        self.sources = Sources(plan)
        self.expected = Expected(self.sources.code)
        self._plan, self._executor = plan, executor
        self._jobs: WeakSet[Future[Any]] = WeakSet()
        workers = count or getattr(executor, "_max_workers", None) or os.cpu_count() or 1
        self.in_flight = 1 if isinstance(executor, InProcess) else 2 * workers

    def submit(self, job: Callable[..., list[T]], *args: Any, batches: list[Batch] | None = None) -> Future[list[T]]:
        future = self._executor.submit(job, self._plan, *_with(args, batches))
        self._jobs.add(future)
        return future

    def late(self) -> dict[tuple[int, ...], str]:
        return {}

    def replace(self, *, alone: bool) -> None:
        raise EpsgaugeError(
            f"the executor {type(self._executor).__name__} lost a worker and takes no more jobs. What is done is kept: "
            "run it again with a new executor, or without one, which survives such losses."
        )

    def apart(self) -> Crew:
        return Workers(self._plan, 1)

    def leave(self, *, at_once: bool) -> None:
        """It is not ours: only our jobs that have not begun are taken back."""
        if at_once:
            for job in self._jobs:
                job.cancel()


def _with(args: tuple[Any, ...], batches: list[Batch] | None) -> tuple[Any, ...]:
    return args if batches is None else (*args, batches)


def crew_for(plan: Plan, executor: Executor | Cluster | None, workers: int | None) -> Crew:
    """`executor` if there is one, else so many processes: `workers`, or what the plan says, or one for each core.

    A client of Dask is an executor too.
    """
    if workers is not None and (type(workers) is not int or workers < 1):
        raise InvalidInput(f"workers must be a whole number, 1 or more, but got {workers!r}.")
    if isinstance(executor, ThreadPoolExecutor):
        raise InvalidInput(
            "executor must not be a pool of threads: they would share the generators that are seeded for each model. "
            "Use processes, InProcess(), or none."
        )
    if is_of("distributed", executor):
        from epsgauge.runner.on_dask import Dask

        executor = Dask(executor)
    if is_of("submitit", executor):
        raise InvalidInput(
            "an executor of submitit must be given as eg.Submitit(executor, jobs=100, models_per_job=50): how many "
            "jobs may wait at a time, and how many models one job trains."
        )
    if isinstance(executor, Cluster):
        return executor.crew(plan)
    if executor is not None:
        if not callable(getattr(executor, "submit", None)):
            raise InvalidInput(
                "executor must be a concurrent.futures.Executor, a client of Dask, eg.Dask(...), eg.Ray(...), "
                f"eg.Submitit(...) or None, but got {type(executor).__name__}."
            )
        return Lent(plan, executor, workers)
    ignored = [name for name in ("cpus_per_model", "gpus_per_model") if getattr(plan.execution, name) is not None]
    if ignored:
        warnings.warn(f"execution.{ignored[0]} is for clusters, and ignored on one machine.", stacklevel=2)
    return Workers(plan, min(workers or worker_count(plan), plan.n_models))


def is_of(package: str, thing: Any) -> bool:
    """Whether it is an object of this package, which is not imported for that."""
    return any(kind.__module__.partition(".")[0] == package for kind in type(thing).__mro__)


def worker_count(plan: Plan) -> int:
    """As many as the plan says, or one for each core that this process may use."""
    import loky

    return plan.execution.workers or int(loky.cpu_count())


def pickled(plan: Plan) -> bytes:
    """The plan for another process, with what only this one can have."""
    import cloudpickle  # type: ignore[import-untyped]  # comes with loky; it can send what a notebook defined

    try:
        payload: bytes = cloudpickle.dumps(plan)
    except Exception as error:
        raise InvalidInput(
            f"data {plan.data.use} or trainer {plan.trainer.use} cannot be sent to a worker process "
            f'({type(error).__name__}: {error}). Name it as "module:attr", or use executor=InProcess().'
        ) from error
    return payload
