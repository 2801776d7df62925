"""Clusters of a few processes on this machine alone, for tests and `tools/soak.py`."""

from __future__ import annotations

import ctypes
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from patience import until

PIPELINES = Path(__file__).parent / "pipelines"
RAY_HOST = "127.0.0.2"  # Ray would put the machine's own address in the place of 127.0.0.1
# Ray reads these when it is imported, here and in the processes of a cluster. The token is thrown away.
os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32), RAY_USAGE_STATS_ENABLED="0")
os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"  # or it warns of what will change


def free_port(host="127.0.0.1"):
    with socket.socket() as probe:
        probe.bind((host, 0))
        return probe.getsockname()[1]


def listens(host, port):
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex((host, port)) == 0


def _die_with_parent():
    """However this process ends, the cluster does, too; Linux alone can do that."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


@contextmanager
def process(*words, log, **environment):
    """A process with all that it starts, until the end of the block."""
    with Path(log).open("ab") as out:
        started = subprocess.Popen(
            [sys.executable, *words],
            stdout=out,
            stderr=out,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1", **environment},
            preexec_fn=_die_with_parent,
        )
        try:
            yield started
        finally:
            started.terminate()
            with suppress(subprocess.TimeoutExpired):
                started.wait(10)
            with suppress(ProcessLookupError):
                os.killpg(started.pid, signal.SIGKILL)
            started.wait()


def scheduler(port, log):
    words = ("-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", str(port), "--no-dashboard")
    return process(*words, log=log)


def worker(address, log, threads=1):
    words = ("-m", "distributed.cli.dask_worker", address, "--nthreads", str(threads), "--host", "127.0.0.1")
    return process(*words, "--no-dashboard", "--local-directory", str(Path(log).parent), log=log)


class DaskCluster:
    """A scheduler and workers, each with a nanny that starts it again."""

    def __init__(self, folder, workers=2):
        self.port = free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self._folder, self._workers = Path(folder), workers
        self._stack = ExitStack()

    def __enter__(self):
        self.nannies = []
        self._stack.callback(self._end_scheduler)
        self._start_scheduler()
        for i in range(self._workers):
            self.nannies.append(self._stack.enter_context(worker(self.address, self._folder / f"worker-{i}.log")))
        return self

    def __exit__(self, *error):
        self._stack.close()

    @property
    def pid(self):
        """Of the process that the others are below."""
        return os.getpid()

    def _start_scheduler(self):
        self._scheduler = ExitStack()
        self._scheduler.enter_context(scheduler(self.port, self._folder / "scheduler.log"))
        until(lambda: listens("127.0.0.1", self.port), "a scheduler listens")

    def _end_scheduler(self):
        self._scheduler.close()

    def restart_scheduler(self):
        """Another one at the same address, which knows nothing of the jobs; its workers are started again, too."""
        self._end_scheduler()
        self._start_scheduler()
        for i, nanny in enumerate(self.nannies):
            nanny.kill()  # one that lost its scheduler ends by itself; one that had just begun finds the new one
            nanny.wait()
            self.nannies[i] = self._stack.enter_context(worker(self.address, self._folder / f"again-{i}.log"))

    def victims(self):
        """The processes of workers, which may be killed."""
        return [pid for nanny in self.nannies for pid in children(nanny.pid) if b"spawn_main" in command(pid)]


class RayCluster:
    """A head that trains, too, and further nodes with addresses of their own, which can be lost."""

    def __init__(self, folder, cpus=2):
        self.port = free_port(RAY_HOST)
        self.address = f"{RAY_HOST}:{self.port}"
        self.nodes = []
        self._folder, self._cpus = Path(folder), cpus
        self._stack = ExitStack()

    def __enter__(self):
        short = self._stack.enter_context(tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True))
        words = (
            "--head",
            "--block",
            f"--node-ip-address={RAY_HOST}",
            f"--port={self.port}",
            "--include-dashboard=false",
        )
        sizes = (f"--num-cpus={self._cpus}", "--object-store-memory=80000000", f"--temp-dir={short}")
        self.head = self._started("ray.log", *words, *sizes, "--disable-usage-stats")
        return self

    def _started(self, name, *words):
        log, script = self._folder / name, "from ray.scripts.scripts import main; main()"
        node = self._stack.enter_context(process("-c", script, "start", *words, log=log))
        until(lambda: b"Ray runtime started" in log.read_bytes() or node.poll() is not None, "a node starts")
        if node.poll() is not None:
            self._stack.close()
            raise RuntimeError(f"the node ended: {log.read_text(encoding='utf-8')[-2000:]}")
        return node

    def add_node(self):
        host = f"127.0.0.{3 + len(self.nodes)}"
        words = (f"--address={self.address}", f"--node-ip-address={host}", "--num-cpus=1", "--block")
        self.nodes.append(self._started(f"node-{host}.log", *words, "--object-store-memory=80000000"))

    def lose_node(self):
        """A machine that vanishes with all that runs there."""
        node = self.nodes.pop()
        for pid in [*descendants(node.pid), node.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def __exit__(self, *error):
        self._stack.close()

    @property
    def pid(self):
        return self.head.pid

    def victims(self):
        """Workers. Ray's agents are called ray::, too, and a node without them ends."""
        return [pid for pid in descendants(self.head.pid) if command(pid).startswith((b"ray::IDLE", b"ray::_do"))]


DRIVER = """
import json, sys
import epsgauge as eg
from epsgauge.runner.progress import Watch

out, parts, n_models, kind, address = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:]

class Tell(Watch):
    def finished_one(self, outcome, progress):
        print(outcome.index, flush=True)

plan = eg.Plan(n_models=n_models, **parts)
eg.run(plan, out=out, executor=eg.Dask(address) if kind == "dask" else eg.Ray(address), watch=Tell())
"""


def kill_a_driver(out, parts, n_models, cluster, after):
    """Start a run on a cluster in a process of its own, and kill that once it has stored so many models."""
    kind = "dask" if isinstance(cluster, DaskCluster) else "ray"
    words = [sys.executable, "-c", DRIVER, str(out), json.dumps(parts), str(n_models), kind, cluster.address]
    path = os.pathsep.join([str(PIPELINES), *filter(None, [os.environ.get("PYTHONPATH")])])
    driver = subprocess.Popen(words, stdout=subprocess.PIPE, encoding="utf-8", env={**os.environ, "PYTHONPATH": path})
    told = [driver.stdout.readline() for _ in range(after)]
    driver.kill()
    driver.wait()
    driver.stdout.close()
    assert all(told), "the run ended before it was killed"


def children(pid):
    """Those that any of its threads has started."""
    found = []
    for thread in Path(f"/proc/{pid}/task").glob("*"):
        with suppress(OSError):
            found += map(int, (thread / "children").read_text(encoding="utf-8").split())
    return found


def descendants(pid):
    found = children(pid)
    return [*found, *(below for child in found for below in descendants(child))]


def command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def kill_one(victims, but, rng):
    """Kill one of the processes that `victims()` gives, once there is one that is not among `but`; its number."""
    found = []

    def there():
        found[:] = sorted(set(victims()) - set(but))
        return found

    until(there, "there is a process to kill")
    pid = rng.choice(found)
    with suppress(ProcessLookupError):  # it has just ended by itself, which is no worse
        os.kill(pid, signal.SIGKILL)
    return pid
