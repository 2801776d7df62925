"""The process that talks to a Ray cluster for a run: Ray ends it, or lets it hang, when the cluster is lost.

It is started by `on_ray`. Messages are tuples that begin with one of these words:

to it      put name bytes · do number job name · leave
from it    connected · refused why · room models · done number bytes · error number why · lost number · gone sentence
"""

from __future__ import annotations

import os
import pickle
import socket
import threading
import time
import warnings
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from epsgauge.runner import site

CLIENT = "ray://"
PAYLOAD = ""  # the name of the bytes that all jobs share
RAYLET_GONE = "the node of Ray's cluster that this process is connected to is gone: its raylet died."
_LOOK_SECONDS = 1.0  # between two looks at head and raylet
_WAIT_SECONDS = 0.5  # after which new jobs are waited for too


class Session(NamedTuple):
    """Where to connect, and what each job needs."""

    address: str
    runtime_env: dict[str, Any] | None
    cpus: float
    gpus: float


def main(descriptor: str) -> None:
    """Until the run says that it leaves, or is gone itself."""
    pipe = Connection(int(descriptor))
    try:
        session: Session = pipe.recv()
        try:
            driver = _Driver(session, pipe)
        except Exception as error:
            pipe.send(("refused", f"{type(error).__name__}: {[*str(error).strip().splitlines(), ''][0]}"))
        else:
            driver.serve()
    except (EOFError, OSError):
        pass
    os._exit(0)  # Ray waits for a cluster that does not answer when a process ends as usual


class _Driver:
    def __init__(self, session: Session, pipe: Connection) -> None:
        self._ray, self._pipe = _connected(session), pipe
        self._needs = {"CPU": session.cpus, "GPU": session.gpus}
        # Ray would try again three times, whoever is to blame, and end a process after each job that has a GPU
        self._do = self._ray.remote(num_cpus=session.cpus, num_gpus=session.gpus, max_retries=0, max_calls=0)(_do)
        self._held: dict[str, list[Any]] = {}  # references in lists: not fetched for each job
        self._flying: dict[Any, int] = {}
        self._node = self._ray.get_runtime_context().get_node_id()
        self._raylet: tuple[str, int] | None = None  # where that of our node listens, if it can be reached
        self._lock, self._more = threading.Lock(), threading.Event()

    def serve(self) -> None:
        self._send("connected")
        for work in (self._fetch, self._count, self._look):
            threading.Thread(target=self._until_lost, args=(work,), daemon=True).start()
        while True:
            word, *rest = self._pipe.recv()
            if word == "leave":
                break
            try:
                self._obey(word, *rest)
            except Exception as error:
                self._lose(error)
        with suppress(Exception):
            for sent in list(self._flying):
                self._ray.cancel(sent, force=True)
            self._ray.shutdown()

    def _obey(self, word: str, *rest: Any) -> None:
        if word == "put":
            name, content = rest
            self._held[name] = [self._ray.put(content)]
        else:
            number, job, name = rest
            self._flying[self._do.remote(job, self._held[PAYLOAD], self._held[name])] = number
            self._more.set()

    def _until_lost(self, work: Any) -> None:
        try:
            while True:
                work()
        except Exception as error:  # the session is gone
            self._lose(error)

    def _lose(self, error: Exception) -> None:
        self._send("gone", f"the Ray cluster is gone ({type(error).__name__}).")

    def _send(self, *message: Any) -> None:
        with self._lock, suppress(OSError):  # a run that is gone is noticed where messages are received
            self._pipe.send(message)

    def _fetch(self) -> None:
        """Send what is done, as much as there is at a time."""
        flying = list(self._flying)
        if not flying:
            self._more.wait(_WAIT_SECONDS)
            self._more.clear()
            return
        done, others = self._ray.wait(flying, num_returns=1, timeout=_WAIT_SECONDS)
        if done and others:
            done += self._ray.wait(others, num_returns=len(others), timeout=0)[0]
        for sent in done:
            word, *rest = self._reply(sent)
            self._send(word, self._flying.pop(sent), *rest)

    def _reply(self, sent: Any) -> tuple[Any, ...]:
        """What became of one job. What Ray itself says is that a machine was lost, or an error of its own."""
        gone = self._ray.exceptions
        try:
            return "done", self._ray.get(sent)
        except (gone.RayTaskError, gone.RuntimeEnvSetupError) as error:
            return "error", str(error).strip().splitlines()[-1]
        except Exception:  # its process or its node died, or what it gave was lost with them
            return ("lost",)

    def _count(self) -> None:
        """Ask the head what there is, for which Ray may wait long."""
        has, nodes = self._ray.cluster_resources(), self._ray.nodes()
        rooms = [has.get(kind, 0.0) / need for kind, need in self._needs.items() if need]
        for node in nodes:
            if node["NodeID"] == self._node:
                raylet = node["NodeManagerAddress"], node["NodeManagerPort"]
                self._raylet = self._raylet or (raylet if _listens(raylet) else None)
                if not node["Alive"]:
                    self._send("gone", RAYLET_GONE)
        self._send("room", max(1, int(min(rooms, default=1.0))))
        time.sleep(_LOOK_SECONDS)

    def _look(self) -> None:
        """See whether the raylet is there: the head may be lost with it, and not answer."""
        if self._raylet is not None and not _listens(self._raylet):
            self._send("gone", RAYLET_GONE)
        time.sleep(_LOOK_SECONDS)


def _connected(session: Session) -> Any:
    """Ray with an open session."""
    import ray

    client = session.address.startswith(CLIENT)
    host = session.address.rpartition(":")[0]
    # Ray would put the machine's own address in the place of a loopback one
    own = {"_node_ip_address": host} if host.startswith("127.") else {}
    quiet = {} if client else {"log_to_driver": False, "logging_level": "ERROR"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ray.init(address=session.address, runtime_env=session.runtime_env, **quiet, **own)
    return ray


def _listens(address: tuple[str, int]) -> bool:
    """Whether a process has this port, or may have: one that is too busy to answer has it."""
    try:
        socket.create_connection(address, timeout=_WAIT_SECONDS).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        return True
    return True


# What follows runs in a worker of Ray.


def _do(job: bytes, payload: list[Any], head: list[Any]) -> bytes:
    import cloudpickle  # type: ignore[import-untyped]
    import ray

    reply = site.played(pickle.loads(job), lambda: ray.get(payload[0]), lambda: ray.get(head[0]))
    pickled: bytes = cloudpickle.dumps(reply)
    return pickled
