"""Clusters that lose their head, and workers that are stopped, while a run is under way."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from faults.count import Count

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "pipelines"))

import killing
from local_clusters import PIPELINES, DaskCluster, RayCluster, command, descendants

import epsgauge as eg
from epsgauge.games.seeds import Branch, training_seed
from epsgauge.runner.executors import InProcess

SECONDS = 180  # after which a run hangs; a busy machine takes long to start a cluster
N_MODELS = 60
BEFORE = 4  # models that are stored when the fault is done
# Models that stop their process, or once the worker of the cluster, or once their process after they are trained
STOPPED, STOPPED_PARENT, STOPPED_AFTER = 9, 12, 15
# A run that tells each model that it has stored, and the sentence that it ends with. Clusters must answer sooner than
# by default, so that this takes less than minutes.
DRIVER = """
import json, sys
import epsgauge as eg
from epsgauge.errors import EpsgaugeError
from epsgauge.runner import on_dask, on_ray
from epsgauge.runner.progress import Watch

on_dask._BACK_SECONDS, on_dask._ANSWER_SECONDS, on_ray._BACK_SECONDS = 8.0, 2, 8.0
kind, address, out, parts = sys.argv[1:]

class Tell(Watch):
    def finished_one(self, outcome, progress):
        print(outcome.index, flush=True)

where = {"loky": lambda: None, "dask": lambda: eg.Dask(address), "ray": lambda: eg.Ray(address)}[kind]()
try:
    eg.run(eg.Plan(**json.loads(parts)), out=out, executor=where, workers=None if where else 2, watch=Tell())
except EpsgaugeError as error:
    print("sentence:", error, flush=True)
else:
    print("complete", flush=True)
"""
Victims = Callable[[Any], list[int]]


def campaign(scratch: Path) -> list[Count]:
    """One of each kind, on the clusters that are installed."""
    folder = scratch / "clusters"
    folder.mkdir()
    found = [_stopped("loky", folder)]
    if find_spec("distributed"):
        for name, number in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
            found.append(_headless("dask", f"a Dask scheduler that is {name}", _schedulers, number, folder))
        found.append(_stopped("dask", folder))
    if find_spec("ray"):
        raylet, head = _programs(b"raylet/raylet"), _programs(b"gcs_server")
        found.append(_headless("ray", "a Ray raylet that is killed", raylet, signal.SIGKILL, folder))
        for name, number in (("killed", signal.SIGKILL), ("stopped", signal.SIGSTOP)):
            found.append(_headless("ray", f"a Ray head that is {name}", head, number, folder))
        found.append(_stopped("ray", folder))
    return found


def _schedulers(cluster: Any) -> list[int]:
    return [pid for pid in descendants(os.getpid()) if b"dask_scheduler" in command(pid)]


def _programs(name: bytes) -> Victims:
    def victims(cluster: Any) -> list[int]:
        return [pid for pid in descendants(cluster.pid) if name in command(pid).split(b"\0")[0]]

    return victims


def _parts(trainer: dict[str, Any], timeout: float) -> dict[str, Any]:
    game = {"train_size": 20, "pairs_per_model": 2, "reference_size": 15, "control_models": 0}
    return {
        "name": "clusters",
        "n_models": N_MODELS,
        "probe": False,
        "data": "fast:data",
        "trainer": trainer,
        "game": game,
        "execution": {"timeout": timeout},
    }


def _headless(kind: str, fault: str, victims: Victims, number: int, folder: Path) -> Count:
    """Whoever hands out jobs is gone or does not answer: the run must end with a sentence and keep its models."""
    count, out = Count(fault, tried=1), folder / fault.replace(" ", "-")
    parts = _parts({"use": "fast:Mean", "nap": 1.0}, 30.0)

    def harm(cluster: Any) -> None:
        for pid in victims(cluster):
            os.kill(pid, number)

    told, last = _driven(kind, out, parts, harm, count)
    if last.startswith("sentence: "):
        count.refused += 1
    elif not count.hung:
        count.bad("traceback", f"it ended without a sentence: {last}")
    _check_store(out, told, count)
    return count


def _stopped(kind: str, folder: Path) -> Count:
    """A training that is stopped is recorded as failed; a process that is stopped after one, and a worker of a cluster,
    are replaced, and their models trained again.
    """
    count, out = Count(f"workers that are stopped ({kind})", tried=1), folder / f"stopped-{kind}"
    out.mkdir()
    seeds = {"stops": STOPPED, "stops_after": STOPPED_AFTER}
    seeds |= {} if kind == "loky" else {"stops_parent": STOPPED_PARENT}
    ways = {way: [training_seed(0, Branch.audited, index)] for way, index in seeds.items()}
    never: dict[str, list[int]] = {"raises": [], "crashes": [], "sleeps": []}
    parts = _parts({"use": "several_ways:Several", "once_in": str(out), **never, **ways}, 3.0)
    told, last = _driven(kind, out, parts, lambda cluster: None, count)
    if last != "complete" and not count.hung:
        count.bad("traceback", f"the run did not go on: {last}")
    if last == "complete" and [failure.index for failure in eg.Run.open(out).failed] != [STOPPED]:
        count.bad("wrong", f"failed are {[failure.index for failure in eg.Run.open(out).failed]}, not [{STOPPED}]")
    _check_store(out, told, count)
    return count


def _driven(
    kind: str, out: Path, parts: dict[str, Any], harm: Callable[[Any], None], count: Count
) -> tuple[list[int], str]:
    """The models that a run on such a cluster has told of, and its last line; after the first ones comes the harm."""
    errors = out.with_name(f"{out.name}.txt")
    with _cluster(kind, out) as cluster, errors.open("w") as stderr:
        words = [sys.executable, "-c", DRIVER, kind, getattr(cluster, "address", ""), str(out), json.dumps(parts)]
        path = os.pathsep.join([str(PIPELINES), *filter(None, [os.environ.get("PYTHONPATH")])])
        driver = subprocess.Popen(
            words,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        told, last = list[int](), ""
        before = signal.signal(signal.SIGALRM, lambda *_: driver.kill())
        signal.alarm(SECONDS)
        try:
            for line in driver.stdout or ():
                if line.strip().isdigit():
                    told.append(int(line))
                    if len(told) == BEFORE:
                        harm(cluster)
                elif line.startswith(("sentence: ", "complete")):
                    last = line.strip()
            if driver.wait() == -signal.SIGKILL:
                count.bad("hung", f"nothing more after model {len(told)}")
            elif driver.returncode:
                count.bad("traceback", f"the process ended with {driver.returncode}: {errors.read_text()[-500:]}")
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
    return told, last


def _cluster(kind: str, out: Path) -> Any:
    """A context manager of one."""
    if kind == "loky":
        return nullcontext()
    logs = out.with_name(f"{out.name}-logs")
    logs.mkdir()
    return DaskCluster(logs) if kind == "dask" else RayCluster(logs)


def _check_store(out: Path, told: list[int], count: Count) -> None:
    """All models that were told of are there, and those that are done are those of a run that was left in peace."""
    if not told:  # it hung before its first model, which is counted
        return
    held = {row[0]: row for row in killing.rows(out)}
    if missing := set(told) - set(held):
        count.bad("lost", f"models {sorted(missing)}")
    alone = out.parent / "alone"
    if not alone.exists():
        eg.run(eg.Plan(**_parts({"use": "fast:Mean"}, 30.0)), out=alone, executor=InProcess())
    expected = {row[0]: row for row in killing.rows(alone)}
    if any(row != expected[index] for index, row in held.items() if row[1] == "done") or not eg.verify(out).intact:
        count.bad("wrong", "models differ from those of a run left in peace")
