"""Models on a Ray cluster: its tasks are our jobs, with the CPUs and GPUs that the plan asks for."""

from __future__ import annotations

import atexit
import pickle
import socket
import threading
import time
import warnings
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from epsgauge.errors import EpsgaugeError, InvalidInput, MissingExtra
from epsgauge.runner import site
from epsgauge.runner.crew import Crew, JobLost
from epsgauge.runner.fleet import REMEDY, Fleet
from epsgauge.runner.plan import Plan
from epsgauge.runner.site import Job, Reply

_CONNECT_SECONDS = 10  # in which somebody must listen
_COUNT_SECONDS = 2.0  # how long a number of workers holds
_BACK_SECONDS = 40.0  # in which the head must answer: after 60 Ray itself would end this process
_WAIT_SECONDS = 0.5  # after which new jobs are waited for too
_LOOK_SECONDS = 1.0  # how often the raylet is looked for
_LEAVE_SECONDS = 5
_CLIENT = "ray://"
_RAYLET_GONE = "the node of Ray's cluster that this process is connected to is gone: its raylet died."


class Ray:
    """A Ray cluster as an executor: "auto", host:port or ray://host:port; a session that is open is used as it is."""

    def __init__(self, address: str = "auto") -> None:
        if not isinstance(address, str) or not address:
            raise InvalidInput(f'a Ray cluster must be "auto", host:port or ray://host:port, but got {address!r}.')
        self._address = address

    def crew(self, plan: Plan) -> Crew:
        return _RayCrew(plan, self._address)


class _RayCrew(Fleet):
    def __init__(self, plan: Plan, address: str) -> None:
        super().__init__(plan)
        self._ray, self._ours = _connected(address)
        cpus, gpus = plan.execution.cpus_per_model, plan.execution.gpus_per_model
        self._needs = {"CPU": 1.0 if cpus is None else cpus, "GPU": gpus or 0.0}
        # Ray would try again three times, whoever is to blame, and end a process after each job that has a GPU
        self._do = self._ray.remote(
            num_cpus=self._needs["CPU"], num_gpus=self._needs["GPU"], max_retries=0, max_calls=0
        )(_do)
        self._payload = [self._ray.put(self.payload)]  # in a list: not fetched for each job
        self._heads_put: dict[str, list[Any]] = {}
        self._flying: dict[Any, Future[Any]] = {}
        self._node = self._ray.get_runtime_context().get_node_id()
        self._room, self._silent = 1, 0.0
        self._gone: str | None = None  # why nothing more will come
        self._raylet: tuple[str, int] | None = None  # where that of our node listens, if it can be reached
        self._more, self._over = threading.Event(), threading.Event()
        with suppress(Exception):
            self._count()
        self._waits = threading.Thread(target=self._wait, daemon=True)
        self._waits.start()
        threading.Thread(target=self._watch, daemon=True).start()

    @property
    def in_flight(self) -> int:
        """Two for each model that the cluster has room for, so that none waits for the next."""
        return 2 * self._room

    def _count(self) -> None:
        """Ask the head what there is, for which Ray may wait long."""
        has, nodes = self._ray.cluster_resources(), self._ray.nodes()
        rooms = [has.get(kind, 0.0) / need for kind, need in self._needs.items() if need]
        self._room = max(1, int(min(rooms, default=1.0)))
        for node in nodes:
            if node["NodeID"] == self._node:
                raylet = node["NodeManagerAddress"], node["NodeManagerPort"]
                self._gone = self._gone if node["Alive"] else _RAYLET_GONE
                self._raylet = self._raylet or (raylet if _listens(raylet) else None)
        self._silent = 0.0

    def _watch(self) -> None:
        """Ask now and then; runs in a thread."""
        while not self._over.wait(_COUNT_SECONDS):
            with suppress(Exception):
                self._count()

    def _look(self, seconds: float) -> None:
        """See whether raylet and head are there; `seconds` have passed since the last time."""
        # no more than a look may take is added: this process may have been stopped in between
        self._silent += min(seconds, 2 * _LOOK_SECONDS)
        if self._raylet is not None and not _listens(self._raylet):
            self._gone = _RAYLET_GONE
        elif self._silent > _BACK_SECONDS:
            self._gone = f"the head of Ray's cluster has not answered for {_BACK_SECONDS:g} seconds."

    def publish(self, name: str, head: bytes) -> None:
        self._heads_put[name] = [self._ray.put(head)]

    def send(self, job: Job, future: Future[Any]) -> None:
        try:
            sent = self._do.remote(pickle.dumps(job), self._payload, self._heads_put[job.head])
        except Exception as error:
            raise EpsgaugeError(f"the Ray cluster is gone ({type(error).__name__}). {REMEDY}") from None
        self._flying[sent] = future
        self._more.set()

    def _wait(self) -> None:
        """Fetch what is done, as much as there is at a time; runs in a thread."""
        looked = time.monotonic()
        while not self._over.is_set():
            if (since := time.monotonic() - looked) > _LOOK_SECONDS:
                self._look(since)
                looked = time.monotonic()
            if self._gone is not None:
                self.fail(self._flying, self._gone)
            flying = list(self._flying)
            if not flying:
                self._more.wait(_WAIT_SECONDS)
                self._more.clear()
                continue
            try:
                done, others = self._ray.wait(flying, num_returns=1, timeout=_WAIT_SECONDS)
                if done and others:
                    done += self._ray.wait(others, num_returns=len(others), timeout=0)[0]
            except Exception as error:  # the session is gone
                self._gone = f"the Ray cluster is gone ({type(error).__name__})."
                continue
            for sent in done:
                reply = self._reply(sent)
                self.settle(self._flying.pop(sent), reply)

    def _reply(self, sent: Any) -> Reply | Exception:
        """What became of one job. What Ray itself says is that a machine was lost, or an error of its own."""
        gone = self._ray.exceptions
        try:
            reply: Reply = self._ray.get(sent)
            return reply
        except (gone.RayTaskError, gone.RuntimeEnvSetupError) as error:
            text = str(error).strip().splitlines()[-1]
            return EpsgaugeError(
                f"a Ray worker could not do a job ({text}). Install the same packages on all machines."
            )
        except Exception:  # its process or its node died, or what it gave was lost with them
            return JobLost(vanished=True)

    def leave(self, *, at_once: bool) -> None:
        """Jobs that are under way end with their workers; processes that wait for more end by themselves."""
        for sent in [] if self._gone else list(self._flying):
            with suppress(Exception):
                self._ray.cancel(sent, force=True)
        self._over.set()
        self._more.set()
        self._waits.join(_LEAVE_SECONDS)
        self._flying.clear()
        self._heads_put.clear()
        if self._ours and self._gone:
            self._shut_down_gone()
        elif self._ours:
            with suppress(Exception):
                self._ray.shutdown()

    def _shut_down_gone(self) -> None:
        """Ray may wait for ever for what does not answer, and would do so again when this process ends."""
        ends = threading.Thread(target=self._ray.shutdown, daemon=True)
        ends.start()
        ends.join(_LEAVE_SECONDS)
        if ends.is_alive():
            atexit.unregister(self._ray.shutdown)


def _connected(address: str) -> tuple[Any, bool]:
    """Ray with an open session, and whether it is ours to close."""
    try:
        import ray
    except ImportError:
        raise MissingExtra("--ray needs Ray. Install it with: pip install '.[ray]' in the folder of epsgauge") from None
    if ray.is_initialized():
        return ray, False
    host = _check_listens(address)
    # Ray would put the machine's own address in the place of a loopback one
    own = {"_node_ip_address": host} if host.startswith("127.") and not address.startswith(_CLIENT) else {}
    quiet = {} if address.startswith(_CLIENT) else {"log_to_driver": False, "logging_level": "ERROR"}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ray.init(address=address, **quiet, **own)
    except Exception as error:
        raise InvalidInput(
            f"there is no Ray cluster at {address} ({type(error).__name__}: {str(error).strip().splitlines()[0]}). "
            "Start one with `ray start --head`, or see whether the address is right."
        ) from None
    return ray, True


def _listens(address: tuple[str, int]) -> bool:
    """Whether a process has this port, or may have: one that is too busy to answer has it."""
    try:
        socket.create_connection(address, timeout=_WAIT_SECONDS).close()
    except ConnectionRefusedError:
        return False
    except OSError:
        return True
    return True


def _check_listens(address: str) -> str:
    """The host of an address, where somebody listens: Ray itself would try for long."""
    where = address.removeprefix(_CLIENT)
    host, colon, port = where.rpartition(":")
    if not colon:
        return ""
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except (OSError, ValueError) as error:
        raise InvalidInput(
            f"there is no Ray cluster at {address}: nobody listens there ({type(error).__name__}). Start one with "
            "`ray start --head`, or see whether the address is right."
        ) from None
    return host


# What follows runs in a worker of Ray.


def _do(job: bytes, payload: list[Any], head: list[Any]) -> Reply:
    import ray

    return site.played(pickle.loads(job), lambda: ray.get(payload[0]), lambda: ray.get(head[0]))
