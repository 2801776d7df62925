"""How long a full rerun of the paper takes on 8, 64 and 512 GPUs: a simulation with overheads that are measured here.

The paper trained 6,666 models in roughly 10,000 GPU hours: six settings with 1000, 100, 10 and 1 models, each of which
took 1.5 hours. How much training times vary, how long a worker takes to start and what a job costs the driver are
measured first, on a Dask cluster of this machine. That a GPU is lost once in 1,000 hours is assumed.

python benchmarks/rerun.py
"""

from __future__ import annotations

import heapq
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from scale import DaskCluster

import epsgauge as eg
from epsgauge.games.signals import Outcome
from epsgauge.runner.progress import Progress, Watch

SETTINGS, SIZES, GPU_HOURS = 6, (1000, 100, 10, 1), 10_000.0
HOURS = GPU_HOURS / (SETTINGS * sum(SIZES))  # of one model
LOST_EVERY = 1000.0  # GPU hours; an assumption
GPUS = (8, 64, 512)
REPEATS = 20


@dataclass(frozen=True)
class Measured:
    spread: float  # of training times: standard deviation over mean
    start: float  # hours from a worker's first job to the beginning of its first model
    driver: float  # hours of the driver's CPU for one job


class Seen(Watch):
    """When each model was done, the CPU seconds that the driver had used by then, and how long the model took."""

    def __init__(self) -> None:
        self.begun = time.perf_counter()
        self.rows: list[tuple[float, float, float]] = []

    def finished_one(self, outcome: Outcome, progress: Progress) -> None:
        self.rows.append((time.perf_counter() - self.begun, time.process_time(), outcome.seconds))


def measured() -> Measured:
    """From real trainings on a cluster of two workers."""
    trainer = {
        "use": "dpsgd",
        "model": "mlp",
        "epochs": 4,
        "batch_size": 50,
        "noise_multiplier": 1.0,
        "engine": "opacus",
    }
    game = {"train_size": 500, "reference_size": 100, "control_models": 0}
    plan = eg.Plan(
        name="spread",
        n_models=40,
        data="digits",
        trainer=trainer,
        game=game,
        adversary={"preset": "black-box"},
        probe=False,
    )
    watch = Seen()
    with TemporaryDirectory() as folder, TemporaryDirectory() as logs, DaskCluster(logs, 2) as cluster:
        watch.begun = time.perf_counter()
        eg.run(plan, out=Path(folder, "run"), watch=watch, executor=eg.Dask(cluster.address))
    done, cpu, seconds = np.array(watch.rows).T
    usual = seconds[4:]  # the first models of a process wait for imports
    driver = (cpu[-1] - cpu[4]) / (len(cpu) - 5)
    return Measured(float(usual.std() / usual.mean()), (done[0] - seconds[0]) / 3600, driver / 3600)


def simulated(gpus: int, jobs: list[int], found: Measured, rng: np.random.Generator) -> dict[str, float]:
    """Hours until all models are done, where each of `jobs` is a plan that begins when the one before has ended."""
    at = lost = idle = busy = 0.0
    for n in jobs:
        # a log-normal law of the measured spread; whoever is free takes the next model
        sigma = np.sqrt(np.log1p(found.spread**2))
        hours = list(HOURS * rng.lognormal(-(sigma**2) / 2, sigma, size=n))
        free = [at + found.start] * gpus
        driver, end = at, at
        while hours:
            took = hours.pop()
            begin = heapq.heappop(free)
            driver = max(driver, begin) + found.driver  # one after the other
            fails = rng.exponential(LOST_EVERY)
            if fails < took:
                lost += fails
                hours.append(took)
                heapq.heappush(free, max(begin, driver) + fails + found.start)
                continue
            busy += took
            end = max(end, max(begin, driver) + took)
            heapq.heappush(free, max(begin, driver) + took)
        idle += sum(max(0.0, end - each) for each in free)
        at = end
    models = sum(jobs)
    return {"hours": at, "busy": busy, "lost": lost, "idle": idle, "driver": models * found.driver, "gpus": gpus}


TRAINING = "the trainings themselves"


def said(rows: list[dict[str, float]]) -> str:
    """Days, the share of the GPUs' time that models take, and where most of the rest goes."""
    mean = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
    whole = mean["hours"] * mean["gpus"]
    useful = mean["busy"] / whole
    others = {
        "GPUs that wait for a plan's last models": mean["idle"] / whole,
        "work that lost GPUs had done": mean["lost"] / whole,
        "the driver": mean["driver"] / mean["hours"],
    }
    worst = max(others, key=lambda name: others[name])
    bottleneck = TRAINING if useful > 0.9 else worst
    return f"{mean['hours'] / 24:>8.1f}{useful:>12.3f}{others[worst]:>8.3f}  {worst:<42}{bottleneck}"


def main() -> None:
    found = measured()
    print(
        f"measured: training times vary by {found.spread:.1%}; a worker's first model begins after "
        f"{found.start * 3600:.1f} s; a job costs the driver {found.driver * 3.6e6:.1f} ms of CPU.\n"
        f"assumed: a GPU is lost once in {LOST_EVERY:g} hours.\n"
    )
    print(f"{'GPUs':>5} {'plans':<20}{'days':>8}{'efficiency':>12}{'next':>8}  {'which is':<42}bottleneck")
    plans = [n for n in SIZES for _ in range(SETTINGS)]
    for gpus in GPUS:
        for name, jobs in (("one after another", plans), ("all at once", [sum(plans)])):
            rng = np.random.default_rng(gpus)
            rows = [simulated(gpus, jobs, found, rng) for _ in range(REPEATS)]
            print(f"{gpus:>5} {name:<20}{said(rows)}", flush=True)


if __name__ == "__main__":
    main()
