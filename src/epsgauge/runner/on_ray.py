"""Models on a Ray cluster: its tasks are our jobs, with the CPUs and GPUs that the plan asks for."""

from __future__ import annotations

import pickle
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import Future
from contextlib import suppress
from importlib.util import find_spec
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from epsgauge.errors import EpsgaugeError, InvalidInput, MissingExtra
from epsgauge.processes import python_words
from epsgauge.runner.crew import Crew, JobLost
from epsgauge.runner.fleet import Fleet
from epsgauge.runner.plan import Plan
from epsgauge.runner.ray_driver import CLIENT, PAYLOAD, Session
from epsgauge.runner.site import Job

_LISTEN_SECONDS = 10  # in which somebody must listen
_CONNECT_SECONDS = 120  # in which Ray must open a session
_BACK_SECONDS = 40.0  # in which the head must answer
_LOOK_SECONDS = 1.0  # how often it is seen whether it has
_LEAVE_SECONDS = 5
_START = "Start one with `ray start --head`, or see whether the address is right."


class Ray:
    """A Ray cluster as an executor: "auto", host:port or ray://host:port; that of an open session, if there is one."""

    def __init__(self, address: str = "auto") -> None:
        if not isinstance(address, str) or not address:
            raise InvalidInput(f'a Ray cluster must be "auto", host:port or ray://host:port, but got {address!r}.')
        self._address = address

    def crew(self, plan: Plan) -> Crew:
        return _RayCrew(plan, self._address)


class _RayCrew(Fleet):
    """Ray itself runs in a child process: it ends its process when a raylet dies, and hangs when a head is stopped."""

    def __init__(self, plan: Plan, address: str) -> None:
        super().__init__(plan)
        cpus, gpus = plan.execution.cpus_per_model, plan.execution.gpus_per_model
        session = _session(address, 1.0 if cpus is None else cpus, gpus or 0.0)
        self._process, self._pipe = _started()
        self._flying: dict[int, Future[Any]] = {}
        self._room, self._n = 1, 0
        self._gone: str | None = None  # why nothing more will come
        self._leaving = False
        self._lock = threading.Lock()
        try:
            self._connect(session)
        except BaseException:  # also Ctrl-C
            self._kill()
            raise
        threading.Thread(target=self._receive, daemon=True).start()
        self.publish(PAYLOAD, self.payload)

    @property
    def in_flight(self) -> int:
        """Two for each model that the cluster has room for, so that none waits for the next."""
        return 2 * self._room

    def _connect(self, session: Session) -> None:
        why = f"it has not answered for {_CONNECT_SECONDS} seconds"
        try:
            self._pipe.send(session)
            if self._pipe.poll(_CONNECT_SECONDS):
                word, *rest = self._pipe.recv()
                if word == "connected":
                    return
                why = rest[0]
        except (EOFError, OSError):
            why = f"Ray ended the process that connects to it, exit code {self._process.wait()}"
        raise InvalidInput(f"there is no Ray cluster at {session.address} ({why}). {_START}")

    def publish(self, name: str, head: bytes) -> None:
        self._tell("put", name, head)

    def send(self, job: Job, future: Future[Any]) -> None:
        self._n += 1
        self._flying[self._n] = future
        self._tell("do", self._n, pickle.dumps(job), job.head)

    def _tell(self, *message: Any) -> None:
        with suppress(OSError):  # it is gone, and who receives says why
            self._pipe.send(message)
        if self._gone:
            self._fail()

    def _receive(self) -> None:
        """Settle what is done, and see whether the head still answers; runs in a thread."""
        silent, before = 0.0, time.monotonic()
        while not (self._gone or self._leaving):
            try:
                word, *rest = self._pipe.recv() if self._pipe.poll(_LOOK_SECONDS) else (None,)
            except (EOFError, OSError):
                word, rest = "gone", [f"Ray ended the process that talks to its cluster, exit code {self._ended()}."]
            # no more than a look may take is added: this process may have been stopped in between
            before, since = (now := time.monotonic()), now - before
            silent += min(since, 2 * _LOOK_SECONDS)
            if word == "room":
                self._room, silent = rest[0], 0.0
            elif word == "gone":
                self._gone = rest[0]
            elif word is not None:
                self._settle(word, *rest)
            if silent > _BACK_SECONDS:
                self._gone = f"the head of Ray's cluster has not answered for {_BACK_SECONDS:g} seconds."
        if self._gone:
            self._process.kill()  # also ends a message that this run waits to send
            self._fail()

    def _settle(self, word: str, number: int, *rest: Any) -> None:
        future = self._flying.pop(number)
        try:
            what = JobLost(vanished=True) if word == "lost" else _job_failed(*rest) if word == "error" else None
            self.settle(future, what or pickle.loads(rest[0]))
        except Exception as error:  # of what this process cannot import
            self.settle(future, _job_failed(f"{type(error).__name__}: {error}"))

    def _ended(self) -> int:
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(_LEAVE_SECONDS)
        return self._process.poll() or 0

    def _fail(self) -> None:
        with self._lock:
            self.fail(self._flying, self._gone or "")

    def leave(self, *, at_once: bool) -> None:
        """Jobs that are under way end with their workers; processes that wait for more end by themselves."""
        self._leaving = True
        if not self._gone:
            with suppress(OSError, subprocess.TimeoutExpired):
                self._pipe.send(("leave",))
                self._process.wait(_LEAVE_SECONDS)
        self._flying.clear()
        self._kill()

    def _kill(self) -> None:
        self._process.kill()
        self._process.wait()


def _job_failed(text: str) -> EpsgaugeError:
    return EpsgaugeError(f"a Ray worker could not do a job ({text}). Install the same packages on all machines.")


def _started() -> tuple[subprocess.Popen[bytes], Connection]:
    """The process that talks to Ray. It ends when this one does, and in no other way: Ctrl-C does not reach it."""
    ours, theirs = Pipe()
    with theirs:
        process = subprocess.Popen(
            python_words("epsgauge.runner.ray_driver:main", str(theirs.fileno())),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    return process, ours


def _session(address: str, cpus: float, gpus: float) -> Session:
    """Where to connect: where this process has a session, or the address, if somebody listens there."""
    if find_spec("ray") is None:
        raise MissingExtra("--ray needs Ray. Install it with: pip install '.[ray]' in the folder of epsgauge")
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        _check_listens(address)
        return Session(address, None, cpus, gpus)
    here = ray.get_runtime_context()
    environment = dict(here.runtime_env)
    if not ray.util.client.ray.is_connected():
        return Session(here.gcs_address, environment, cpus, gpus)
    if not address.startswith(CLIENT):  # which Ray does not tell
        raise InvalidInput('a session of Ray\'s client is open: give its address too, as eg.Ray("ray://host:10001").')
    return Session(address, environment, cpus, gpus)


def _check_listens(address: str) -> None:
    """Ray itself would try for long."""
    host, colon, port = address.removeprefix(CLIENT).rpartition(":")
    if not colon:
        return
    try:
        socket.create_connection((host, int(port)), timeout=_LISTEN_SECONDS).close()
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"there is no Ray cluster at {address}: nobody listens there ({type(error).__name__}). {_START}"
        ) from None
