"""The CPU time of `eg.audit` for a run of 2,000 models, and what it does for it.

python benchmarks/audit.py [--models 2000] [--rounds 5] [--against FOLDER]

`--against` is the `src` folder of another checkout, measured in the same run, in processes that take turns.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent.parent / "src"
PAIRS = (1, 10)

MAKE = """
import sys
import numpy as np
import epsgauge as eg
from epsgauge.runner.executors import InProcess
class Noisy:
    def train(self, data, *, seed, size=None):
        return set(np.asarray(data[0]).tolist()), seed
    def losses(self, model, points):
        members, seed = model
        ids = np.asarray(points[0])
        return np.random.default_rng(seed).normal(size=len(ids)) - np.isin(ids, list(members))
for m in (1, 10):
    game = {"train_size": 50, "reference_size": 99, "pairs_per_model": m, "challenge": "average"}
    data = {"use": "zeros", "size": 400}
    plan = eg.Plan(name=f"m{m}", n_models=int(sys.argv[1]), data=data, trainer=Noisy(), game=game)
    eg.run(plan, out=f"{sys.argv[2]}/m{m}", executor=InProcess())
"""

TIME = """
import json, sys, time
import epsgauge as eg
from epsgauge.bounds import exact
from epsgauge.runner.plan import Plan
from epsgauge.runner.store import Store
times = {"store": 0, "plan": 0, "inversions": 0}
def counted(name, real):
    def call(*args, **kw):
        times[name] += 1
        return real(*args, **kw)
    return call
Store.read = counted("store", Store.read)
Plan.__init__ = counted("plan", Plan.__init__)
exact.by_inversion = counted("inversions", exact.by_inversion)
eg.audit(eg.Run.open(sys.argv[1]), level=0.8, verdict_level=0.97)  # what is loaded when first used
for name in times:
    times[name] = 0
start = time.process_time()
eg.audit(eg.Run.open(sys.argv[1]))
print(json.dumps({"seconds": time.process_time() - start, **times}))
"""


def asked(code: str, source: Path, *args: str) -> str:
    """What a process prints that has this code and these sources."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    done = subprocess.run([sys.executable, "-c", code, *args], env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr)
    return done.stdout


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--against", type=Path, help="the src folder of another checkout, which also makes the runs")
    options = parser.parse_args()
    sources = {"this": HERE, **({} if options.against is None else {"other": options.against.resolve()})}
    with tempfile.TemporaryDirectory() as folder:
        asked(MAKE, list(sources.values())[-1], str(options.models), folder)  # the older one: both can read it
        print(f"eg.audit(eg.Run.open(…)) of {options.models} models, CPU seconds, median of {options.rounds}")
        for m in PAIRS:
            found: dict[str, list[dict[str, float]]] = {name: [] for name in sources}
            for _ in range(options.rounds):
                for name, source in sources.items():
                    found[name].append(json.loads(asked(TIME, source, f"{folder}/m{m}")))
            seconds = {name: statistics.median(f["seconds"] for f in each) for name, each in found.items()}
            for name, each in found.items():
                f = each[0]
                ratio = "" if name == "this" else f", {seconds[name] / seconds['this']:.2f}× of this"
                done = f"store opened {f['store']}×, plan built {f['plan']}×, exact bound inverted {f['inversions']}×"
                print(f"  {m:>3} pairs, {name:<6} {seconds[name]:.3f} s{ratio}; {done}")


if __name__ == "__main__":
    main()
