"""The package of the paper's authors, `privacy-estimates`, run in a virtual environment of its own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

from tallies import Cells

PACKAGE = "privacy-estimates==0.1.0.post1"
HOME = Path(__file__).parent / ".venv-peers"

# Each takes up to minutes.
TALLIES: tuple[Cells, ...] = (
    (31, 996, 5, 968),  # an attack of the paper
    (1000, 1000, 0, 0),  # a perfect attack
    (940, 960, 40, 60),  # a good attack
    (492, 0, 508, 0),  # an attack that always says 1
)

_CALL = """
import json, sys, time
from privacy_estimates import AttackResults, compute_eps_lo_hi
tp, tn, fp, fn, delta, level = json.loads(sys.argv[1])
count = AttackResults(FN=fn, FP=fp, TN=tn, TP=tp)
start = time.process_time()
ends = compute_eps_lo_hi(count=count, delta=delta, alpha=1 - level, method="joint-beta")
print(json.dumps([time.process_time() - start, *map(float, ends)]))
"""


@dataclass(frozen=True)
class Answer:
    """What one call gave after so many CPU seconds: both ends, or the reason why there are none."""

    cells: Cells
    seconds: float
    ends: tuple[float, float] | None
    failure: str = ""


def prepare(home: Path) -> Path:
    """The Python of the environment in `home`, which is made if it is not there."""
    python = home / "bin" / "python"
    if not python.exists():
        print(f"installing {PACKAGE} into {home}", file=sys.stderr)
        venv.create(home, with_pip=True)
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE]
    subprocess.run(command, check=True, stdout=sys.stderr)
    return python


def interval(python: Path, cells: Cells, *, delta: float, level: float, limit: float) -> Answer:
    """One interval in a process of its own, stopped after `limit` seconds."""
    command = [str(python), "-W", "ignore", "-c", _CALL, json.dumps([*cells, delta, level])]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    before = _spent_by_children()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=environment)
    except subprocess.TimeoutExpired:
        return Answer(cells, _spent_by_children() - before, None, f"no answer within {limit:g} s")
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return Answer(cells, _spent_by_children() - before, None, lines[-1] if lines else f"exit {done.returncode}")
    seconds, low, high = json.loads(done.stdout.splitlines()[-1])
    return Answer(cells, seconds, (low, high))


def _spent_by_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime
