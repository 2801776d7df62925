"""How long the command line takes to start, beside a bare import of NumPy and SciPy."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

EPSGAUGE = str(Path(sys.executable).with_name("epsgauge"))
COUNTS = ["--tp", "31", "--tn", "996", "--fp", "5", "--fn", "968", "--delta", "1e-5"]
BASE = "python -c 'import numpy, scipy.special'"
ANSWER = "epsgauge estimate"
COMMANDS: dict[str, list[str]] = {
    BASE: [sys.executable, "-c", "import numpy, scipy.special"],
    "epsgauge --help": [EPSGAUGE, "--help"],
    ANSWER: [EPSGAUGE, "estimate", *COUNTS],
}


@dataclass(frozen=True)
class Start:
    """Median milliseconds of a command with the quartiles of its CPU time, and ratios to BASE."""

    command: str
    cpu: float
    cpu_quartiles: tuple[float, float]
    wall: float
    cpu_ratio: float
    wall_ratio: float


def measure(rounds: int) -> dict[str, Start | None]:
    """All commands once a round, after one round that is not counted; None for a command that fails."""
    with tempfile.TemporaryDirectory() as cache:
        # as installed: compiled files are there from the second start on, whatever this shell says of them
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": cache, "PYTHONDONTWRITEBYTECODE": ""}
        works = [name for name, command in COMMANDS.items() if _run(command, environment) is not None]
        spent: dict[str, list[tuple[float, float]]] = {name: [] for name in works}
        for _ in range(rounds):
            for name in works:
                spent[name].append(_run(COMMANDS[name], environment) or (np.nan, np.nan))
    return {name: _start(name, spent[name], spent[BASE]) if name in works else None for name in COMMANDS}


def _start(name: str, spent: list[tuple[float, float]], base: list[tuple[float, float]]) -> Start:
    times = 1e3 * np.array(spent)
    low, cpu, high = np.percentile(times[:, 0], [25, 50, 75])
    cpu_ratio, wall_ratio = np.median(np.divide(spent, base), axis=0)
    return Start(name, cpu, (low, high), float(np.median(times[:, 1])), cpu_ratio, wall_ratio)


def _run(command: list[str], environment: dict[str, str]) -> tuple[float, float] | None:
    """CPU and wall-clock seconds of one run, None if it fails."""
    start = time.perf_counter()
    try:
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
    except OSError:
        return None
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    return None if child.returncode else (usage.ru_utime + usage.ru_stime, wall)
