"""The estimators of jax-privacy on the same scores, in an environment of its own that has it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np

from epsgauge.stats.arrays import Floats

HOME = Path(__file__).parent.parent / ".venv-peers"
NAMES = (
    "Clopper-Pearson, Bonferroni",
    "Clopper-Pearson, Split",
    "one run, Bonferroni",
    "one run, Split",
    "one run f-DP, Split",
)

_CALL = """
import json, sys, time
import numpy as np
from jax_privacy import auditing
path, name, delta, level, rounds = json.loads(sys.argv[1])
scores = np.load(path)
method, strategy = name.rsplit(", ", 1)
call = {"Clopper-Pearson": "clopper_pearson", "one run": "one_run", "one run f-DP": "one_run_fdp"}[method]
taken = []
for _ in range(rounds):
    start = time.process_time()
    chosen = auditing.Bonferroni() if strategy == "Bonferroni" else auditing.Split()
    auditor = auditing.CanaryScoreAuditor(in_canary_scores=scores["ins"], out_canary_scores=scores["outs"])
    eps = getattr(auditor, f"epsilon_{call}")(significance=1 - level, delta=delta, threshold_strategy=chosen)
    taken.append(time.process_time() - start)
print(json.dumps([float(np.median(taken)), float(eps)]))
"""


def available(home: Path) -> bool:
    python = home / "bin" / "python"
    return python.exists() and not subprocess.run([python, "-c", "import jax_privacy"], capture_output=True).returncode


def seconds(
    home: Path, name: str, ins: Floats, outs: Floats, *, delta: float, level: float, rounds: int, limit: float
) -> float | str:
    """CPU seconds, the median of the rounds; or why there are none."""
    file = Path(os.environ.get("TMPDIR", "/tmp")) / f"epsgauge-benchmark-{os.getpid()}.npz"
    np.savez(file, ins=ins, outs=outs)
    command = [str(home / "bin" / "python"), "-W", "ignore", "-c", _CALL]
    try:
        given = json.dumps([str(file), name, delta, level, rounds])
        done = subprocess.run([*command, given], capture_output=True, text=True, timeout=limit)
    except subprocess.TimeoutExpired:
        return f"> {limit:g} s"
    finally:
        file.unlink()
    return float(json.loads(done.stdout.splitlines()[-1])[0]) if not done.returncode else "fails"
