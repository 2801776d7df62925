"""What a worker of a cluster does for a run: it hands jobs to processes of their own, which train as on one machine.

A job that crashes, takes too long or is not wanted any more ends its own process and not the worker; the worker answers
the scheduler while a training holds the GIL; and a training may start processes, which daemonic workers may not.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Future
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

from epsgauge.runner import worker
from epsgauge.runner.parcel import check_versions, opened, plan_of
from epsgauge.runner.pool import Pool

T = TypeVar("T")

_LOOK_SECONDS = 1.0  # how often a worker looks whether its job is still wanted
_IDLE_SECONDS = 60.0  # after which processes of a run that asks for nothing are ended: it may have been killed
_REMEMBERED = 100  # runs that have ended, whose jobs may still come
_DEVICES = "CUDA_VISIBLE_DEVICES"  # which a scheduler sets for each job


class Reply(NamedTuple):
    """What became of a job: what it gave as bytes, or what it raised, or neither where its process died."""

    done: bytes | None = None
    error: Exception | None = None
    why: str | None = None  # it took too long


class Job(NamedTuple):
    """Which job of which run; the plan and the arguments that all jobs share are sent once to each worker."""

    run: str
    head: str
    batches: list[list[int]] | None
    fresh: bool  # in a process of its own, which is ended afterwards


def played(
    job: Job, payload: Callable[[], bytes], head: Callable[[], bytes], wanted: Callable[[], bool] = lambda: True
) -> Reply:
    """Do a job in a process of its run, which is kept for the next one."""
    try:
        site = _site(job.run, payload)
    except Exception as error:
        return Reply(error=error)
    return Reply() if site is None else site.do(job, head, wanted)


def end(run: str) -> None:
    """Kill the processes of a run on this machine, and take no more jobs of it."""
    with _lock:
        _ended.append(run)
        site = _sites.pop(run, None)
    if site is not None:
        site.end()


class _Child:
    """One process, and what it knows."""

    def __init__(self, payload: bytes, timeout: float | None, settings: dict[str, str]) -> None:
        self.pool = Pool(payload, 1, timeout, plan_of, settings, ends_parent=True)
        self.heads: set[str] = set()
        self.devices = os.environ.get(_DEVICES)

    def ask(self, wanted: Callable[[], bool], job: Callable[..., T], *args: Any) -> T:
        with _not_daemonic():
            future: Future[T] = self.pool.submit(job, *args)
        while True:
            try:
                return future.result(_LOOK_SECONDS)
            except TimeoutError:
                if future.done():  # the job itself raised it
                    raise
            if not wanted():
                self.pool.kill()


class _Site:
    """The processes of one run in this worker: as many as it has jobs at a time."""

    def __init__(self, payload: bytes) -> None:
        parcel = opened(payload)
        check_versions(parcel)
        self._payload, self._parcel = payload, parcel
        self._idle: list[_Child] = []
        self._busy: set[_Child] = set()
        self._lock = threading.Lock()
        self.last = time.monotonic()

    def do(self, job: Job, head: Callable[[], bytes], wanted: Callable[[], bool]) -> Reply:
        child = self._take(fresh=job.fresh)
        reply = Reply()
        try:
            if job.head not in child.heads:
                child.ask(wanted, worker.learn, job.head, head())
                child.heads.add(job.head)
            done = child.ask(wanted, worker.do, job.head, job.batches)
            reply = Reply(done)
        except BrokenExecutor:
            late, batches = child.pool.late(), job.batches or []
            reply = Reply(why=late.get(tuple(batches[0])) if len(batches) == 1 else None)
        except Exception as error:
            reply = Reply(error=error)
        finally:
            self._give_back(child, again=reply.done is not None and not job.fresh)
        return reply

    def is_idle(self) -> bool:
        with self._lock:
            return not self._busy and time.monotonic() - self.last > _IDLE_SECONDS

    def end(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
            for child in self._busy:
                child.pool.kill()  # its job sees that, and leaves
        for child in idle:
            child.pool.leave(at_once=True)

    def _new(self) -> _Child:
        return _Child(self._payload, self._parcel.timeout, self._parcel.settings)

    def _take(self, *, fresh: bool) -> _Child:
        with self._lock:
            self.last = time.monotonic()
            devices = os.environ.get(_DEVICES)
            fits = [child for child in self._idle if child.devices == devices and not child.pool.is_broken()]
            child = fits[-1] if fits and not fresh else self._new()
            if child in self._idle:
                self._idle.remove(child)
            unfit = [] if fresh or fits else self._idle
            self._idle = [] if unfit else self._idle
            self._busy.add(child)
        for each in unfit:  # of other devices, whose memory they would hold, or dead
            each.pool.leave(at_once=True)
        return child

    def _give_back(self, child: _Child, *, again: bool) -> None:
        with self._lock:
            self._busy.discard(child)
            self.last = time.monotonic()
            if again:
                self._idle.append(child)
        if not again:
            child.pool.leave(at_once=True)


_sites: dict[str, _Site] = {}
_ended: deque[str] = deque(maxlen=_REMEMBERED)
_lock = threading.Lock()
_watching = False


def _site(run: str, payload: Callable[[], bytes]) -> _Site | None:
    """That of a run, which is made by its first job; None where the run has ended."""
    global _watching
    with _lock:
        if run in _ended:
            return None
        if run not in _sites:
            _sites[run] = _Site(payload())
        if not _watching:
            _watching = True
            atexit.register(_end_all)
            threading.Thread(target=_watch, daemon=True).start()
        return _sites[run]


def _watch() -> None:
    while True:
        time.sleep(_IDLE_SECONDS / 10)
        with _lock:
            idle = [_sites.pop(run) for run, site in list(_sites.items()) if site.is_idle()]
        for site in idle:
            site.end()


def _end_all() -> None:
    for run in list(_sites):
        end(run)


_spawning = threading.Lock()


@contextmanager
def _not_daemonic() -> Iterator[None]:
    """Dask's workers are daemonic by default: they may start no process, nor may those that they start all the same."""
    config: dict[str, Any] = multiprocessing.current_process()._config  # type: ignore[attr-defined]
    with _spawning:
        before = config.get("daemon")
        config["daemon"] = False
        try:
            yield
        finally:
            config["daemon"] = before
