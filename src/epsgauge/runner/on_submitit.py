"""Models as jobs of a batch system: submitit hands groups of models to Slurm, or to processes of this machine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.runner import site
from epsgauge.runner.crew import Batch, Crew, JobLost
from epsgauge.runner.executors import Workers, is_of
from epsgauge.runner.fleet import Fleet
from epsgauge.runner.plan import Plan
from epsgauge.runner.site import Job, Reply

T = TypeVar("T")

_LOOK_SECONDS = 0.5  # how often jobs are asked whether they are done; submitit itself asks Slurm once a minute
_LEAVE_SECONDS = 5


class Submitit:
    """An executor of submitit, with its parameters set: so many jobs at a time with so many models each.

    A job of Slurm waits in a queue, so it should train for minutes.
    """

    def __init__(self, executor: Any, *, jobs: int, models_per_job: int) -> None:
        for name, value in (("jobs", jobs), ("models_per_job", models_per_job)):
            if type(value) is not int or value < 1:
                raise InvalidInput(f"{name} must be a whole number, 1 or more, but got {value!r}.")
        if not is_of("submitit", executor):
            raise InvalidInput(
                "executor must be one of submitit, as submitit.AutoExecutor(folder), but got "
                f"{type(executor).__name__}."
            )
        self._executor, self._jobs, self._models = executor, jobs, models_per_job

    def crew(self, plan: Plan) -> Crew:
        return _SubmititCrew(plan, self._executor, self._jobs, self._models)


class _SubmititCrew(Fleet):
    def __init__(self, plan: Plan, executor: Any, jobs: int, models: int) -> None:
        super().__init__(plan)
        self._executor, self._jobs, self.bundle = executor, jobs, models
        self._here = Workers(plan, 1)  # what comes before and after the models would wait in the queue
        self._contents: dict[str, bytes] = {}
        self._flying: dict[Any, Future[Any]] = {}
        self._over = threading.Event()
        self._looks = threading.Thread(target=self._look, daemon=True)
        self._looks.start()

    @property
    def in_flight(self) -> int:
        return self._jobs

    def submit(self, job: Callable[..., list[T]], *args: Any, batches: list[Batch] | None = None) -> Future[list[T]]:
        return super().submit(job, *args, batches=batches) if batches else self._here.submit(job, *args)

    def publish(self, name: str, head: bytes) -> None:
        self._contents[name] = head

    def send(self, job: Job, future: Future[Any]) -> None:
        try:
            sent = self._executor.submit(_do, tuple(job), self.payload, self._contents[job.head])
        except Exception as error:  # sbatch is missing, refuses a parameter, or the quota is used up
            text = (str(error).strip().splitlines() or [""])[-1]
            raise EpsgaugeError(
                f"submitit could not submit a job ({type(error).__name__}: {text}). What is done is kept: run it again."
            ) from None
        self._flying[sent] = future

    def _look(self) -> None:
        """Settle what is done; runs in a thread."""
        while not self._over.wait(_LOOK_SECONDS):
            for sent in list(self._flying):
                if not sent.done():
                    continue
                reply = _reply(sent)
                self.settle(self._flying.pop(sent), reply)

    def leave(self, *, at_once: bool) -> None:
        self._here.leave(at_once=at_once)
        self._over.set()
        self._looks.join(_LEAVE_SECONDS)
        for sent in list(self._flying):
            with suppress(Exception):
                sent.cancel()
        self._flying.clear()


def _reply(sent: Any) -> Reply | Exception:
    """What became of one job: preempted and cancelled ones, and those over their time limit, are lost."""
    try:
        return Reply(*sent.result())
    except Exception as error:
        if type(error).__name__ == "FailedJobError":  # our function itself failed there
            return EpsgaugeError(
                f"a job of submitit failed ({str(error).strip().splitlines()[-1]}). Install the same packages on all "
                f"machines; its logs are {getattr(getattr(sent, 'paths', None), 'stderr', 'in its folder')}."
            )
        return JobLost(vanished=True)


# What follows runs in a job.


def _do(job: tuple[Any, ...], payload: bytes, head: bytes) -> tuple[Any, ...]:
    here = Job(*job)
    try:
        return tuple(site.played(here, lambda: payload, lambda: head))
    finally:
        site.end(here.run)
