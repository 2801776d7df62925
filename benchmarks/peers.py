"""Lower bounds of ε by other tools on given scores and bits, in an environment of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from epsgauge.stats.arrays import Floats, Ints

ENVIRONMENT = Path(__file__).parent.parent / ".venv-peers"
PACKAGES = ("jax-privacy==2.0.0", "privacy-estimates", "opake-auditing", "torch==2.13.0")

# A program reads scores and bits (runs, N) from a .npz and prints one bound per run, as JSON.
_READ = """
import json, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
given = np.load(sys.argv[1])
delta, threshold = float(given["delta"]), float(given["threshold"])
def say(bound):
    found, failed = [], None
    for s, b in zip(given["scores"], given["bits"]):
        try:
            found.append(float(bound(s, b)))
        except Exception as error:
            found.append(None)
            failed = f"{type(error).__name__}: {error}"
    print(json.dumps({"bounds": found, "failed": failed}))
"""
_JAX = """
from jax_privacy import auditing
say(lambda s, b: auditing.CanaryScoreAuditor(s[b == 1], s[b == 0]).CALL)
"""
OPAKE = """
import opake.auditing as auditing
from opake.random import key
CoinFlip = type(auditing.coin_flip(range(4), num_canaries=4, key=key(0)))
def bound(s, b):
    ids, heads = np.arange(len(s)), b == 1
    flip = CoinFlip(len(s), ids, heads, ids[heads], ids[~heads])
    scores = auditing.canary_scores(s, canary_indices=ids)
    return auditing.one_run(scores, coin_flip=flip).eps_delta().epsilon_at(delta=delta, significance=0.05)
say(bound)
"""
_AUTHORS = """
from privacy_estimates import AttackResults, compute_eps_lo_hi
def bound(s, b):
    said, one = s >= threshold, b == 1
    cells = {"FN": ~said & one, "FP": said & ~one, "TN": ~said & ~one, "TP": said & one}
    counts = AttackResults(**{name: int(cell.sum()) for name, cell in cells.items()})
    return compute_eps_lo_hi(count=counts, delta=delta, alpha=0.1, method="METHOD")[0]
say(bound)
"""


def by_jax_privacy(call: str) -> str:
    """The program of a call on its CanaryScoreAuditor."""
    return _JAX.replace("CALL", call)


def by_authors(method: str) -> str:
    """The program of a method of privacy-estimates, for the rule at the threshold."""
    return _AUTHORS.replace("METHOD", method)


@dataclass(frozen=True)
class Answer:
    """One bound for each run that gave one; how many did not, and why."""

    bounds: Floats
    n_failed: int = 0
    why: str = ""


def bounds(
    python: Path, program: str, scores: Floats, bits: Ints, *, delta: float, threshold: float = 0.0, limit: float
) -> Answer:
    """Of each row of `scores` and `bits`, at one-sided 95 %, in one process that is stopped after `limit` seconds."""
    with tempfile.TemporaryDirectory() as folder:
        draws = Path(folder) / "draws.npz"
        np.savez(draws, scores=scores, bits=bits, delta=delta, threshold=threshold)
        command, one_thread = [str(python), "-c", _READ + program, str(draws)], {**os.environ, "OMP_NUM_THREADS": "1"}
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=limit, env=one_thread)
        except subprocess.TimeoutExpired:
            return Answer(np.empty(0), len(scores), f"no answer within {limit:.0f} s")
    if done.returncode:
        return Answer(np.empty(0), len(scores), done.stderr.strip().splitlines()[-1])
    said = json.loads(done.stdout.strip().splitlines()[-1])
    found = np.array([x for x in said["bounds"] if x is not None], float)
    return Answer(found, len(scores) - len(found), said["failed"] or "")


def environment(home: Path = ENVIRONMENT) -> Path:
    """The peers' own Python, made with pip when it is first needed."""
    python = home / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python
