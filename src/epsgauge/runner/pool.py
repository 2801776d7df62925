"""Pool: worker processes of our own, made by loky, which may die and are replaced."""

from __future__ import annotations

import os
import signal
import threading
import warnings
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any, TypeVar

from epsgauge.processes import SAFE_PATH, safe_path
from epsgauge.runner import worker
from epsgauge.runner.deaths import crashes
from epsgauge.runner.limit import late
from epsgauge.runner.scratch import Scratch

T = TypeVar("T")

# One thread per worker: the work is parallel by process. Set before a worker imports anything.
ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
# With psutil, loky replaces a worker that has grown by so many bytes, by default 3e8: that would be after every model,
# where networks are trained.
ANY_GROWTH = {"LOKY_MAX_MEMORY_LEAK_SIZE": "1e18"}
_LEAVING_SECONDS = 5.0  # in which workers that have nothing more to do must end
_NOTICE_SECONDS = 10.0  # in which loky must have noticed that a worker died


class Pool:
    """Processes that are made when the first job comes. Each gets `payload` once, and makes the plan of it."""

    def __init__(
        self,
        payload: bytes,
        count: int,
        timeout: float | None,
        opener: worker.Opener = worker.unpickled,
        settings: Mapping[str, str] | None = None,
        *,
        ends_parent: bool = False,
    ) -> None:
        """`ends_parent`: this process is one of a cluster's, which is killed if it is stopped for so long."""
        self._begin = (payload, opener)
        self._count = self._wanted = count
        self._timeout, self._ends_parent = timeout, ends_parent
        self._settings = dict(settings or {})
        self._path_setting = os.environ.get(SAFE_PATH)
        self._pool: Any = None
        self._scratch: Scratch | None = None

    def submit(self, job: Callable[..., T], *args: Any) -> Future[T]:
        # Workers start here and inherit what is blocked: Ctrl-C must not reach one that is not set up yet.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with safe_path():
                is_new, pool = self._pool is None, self._started()
                future: Future[T] = pool.submit(job, *args)
            if is_new:
                parts = pool._executor_manager_thread, list(pool._processes.values()), pool._result_queue, self.kill
                threading.Thread(target=_notice, args=parts, daemon=True).start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        return future

    def _started(self) -> Any:
        if self._pool is None:
            from loky import ProcessPoolExecutor

            self._scratch = self._scratch or Scratch(self._timeout, ends_parent=self._ends_parent)
            environment = self._settings | ONE_THREAD | ANY_GROWTH | self._scratch.environment | {SAFE_PATH: "1"}
            self._pool = ProcessPoolExecutor(
                self._wanted,
                initializer=worker.begin,
                initargs=(*self._begin, os.getpid(), self._path_setting),
                env=environment,
            )
        return self._pool

    def is_broken(self) -> bool:
        """Whether a worker died and it takes no more jobs."""
        return self._pool is not None and self._pool._flags.broken is not None

    def late(self) -> dict[tuple[int, ...], str]:
        """Which jobs of workers that died had taken too long, each with a sentence."""
        return late(self._scratch.folder, self._timeout) if self._scratch and self._timeout else {}

    def crashes(self) -> list[str]:
        """Where workers crashed in compiled code."""
        return crashes(self._scratch.folder) if self._scratch else []

    def replace(self, *, alone: bool) -> None:
        """Start again after a worker died, with one worker or with all."""
        self._end(at_once=True)
        if self._scratch is not None:
            self._scratch.end_marked()  # a worker that was killed could not end its programs
        self._wanted = 1 if alone else self._count

    def leave(self, *, at_once: bool) -> None:
        """Nothing more is to be done; `at_once` kills what is still at work."""
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

    def kill(self) -> None:
        """End all workers now, from any thread; the jobs that they did are lost."""
        if self._scratch is not None:
            self._scratch.end_marked()

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


def _kill(processes: list[Any]) -> int:
    """Workers themselves, where what a run has started cannot be found by its mark; how many there were."""
    alive = [process for process in processes if process.is_alive()]  # a number may be another's by now
    for process in alive:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    return len(alive)


def _notice(manager: threading.Thread, workers: list[Any], results: Any, kill: Callable[[], None]) -> None:
    """Break a pool whose worker died while it sent a result; runs in a thread.

    loky would wait for the rest for ever: other workers and this process hold the end of the pipe that it comes from.
    """
    wait([worker.sentinel for worker in workers])
    manager.join(_NOTICE_SECONDS)
    if manager.is_alive():
        kill()
        _kill(workers)
        results._writer.close()
