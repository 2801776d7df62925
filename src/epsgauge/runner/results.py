"""What jobs give, each model once: handed out a few at a time, and tried again where a process died."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from epsgauge.errors import EpsgaugeError
from epsgauge.runner.crew import Batch, Crew, JobLost
from epsgauge.runner.deaths import why_died
from epsgauge.runner.executors import crew_for
from epsgauge.runner.plan import Plan
from epsgauge.runner.play import each
from epsgauge.runner.same import checked, nothing

T = TypeVar("T")

DIED = "a worker process died while it ran the plan's code"
DIED_TWICE = "its worker process died twice (killed, out of memory or crashed)"
_DEATHS = 2  # of a worker that trains one model and nothing else
_VANISHED = 5  # times that a job may lose its machine: those are taken away, or restarted, for reasons of their own
VANISHED = f"its machine was lost {_VANISHED} times (taken away, restarted or out of memory)"
_LOST_IN_A_ROW = 8  # models, after which no other is expected to fare better
_MOMENT = 0.25  # seconds that a job of models which go together is to take
_MOST_TOGETHER = 500
_POLL_SECONDS = 1.0  # how often code is looked at while nothing comes


def single(crew: Crew, job: Callable[..., list[T]], *args: Any, waiting: Callable[[], None] = lambda: None) -> T:
    """What one job gives. The plan's code is imported where models are trained, and nowhere else.

    `waiting` is called every second until then.
    """
    for _ in range(_VANISHED):
        try:
            future = _submitted(crew, job, *args)
            while not wait([future], _POLL_SECONDS).done:
                waiting()
            found = future.result()[0]
        except (BrokenExecutor, JobLost) as error:
            if getattr(error, "vanished", False):
                continue
            late: list[str] = list(crew.late().values())
            traces: list[str] = getattr(crew, "crashes", list)()
            raise EpsgaugeError(f"{DIED}: {late[-1] if late else why_died(error, traces)}") from error
        crew.sources.check()
        return found
    raise EpsgaugeError(f"{DIED}: {VANISHED}.")


def _submitted(
    crew: Crew, job: Callable[..., list[T]], *args: Any, batches: list[Batch] | None = None
) -> Future[list[T]]:
    """The job with the checks of the process that does it."""
    if batches is None:
        return crew.submit(checked, crew.expected, job, *args)
    return crew.submit(checked, crew.expected, each, job, *args, batches=batches)


def confirm(crew: Crew) -> None:
    """Look at the data a last time. Nobody can say which worker takes which job: one for each is the best there is."""
    crew.expected = replace(crew.expected, at_the_end=True)
    wait_for = [_submitted(crew, nothing) for _ in range(max(1, crew.in_flight // 2))]
    for future in wait_for:
        with suppress(BrokenExecutor, JobLost):
            future.result()


def apart(
    plan: Plan, job: Callable[..., list[T]], crew: Crew | None = None, *, waiting: Callable[[], None] = lambda: None
) -> T:
    """What one job gives in a worker process of its own; where `crew` works, if there is one."""
    own = crew_for(plan, None, 1) if crew is None else crew.apart()
    try:
        return single(own, job, waiting=waiting)
    finally:
        own.leave(at_once=True)


def results(
    crew: Crew,
    job: Callable[..., list[T]],
    args: Sequence[Any],
    batches: Sequence[Batch],
    lost: Callable[[int, str], T],
    waiting: Callable[[], None] = lambda: None,
) -> Iterator[T]:
    """What `job(plan, *args, batch)` gives for each batch of models, in the order in which they are done.

    When a worker dies, the models that were in flight are tried again alone; `lost` makes the result of one that kills
    its worker twice or takes too long. A result is given only if the code is what it was when the crew was made.
    `waiting` is called now and then while there is none.
    """
    left, flying = _Left(batches, bundle=crew.bundle), dict[Future[list[T]], list[Batch]]()
    deaths, row = _Deaths(), _Row()
    while left or flying:
        suspects: list[Batch] = []
        while left and len(flying) < crew.in_flight and not suspects:
            bundle = left.next(crew.in_flight)
            try:
                flying[_submitted(crew, job, *args, batches=bundle)] = bundle
            except BrokenExecutor:
                suspects += bundle
        done = wait(flying, _POLL_SECONDS, FIRST_COMPLETED).done if flying else set()
        if not done:
            crew.sources.check()
            waiting()
        for future in done:
            bundle = flying.pop(future)
            try:
                found = future.result()
            except BrokenExecutor:
                suspects += bundle
            except JobLost as error:
                why = deaths.why_given_up(bundle, error)
                if why is None:
                    left.again(deaths.again(bundle, error))
                    continue
                yield from _unchanged(crew, [lost(bundle[0][0], why)])
                row.add(died=True)
            else:
                row.add(died=False)
                left.done(len(found))
                yield from _unchanged(crew, found)
        if not suspects:
            continue
        suspects += (batch for bundle in flying.values() for batch in bundle)
        flying.clear()
        late = crew.late()
        crew.replace(alone=True)
        if any(tuple(batch) in late for batch in suspects):  # it is known whose fault it was
            left.again([batch] for batch in suspects if tuple(batch) not in late)
            suspects = [batch for batch in suspects if tuple(batch) in late]
        for index in sorted(index for batch in suspects for index in batch):
            found, died = _alone(crew, job, args, index, lost, late)
            yield from _unchanged(crew, found)
            row.add(died=died)
        crew.replace(alone=False)


class _Left:
    """Batches that are still to be sent. Where a message costs something, those that take no time share one."""

    def __init__(self, batches: Iterable[Batch], *, bundle: int | None) -> None:
        self._batches, self._again = deque(batches), deque[list[Batch]]()
        self._bundle, self._done = bundle, 0
        self._since = time.monotonic()

    def __bool__(self) -> bool:
        return bool(self._batches or self._again)

    def next(self, in_flight: int) -> list[Batch]:
        """A bundle: batches that are sent together, and trained one after the other."""
        if self._again:
            return self._again.popleft()
        room = self._together(in_flight)
        bundle = [self._batches.popleft()]
        models = len(bundle[0])
        while self._batches and (models := models + len(self._batches[0])) <= room:
            bundle.append(self._batches.popleft())
        return bundle

    def again(self, bundles: Iterable[list[Batch]]) -> None:
        """First, and as they are."""
        self._again.extend(bundles)

    def done(self, models: int) -> None:
        self._since = self._since if self._done else time.monotonic()  # the first waits for processes to start
        self._done += models

    def _together(self, in_flight: int) -> int:
        """So many models as a worker trains in a moment, but no more than are left for each."""
        if self._bundle is not None:
            return self._bundle
        if self._done < in_flight:
            return 1
        seconds = (time.monotonic() - self._since) / self._done * in_flight / 2  # of one model in one process
        share = len(self._batches) * len(self._batches[0]) // in_flight  # models, as if all batches were alike
        return max(1, min(int(_MOMENT / max(seconds, 1e-6)), share, _MOST_TOGETHER))


class _Deaths:
    """How often jobs lost their process or their machine."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, bool]] = Counter()

    def why_given_up(self, bundle: list[Batch], error: JobLost) -> str | None:
        """Why a model is not tried again; None where it is, or where there are several."""
        times = self._seen[str(bundle), error.vanished] = self._seen[str(bundle), error.vanished] + 1
        if sum(map(len, bundle)) > 1:
            return None
        if error.why is not None:
            return error.why
        enough = times >= (_VANISHED if error.vanished else _DEATHS)
        return (VANISHED if error.vanished else DIED_TWICE) if enough else None

    def again(self, bundle: list[Batch], error: JobLost) -> list[list[Batch]]:
        """What may be to blame is sent by itself: each batch of a bundle, then each model of a group."""
        if error.vanished and self._seen[str(bundle), True] < _VANISHED:
            return [bundle]
        return [[batch] for batch in bundle] if len(bundle) > 1 else [[[index]] for index in bundle[0]]


class _Row:
    """How many models in a row were lost; too many of them end the run."""

    def __init__(self) -> None:
        self._lost = 0

    def add(self, *, died: bool) -> None:
        self._lost = self._lost + 1 if died else 0
        if self._lost == _LOST_IN_A_ROW:
            raise EpsgaugeError(
                f"the worker processes of {_LOST_IN_A_ROW} models in a row died. Is there enough memory, and time "
                "where execution.timeout is set? What is done is kept: run it again with fewer workers, or see "
                "`epsgauge check --try`."
            )


def _unchanged(crew: Crew, found: list[T]) -> Iterator[T]:
    for one in found:
        crew.sources.check()  # whoever stores the one before may take a while
        yield one


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
            return _submitted(crew, job, *args, batches=[[index]]).result(), False
        except BrokenExecutor:
            late = crew.late()
            crew.replace(alone=True)
    return [lost(index, late.get((index,), DIED_TWICE))], True
