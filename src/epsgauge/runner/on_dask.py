"""Models on a Dask cluster: its scheduler hands out our jobs, and its workers keep the plan."""

from __future__ import annotations

import pickle
import queue
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import Any

from epsgauge.errors import EpsgaugeError, InvalidInput, MissingExtra
from epsgauge.runner import site
from epsgauge.runner.crew import Crew, JobLost
from epsgauge.runner.fleet import REMEDY, Fleet
from epsgauge.runner.plan import Plan
from epsgauge.runner.provenance import versions
from epsgauge.runner.site import Job, Reply

_CONNECT_SECONDS = 10  # in which a scheduler must answer
_BACK_SECONDS = 60.0  # in which one that was restarted must be back, and one that does not answer must
_COUNT_SECONDS = 2.0  # how long a number of workers holds
_ANSWER_SECONDS = 10  # that a question to the scheduler may take
_LEAVE_SECONDS = 5  # that workers have to end what they do for us
_KEY = "epsgauge"


class Dask:
    """A Dask cluster as an executor: the address of its scheduler, or a client that is the caller's to close."""

    def __init__(self, cluster: Any) -> None:
        if not (isinstance(cluster, str) or is_client(cluster)):
            raise InvalidInput(
                "a Dask cluster must be the address of a scheduler, as tcp://host:8786, or a client, but got "
                f"{type(cluster).__name__}."
            )
        self._cluster = cluster

    def crew(self, plan: Plan) -> Crew:
        return _DaskCrew(plan, self._cluster)


def is_client(thing: Any) -> bool:
    """Whether it is a client of Dask, which is not imported for that."""
    return any(f"{kind.__module__}.{kind.__qualname__}" == "distributed.client.Client" for kind in type(thing).__mro__)


class _DaskCrew(Fleet):
    def __init__(self, plan: Plan, cluster: Any) -> None:
        super().__init__(plan)
        self._address = cluster if isinstance(cluster, str) else None
        self._client = _connected(cluster) if isinstance(cluster, str) else cluster
        gpus = plan.execution.gpus_per_model
        self._resources = {"GPU": gpus} if gpus else None
        self._contents = {_KEY: self.payload}  # what workers ask for, by name
        self._kept: dict[str, Any] = {}
        self._flying: dict[Any, Future[Any]] = {}
        self._threads = 1
        self._n, self._over = 0, threading.Event()
        self._done: queue.SimpleQueue[Any] = queue.SimpleQueue()
        try:
            _check_workers(self._client)
        except BaseException:
            self._close()
            raise
        self._count()
        self._gathers = threading.Thread(target=self._gather, daemon=True)
        self._gathers.start()
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def in_flight(self) -> int:
        """Two for each thread of its workers, so that none waits for the next; workers may come and go."""
        return 2 * self._threads

    def _count(self) -> bool:
        """Ask how many threads there are; whether the scheduler answered. One that is away has as many as before."""
        try:
            found = self._client.sync(self._client.scheduler.ncores, callback_timeout=_ANSWER_SECONDS)
        except Exception:
            return False
        self._threads = max(1, sum(found.values()))
        return True

    def _watch(self) -> None:
        """End the run if the scheduler is there but does not answer, as one that was stopped; runs in a thread."""
        silent = 0.0
        while not self._over.wait(_COUNT_SECONDS):
            answered = self._count() or self._client.status != "running"  # one that is gone is waited for by `send`
            silent = 0.0 if answered else silent + _COUNT_SECONDS + _ANSWER_SECONDS
            if silent >= _BACK_SECONDS:
                self.fail(self._flying, f"the Dask scheduler has not answered for {silent:.0f} seconds.")

    def publish(self, name: str, head: bytes) -> None:
        self._contents[name] = head

    def send(self, job: Job, future: Future[Any]) -> None:
        self._wait_for_scheduler()
        self._n += 1
        sent = self._client.submit(
            _do,
            pickle.dumps(job),
            self._shared(_KEY),
            self._shared(job.head),
            key=f"{_KEY}-{self.run}-job-{self._n}",
            resources=self._resources,
        )
        self._flying[sent] = future
        sent.add_done_callback(self._done.put)

    def _shared(self, name: str) -> Any:
        """What all jobs share, as the result of a job: it goes to each worker once, and is made again if it is lost."""
        kept = self._kept.get(name)
        if kept is None or kept.status in ("cancelled", "lost", "error"):
            self._n += 1
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it is large
                kept = self._client.submit(
                    _same, self._contents[name], key=f"{_KEY}-{self.run}-shared-{self._n}", pure=False
                )
            self._kept[name] = kept
        return kept

    def _wait_for_scheduler(self) -> None:
        """One that was restarted has forgotten all jobs: they are sent again."""
        until = time.monotonic() + _BACK_SECONDS
        while self._client.status != "running":
            if self._client.status == "closed" and self._address is not None:
                with suppress(InvalidInput):
                    self._client = _connected(self._address)
                    continue
            if time.monotonic() > until or (self._client.status == "closed" and self._address is None):
                raise EpsgaugeError(f"the Dask scheduler is gone. {REMEDY}")
            time.sleep(0.1)

    def _gather(self) -> None:
        """Fetch what is done, as much as there is at a time; runs in a thread."""
        while (first := self._done.get()) is not None:
            batch = [first]
            with suppress(queue.Empty):
                while True:
                    batch.append(self._done.get_nowait())
            if None in batch:
                return
            replies = self._replies(batch)
            for sent, reply in zip(batch, replies, strict=True):
                future = self._flying.pop(sent, None)
                if future is not None:
                    self.settle(future, reply)

    def _replies(self, batch: list[Any]) -> list[Reply | Exception]:
        if all(sent.status == "finished" for sent in batch):
            with suppress(Exception):  # one was lost with its worker: see which
                return list(self._client.gather(batch))
        return [_reply(sent) for sent in batch]

    def leave(self, *, at_once: bool) -> None:
        """Workers end the processes that they have for us."""
        self._over.set()
        with suppress(Exception):
            if self._client.status == "running":
                if self._flying:
                    self._client.cancel(list(self._flying), force=True)
                self._client.sync(
                    self._client._run, site.end, self.run, on_error="ignore", callback_timeout=_LEAVE_SECONDS
                )
        self._flying.clear()
        self._kept.clear()
        self._done.put(None)
        self._gathers.join(_LEAVE_SECONDS)
        self._close()

    def _close(self) -> None:
        if self._address is not None:
            with suppress(Exception):
                self._client.close(timeout=_LEAVE_SECONDS)


def _connected(address: str) -> Any:
    try:
        import distributed
    except ImportError:
        raise MissingExtra(
            "--dask needs Dask. Install it with: pip install '.[dask]' in the folder of epsgauge"
        ) from None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # versions are compared by us
            return distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False, name=_KEY)
    except Exception as error:
        raise InvalidInput(
            f"there is no Dask scheduler at {address}: it did not answer within {_CONNECT_SECONDS} seconds "
            f"({type(error).__name__}). Start one, or see whether the address is right."
        ) from None


def _check_workers(client: Any) -> None:
    """What workers that are there must have before they can be asked anything of ours; others are asked later."""
    here = versions()
    for worker, found in (client.get_versions(packages=["epsgauge"]).get("workers") or {}).items():
        python = ".".join(str(found["host"].get("python", "")).split(".")[:2])
        has = {"Python": python, "epsgauge": found["packages"].get("epsgauge")}
        for name, version in has.items():
            if version != here[name]:
                raise InvalidInput(
                    f"the Dask worker {worker} must have {name} {here[name]}, as this process, but has "
                    f"{version or 'none'}. Install the same on all machines."
                )


def _reply(sent: Any) -> Reply | Exception:
    """What became of one job. What Dask itself says is that a machine was lost, or an error of its own."""
    from distributed import KilledWorker

    try:
        reply: Reply = sent.result(timeout=_ANSWER_SECONDS)
        return reply
    except (KilledWorker, CancelledError, OSError, TimeoutError):
        return JobLost(vanished=True)
    except Exception as error:
        if type(error).__name__ in ("FutureCancelledError", "FuturesCancelledError"):
            return JobLost(vanished=True)
        return EpsgaugeError(
            f"a Dask worker could not do a job ({type(error).__name__}: {error}). Install the same packages on all "
            "machines."
        )


# What follows runs in a worker of Dask.


def _same(content: bytes) -> bytes:
    return content


def _do(job: bytes, payload: bytes, head: bytes) -> Reply:
    return site.played(pickle.loads(job), lambda: payload, lambda: head, _wanted())


def _wanted() -> Callable[[], bool]:
    """Whether somebody still waits for the job of this thread: the client may be gone, or have cancelled it."""
    from distributed import get_worker

    worker = get_worker()
    key = worker.get_current_task()

    def wanted() -> bool:
        try:
            task = worker.state.tasks.get(key)
            return task is not None and task.state not in ("cancelled", "released")
        except AttributeError:  # of another version of Dask
            return True

    return wanted
