"""What a cluster costs: jobs a second, memory of the driver, bytes and efficiency, on worker processes, Dask and Ray.

python benchmarks/scale.py            # 1e3 and 1e4 models that take no time
python benchmarks/scale.py --long     # and 1e5
python benchmarks/scale.py --only dask
"""

from __future__ import annotations

import argparse
import os
import pickle
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from local_clusters import DaskCluster, RayCluster

import epsgauge as eg
from epsgauge.runner.crew import Crew
from epsgauge.runner.executors import crew_for
from epsgauge.runner.fleet import Fleet
from epsgauge.runner.progress import Watch
from epsgauge.runner.site import Job

WORKERS = 2


@dataclass(frozen=True)
class Sleeps:
    """A model that takes a known time and no CPU."""

    seconds: float = 0.0

    def train(self, data, *, seed):
        time.sleep(self.seconds)
        return seed

    def losses(self, model, points):
        return np.random.default_rng(model).normal(size=len(points[0]))


class Times(Watch):
    """When models were done, and what the driver had used by then: CPU seconds and bytes."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, float, int, int]] = []
        self.n = 0

    def finished_one(self, outcome, progress) -> None:
        self.n += 1
        if self.n < 50 or self.n % 500 == 0:  # few, so that they take no memory of their own
            self.note()

    def note(self) -> None:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        self.seen.append((time.perf_counter(), time.process_time(), pages * os.sysconf("SC_PAGE_SIZE"), self.n))


def plan(n_models: int, seconds: float = 0.0) -> eg.Plan:
    game = {"train_size": 20, "reference_size": 10, "challenge": "explicit", "canaries": "zeros", "control_models": 0}
    return eg.Plan(
        name="scale",
        n_models=n_models,
        data={"use": "zeros", "size": 60},
        trainer=Sleeps(seconds),
        game=game,
        audit={"attack": "difference"},
        probe=False,
    )


def timed(n_models: int, seconds: float, where: dict) -> Times:
    watch = Times()
    with tempfile.TemporaryDirectory() as folder:
        eg.run(plan(n_models, seconds), out=Path(folder, "run"), watch=watch, **where)
    watch.note()
    return watch


def rate(watch: Times) -> tuple[float, float, float]:
    """Models a second, CPU milliseconds of the driver for each, and bytes that it grew by for each."""
    late = [each for each in watch.seen if each[3] >= watch.n // 10]
    (t0, cpu0, rss0, n0), (t1, cpu1, rss1, n1) = late[0], late[-2] if len(late) > 2 else late[-1]
    n = max(1, n1 - n0)
    return n / (t1 - t0), 1e3 * (cpu1 - cpu0) / n, (rss1 - rss0) / n


def efficiency(watch: Times, seconds: float, workers: int = WORKERS) -> tuple[float, float]:
    """The time that models took over the time that workers had, and CPU milliseconds of the driver for each model."""
    first = next(each for each in watch.seen if each[3] >= 2 * workers)  # those before wait for processes to start
    (t0, cpu0, _, n0), (t1, cpu1, _, n1) = first, watch.seen[-1]
    return seconds * (n1 - n0) / (workers * (t1 - t0)), 1e3 * (cpu1 - cpu0) / (n1 - n0)


def bytes_of_a_job(where: dict) -> str:
    """What is sent for one model, beside what is sent once."""
    crew: Crew = crew_for(plan(10), where.get("executor"), where.get("workers"))
    try:
        if isinstance(crew, Fleet):
            job = Job(crew.run, f"{crew.run}-0", [[12345]], False)
            return f"{len(pickle.dumps(job))} bytes a job, {len(crew.payload)} once for each worker"
        return "the plan once for each worker; points and numbers with each job"
    finally:
        crew.leave(at_once=True)


@contextmanager
def places(only: str | None, workers: int) -> Iterator[dict[str, dict]]:
    """Where models can be trained, each with so many workers."""
    with ExitStack() as stack:
        found: dict[str, dict] = {"loky": {"workers": workers}}
        if only != "ray":
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            found["dask"] = {"executor": eg.Dask(stack.enter_context(DaskCluster(folder, workers)).address)}
        if only != "dask":
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            found["ray"] = {"executor": eg.Ray(stack.enter_context(RayCluster(folder, workers)).address)}
        yield found


def compare_rates(there: dict[str, dict], sizes: list[int]) -> None:
    print(f"models that take no time, {WORKERS} workers; the load of this machine is {os.getloadavg()[0]:.1f}")
    print(f"{'':6}{'models':>8}{'models/s':>10}{'of loky':>9}{'driver CPU, ms':>16}{'bytes grown':>13}")
    for size in sizes:
        first = None
        for name, where in there.items():
            speed, cpu, grown = rate(timed(size, 0.0, where))
            first = first or speed
            print(f"{name:6}{size:>8}{speed:>10.0f}{speed / first:>9.2f}{cpu:>16.2f}{grown:>13.0f}", flush=True)
    print()
    for name, where in there.items():
        print(f"{name:6}{bytes_of_a_job(where)}")


def compare_efficiency(there: dict[str, dict], workers: int) -> None:
    for seconds, n in ((0.1, 100 * workers), (1.0, 20 * workers)):
        first = None
        for name, where in there.items():
            found, cpu = efficiency(timed(n, seconds, where), seconds, workers)
            first = first or found
            print(f"{name:6}{workers:>8}{seconds:>9}{found:>12.3f}{found / first:>9.2f}{cpu:>16.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="1e3 models alone")
    parser.add_argument("--long", action="store_true", help="1e5 models, too")
    parser.add_argument("--only", choices=["dask", "ray"], help="beside worker processes")
    args = parser.parse_args()
    sizes = [1000] if args.short else [1000, 10_000, *([100_000] if args.long else [])]
    with places(args.only, WORKERS) as there:
        compare_rates(there, sizes)
    print("\nefficiency: the time that models take, over the time that workers had")
    print(f"{'':6}{'workers':>8}{'seconds':>9}{'efficiency':>12}{'of loky':>9}{'driver CPU, ms':>16}")
    for workers in (1, 2):
        with places(args.only, workers) as there:
            compare_efficiency(there, workers)


if __name__ == "__main__":
    main()
