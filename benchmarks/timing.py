"""Time functions in interleaved rounds, on one thread of a machine that others may share."""

from __future__ import annotations

import os
import platform
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy

THREADS = "OMP_NUM_THREADS"


def on_one_thread() -> None:
    """Start this script again with OMP_NUM_THREADS=1 unless it has that: BLAS reads it when NumPy is imported."""
    if os.environ.get(THREADS) != "1":
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], {**os.environ, THREADS: "1"})


@dataclass(frozen=True)
class Job:
    """One competitor: `run` makes `intervals` intervals; it takes part in the first `rounds` rounds, if given."""

    name: str
    intervals: int
    run: Callable[[], object]
    rounds: int | None = None


@dataclass(frozen=True)
class Timing:
    """CPU milliseconds per interval, one entry a round."""

    ms: tuple[float, ...]

    @property
    def median(self) -> float:
        return float(np.median(self.ms))

    @property
    def quartiles(self) -> tuple[float, float]:
        low, high = np.percentile(self.ms, [25, 75])
        return float(low), float(high)

    def over(self, other: Timing) -> float:
        """Median over the rounds of how many times slower this is."""
        return float(np.median([a / b for a, b in zip(self.ms, other.ms, strict=False)]))


def interleave(jobs: list[Job], rounds: int) -> dict[str, Timing]:
    """Every job once a round, so that a busy spell of the machine meets all of them."""
    spent: dict[str, list[float]] = {job.name: [] for job in jobs}
    for i in range(rounds):
        for job in jobs:
            if job.rounds is None or i < job.rounds:
                start = time.process_time()
                job.run()
                spent[job.name].append((time.process_time() - start) / job.intervals * 1e3)
    return {name: Timing(tuple(ms)) for name, ms in spent.items()}


def peak_megabytes() -> float:
    """The largest resident size of this process until now."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def machine() -> dict[str, str]:
    """What the numbers were measured on."""
    return {
        "cpu": _cpu(),
        "cores": str(os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.1f} when the run began",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        THREADS: os.environ.get(THREADS, "not set"),
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
