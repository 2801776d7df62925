"""Where models are trained: worker processes that may die, this process, or an executor of the user's own."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from functools import cache
from typing import Any, Protocol, TypeVar
from weakref import WeakSet

from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.runner.code import Sources
from epsgauge.runner.limit import late
from epsgauge.runner.plan import Plan
from epsgauge.runner.same import Expected, checked, nothing
from epsgauge.runner.scratch import Scratch
from epsgauge.trainers import leaving

T = TypeVar("T")

# One thread per worker: the work is parallel by process. Set before a worker imports anything.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
# With psutil, loky replaces a worker that has grown by so many bytes, by default 3e8: that would be after every model,
# where networks are trained.
ANY_GROWTH = {"LOKY_MAX_MEMORY_LEAK_SIZE": "1e18"}
DIED_TWICE = "its worker process died twice (killed, out of memory or crashed)"
_DEATHS = 2  # of a worker that trains one model and nothing else
_LOST_IN_A_ROW = 8  # models, after which no other is expected to fare better
_POLL_SECONDS = 1.0  # how often code is looked at while nothing comes
_LEAVING_SECONDS = 5.0  # in which workers that have nothing more to do must end
_ORPHAN_SECONDS = 0.25  # how often a worker looks whether the process that started it is still there


class InProcess(Executor):
    """Runs each job in this process when it is submitted; for tests, debuggers and models that use all cores."""

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Crew(Protocol):
    """Who plays the models of one plan. A job is a function of the plan, further arguments and a list of indices."""

    sources: Sources
    expected: Expected  # in every process that plays

    @property
    def in_flight(self) -> int:
        """How many jobs to hand out at once."""
        ...

    def submit(self, job: Callable[..., list[T]], *args: Any) -> Future[list[T]]: ...

    def late(self) -> dict[tuple[int, ...], str]:
        """Which jobs of workers that died had taken too long, each with a sentence."""
        ...

    def replace(self, *, alone: bool) -> None:
        """Start again after a worker died, with one worker or with all."""

    def leave(self, *, at_once: bool) -> None:
        """Nothing more is to be done; `at_once` kills what is still at work."""


class Workers:
    """Processes of our own, made by loky when the first job comes. Each gets the plan once, whatever is in it."""

    def __init__(self, plan: Plan, count: int) -> None:
        self.sources = Sources(plan)
        self.expected = Expected(self.sources.code)
        self._payload = _pickled(plan)
        self._count = self._wanted = count
        self._timeout = plan.execution.timeout
        self._pool: Any = None
        self._scratch: Scratch | None = None

    @property
    def in_flight(self) -> int:
        return 2 * self._count

    def submit(self, job: Callable[..., list[T]], *args: Any) -> Future[list[T]]:
        if self._pool is None:
            from loky import ProcessPoolExecutor

            self._scratch = self._scratch or Scratch()
            environment = ONE_THREAD | ANY_GROWTH | self._scratch.environment
            self._pool = ProcessPoolExecutor(
                self._wanted, initializer=_begin, initargs=(self._payload, os.getpid()), env=environment
            )
        # Workers start here and inherit what is blocked: Ctrl-C must not reach one that is not set up yet.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            future: Future[list[T]] = self._pool.submit(_with_plan, job, *args)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        return future

    def late(self) -> dict[tuple[int, ...], str]:
        return late(self._scratch.folder, self._timeout) if self._scratch and self._timeout else {}

    def replace(self, *, alone: bool) -> None:
        self._end(at_once=True)
        if self._scratch is not None:
            self._scratch.end_marked()  # a worker that was killed could not end its programs
        self._wanted = 1 if alone else self._count

    def leave(self, *, at_once: bool) -> None:
        hung = self._end(at_once=at_once)
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None
        if hung and not at_once:
            warnings.warn(
                f"worker processes did not end within {_LEAVING_SECONDS:g} seconds of the last model and were killed: "
                "the trainer leaves a thread or an exit handler that waits. All models are kept.",
                stacklevel=2,
            )

    def _end(self, *, at_once: bool) -> bool:
        """Shut the pool down; whether processes had to be killed because they did not end by themselves."""
        pool, scratch, killed = self._pool, self._scratch, list[int]()
        if pool is None or scratch is None:
            return False
        self._pool, own = None, list((pool._processes or {}).values())
        timer = threading.Timer(_LEAVING_SECONDS, lambda: killed.append(scratch.end_marked() or _kill(own)))
        timer.daemon = True
        timer.start()
        try:
            pool.shutdown(wait=True, kill_workers=at_once)
        except BaseException:  # a second Ctrl-C
            scratch.end_marked()
            raise
        finally:
            timer.cancel()
        timer.join()
        return any(killed)


class Lent:
    """The user's executor, which is theirs to start and to stop."""

    def __init__(self, plan: Plan, executor: Executor, count: int | None) -> None:
        self.sources = Sources(plan)
        self.expected = Expected(self.sources.code)
        self._plan, self._executor = plan, executor
        self._jobs: WeakSet[Future[Any]] = WeakSet()
        workers = count or getattr(executor, "_max_workers", None) or os.cpu_count() or 1
        self.in_flight = 1 if isinstance(executor, InProcess) else 2 * workers

    def submit(self, job: Callable[..., list[T]], *args: Any) -> Future[list[T]]:
        future = self._executor.submit(job, self._plan, *args)
        self._jobs.add(future)
        return future

    def late(self) -> dict[tuple[int, ...], str]:
        return {}

    def replace(self, *, alone: bool) -> None:
        raise EpsgaugeError(
            f"the executor {type(self._executor).__name__} lost a worker and takes no more jobs. What is done is kept: "
            "run it again with a new executor, or without one, which survives such losses."
        )

    def leave(self, *, at_once: bool) -> None:
        """It is not ours: only our jobs that have not begun are taken back."""
        if at_once:
            for job in self._jobs:
                job.cancel()


def crew_for(plan: Plan, executor: Executor | None, workers: int | None) -> Crew:
    """`executor` if there is one, else so many processes: `workers`, or what the plan says, or one for each core."""
    if workers is not None and (type(workers) is not int or workers < 1):
        raise InvalidInput(f"workers must be a whole number, 1 or more, but got {workers!r}.")
    if isinstance(executor, ThreadPoolExecutor):
        raise InvalidInput(
            "executor must not be a pool of threads: they would share the generators that are seeded for each model. "
            "Use processes, InProcess(), or none."
        )
    if executor is not None:
        return Lent(plan, executor, workers)
    return Workers(plan, min(workers or worker_count(plan), plan.n_models))


def worker_count(plan: Plan) -> int:
    """As many as the plan says, or one for each core that this process may use."""
    import loky

    return plan.execution.workers or int(loky.cpu_count())


def single(crew: Crew, job: Callable[..., list[T]], *args: Any) -> T:
    """What one job gives. The plan's code is imported where models are trained, and nowhere else."""
    try:
        found = _submitted(crew, job, *args).result()[0]
    except BrokenExecutor:
        raise EpsgaugeError(
            "a worker process died while it read the plan's code and data: it was killed, crashed or ran out of memory."
        ) from None
    crew.sources.check()
    return found


def _submitted(crew: Crew, job: Callable[..., list[T]], *args: Any) -> Future[list[T]]:
    """The job with the checks of the process that does it."""
    return crew.submit(checked, crew.expected, job, *args)


def confirm(crew: Crew) -> None:
    """Look at the data a last time. Nobody can say which worker takes which job: one for each is the best there is."""
    crew.expected = replace(crew.expected, at_the_end=True)
    wait_for = [_submitted(crew, nothing) for _ in range(max(1, crew.in_flight // 2))]
    for future in wait_for:
        with suppress(BrokenExecutor):
            future.result()


def apart(plan: Plan, job: Callable[..., list[T]]) -> T:
    """What one job gives in a worker process of its own, as a run would have it."""
    crew = crew_for(plan, None, 1)
    try:
        return single(crew, job)
    finally:
        crew.leave(at_once=True)


def results(
    crew: Crew,
    job: Callable[..., list[T]],
    args: Sequence[Any],
    batches: Sequence[list[int]],
    lost: Callable[[int, str], T],
    waiting: Callable[[], None] = lambda: None,
) -> Iterator[T]:
    """What `job(plan, *args, indices)` gives for each batch of indices, in the order in which they are done.

    When a worker dies, the models that were in flight are tried again alone; `lost` makes the result of one that kills
    its worker twice or takes too long. A result is given only if the code is what it was when the crew was made.
    `waiting` is called now and then while there is none.
    """
    left, flying = deque(batches), dict[Future[list[T]], list[int]]()
    lost_in_a_row = 0
    while left or flying:
        suspects: list[list[int]] = []
        while left and len(flying) < crew.in_flight and not suspects:
            indices = left.popleft()
            try:
                flying[_submitted(crew, job, *args, indices)] = indices
            except BrokenExecutor:
                suspects.append(indices)
        done = wait(flying, _POLL_SECONDS, FIRST_COMPLETED).done if flying else set()
        if not done:
            crew.sources.check()
            waiting()
        for future in done:
            indices = flying.pop(future)
            try:
                found = future.result()
            except BrokenExecutor:
                suspects.append(indices)
            else:
                lost_in_a_row = 0
                yield from _unchanged(crew, found)
        if not suspects:
            continue
        suspects += flying.values()
        flying.clear()
        late = crew.late()
        crew.replace(alone=True)
        if any(tuple(batch) in late for batch in suspects):  # it is known whose fault it was
            left.extendleft(batch for batch in suspects if tuple(batch) not in late)
            suspects = [batch for batch in suspects if tuple(batch) in late]
        for index in sorted(index for batch in suspects for index in batch):
            found, died = _alone(crew, job, args, index, lost, late)
            lost_in_a_row = lost_in_a_row + 1 if died else 0
            yield from _unchanged(crew, found)
            if lost_in_a_row == _LOST_IN_A_ROW:
                raise EpsgaugeError(
                    f"the worker processes of {_LOST_IN_A_ROW} models in a row died. Is there enough memory, and time "
                    "where execution.timeout is set? What is done is kept: run it again with fewer workers, or see "
                    "`epsgauge check --try`."
                )
        crew.replace(alone=False)


def _unchanged(crew: Crew, found: list[T]) -> Iterator[T]:
    for each in found:
        crew.sources.check()  # whoever stores the one before may take a while
        yield each


def _alone(
    crew: Crew,
    job: Callable[..., list[T]],
    args: Sequence[Any],
    index: int,
    lost: Callable[[int, str], T],
    late: dict[tuple[int, ...], str],
) -> tuple[list[T], bool]:
    """The result of one model in a list, and whether its worker died each time; once is enough if it took too long."""
    for _ in range(_DEATHS):
        if (index,) in late:
            return [lost(index, late[index,])], True
        try:
            return _submitted(crew, job, *args, [index]).result(), False
        except BrokenExecutor:
            late = crew.late()
            crew.replace(alone=True)
    return [lost(index, late.get((index,), DIED_TWICE))], True


def _kill(processes: list[Any]) -> int:
    """Workers themselves, where what a run has started cannot be found by its mark; how many there were."""
    alive = [process for process in processes if process.is_alive()]  # a number may be another's by now
    for process in alive:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    return len(alive)


def _pickled(plan: Plan) -> bytes:
    import cloudpickle  # type: ignore[import-untyped]  # comes with loky; it can send what a notebook defined

    try:
        payload: bytes = cloudpickle.dumps(plan)
    except Exception as error:
        raise InvalidInput(
            f"data {plan.data.use} or trainer {plan.trainer.use} cannot be sent to a worker process "
            f'({type(error).__name__}: {error}). Name it as "module:attr", or use executor=InProcess().'
        ) from error
    return payload


# What follows runs in a worker.

_payload = b""


def _begin(payload: bytes, parent: int) -> None:
    """Set up a worker."""
    global _payload
    _payload = payload
    leaving.in_worker = True
    os.dup2(2, 1)  # what training code prints is no answer of ours
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C goes to all processes: the parent decides what it means
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()


def _leave_with(parent: int) -> None:
    """End when the process that started this one is gone: killed, it cannot say so, and loky's workers would stay."""
    while os.getppid() == parent:
        time.sleep(_ORPHAN_SECONDS)
    leaving.end_all()
    os._exit(1)


@cache
def _plan() -> Any:
    import cloudpickle

    try:
        return cloudpickle.loads(_payload)
    except Exception as error:
        raise InvalidInput(f"a worker process could not build the plan ({type(error).__name__}: {error}).") from error


def _with_plan(job: Callable[..., list[T]], *args: Any) -> list[T]:
    done = job(_plan(), *args)
    _settle()
    return done


@cache
def _settle() -> None:
    """Once: loky collects garbage after jobs of a second or more, and need not walk through all that was imported."""
    gc.collect()
    gc.freeze()
