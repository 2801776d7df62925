"""One case in a process of its own, with its environment first on PYTHONPATH; prints one line of JSON.

python -m zoo.shipped.one opacus-ghost-norm [--twin] [--seed 0]
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from importlib.metadata import version
from typing import Any

from zoo.shipped.cases import CASES
from zoo.shipped.environments import ROOT, Missing, made


def run(name: str, *, twin: bool = False, seed: int = 0) -> dict[str, Any]:
    """What was found, or why it was skipped."""
    case = CASES[name]
    environment = case.twin if twin else case.environment
    said = {"name": name, "twin": twin, "library": case.library, "version": (environment or "").partition("-")[2]}
    try:
        first = [] if environment is None else [str(made(environment))]
    except Missing as reason:
        return {**said, "skipped": str(reason)}
    path = os.pathsep.join([*first, str(ROOT / "src"), str(ROOT)])
    start = time.perf_counter()
    flags = [*(["--twin"] if twin else []), "--seed", str(seed), "--here"]
    done = subprocess.run(
        [sys.executable, "-m", "zoo.shipped.one", name, *flags],
        env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed:\n{done.stderr}")
    seconds = round(time.perf_counter() - start, 1)  # of the whole process
    return {**said, **json.loads(done.stdout.splitlines()[-1]), "seconds": seconds}


def here(name: str, *, twin: bool, seed: int) -> dict[str, Any]:
    """The same in this process, whose PYTHONPATH has the environment."""
    case = CASES[name]
    judge = getattr(importlib.import_module(f"zoo.shipped.{case.module}"), case.judge)
    return {"version": version(case.library.lower()), **judge(twin, seed)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=CASES)
    parser.add_argument("--twin", action="store_true", help="the repaired twin")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--here", action="store_true", help="in this process, with what is on its path")
    given = parser.parse_args()
    print(json.dumps((here if given.here else run)(given.name, twin=given.twin, seed=given.seed)))


if __name__ == "__main__":
    main()
