"""Kill workers of a cluster at random moments, restart Dask's scheduler or lose a node of Ray, and compare signals.

python tools/soak_clusters.py --on dask --kills 20
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "pipelines"))

import killing
from local_clusters import DaskCluster, RayCluster, kill_one

import epsgauge as eg
from epsgauge.runner.executors import InProcess
from epsgauge.runner.progress import Watch


class Kills(Watch):
    """Kills a worker after random numbers of models. Half way, Dask's scheduler is restarted, or a node of Ray lost."""

    def __init__(self, cluster, n_models: int, kills: int, rng: random.Random) -> None:
        self.cluster, self.rng = cluster, rng
        self.moments = sorted(rng.sample(range(1, n_models), kills))
        self.half: int | None = n_models // 2
        self.killed: set[int] = set()
        self.lost = 0

    def finished_one(self, outcome, progress) -> None:
        if self.moments and progress.n_here >= self.moments[0]:
            self.moments.pop(0)
            self.killed.add(kill_one(self.cluster.victims, self.killed, self.rng))
        if self.half is not None and progress.n_here >= self.half:
            self.half = None
            if isinstance(self.cluster, DaskCluster):
                self.cluster.restart_scheduler()
            else:
                self.cluster.lose_node()
            self.lost += 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--on", choices=["dask", "ray"], required=True)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--models", type=int, default=400)
    parser.add_argument("--seed", type=int, default=None, help="of the moments (default: the time)")
    args = parser.parse_args()
    seed = int(time.time()) if args.seed is None else args.seed
    print(f"{args.kills} kills of workers of {args.on}, {args.models} models, seed {seed}", flush=True)
    parts = {**killing.ALONE, "trainer": {"use": "fast:Mean", "nap": 0.05}}
    plan = eg.Plan(name="soak", n_models=args.models, probe=False, **parts)
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as logs:
        make = DaskCluster if args.on == "dask" else RayCluster
        with make(logs) as cluster:
            if isinstance(cluster, RayCluster):
                cluster.add_node()
            where = eg.Dask(cluster.address) if args.on == "dask" else eg.Ray(cluster.address)
            watch = Kills(cluster, args.models, args.kills, random.Random(seed))
            run = eg.run(plan, out=Path(folder, "killed"), executor=where, watch=watch)
        eg.run(plan, out=Path(folder, "alone"), executor=InProcess())
        same = killing.rows(Path(folder, "killed")) == killing.rows(Path(folder, "alone"))
    what = "schedulers restarted" if args.on == "dask" else "nodes lost"
    print(f"workers killed: {len(watch.killed)}; {what}: {watch.lost}")
    print(
        f"models done: {run.n_done}; failed: {run.n_failed}; identical to a run left alone: {'yes' if same else 'NO'}"
    )
    return 0 if same and run.complete and len(watch.killed) == args.kills else 1


if __name__ == "__main__":
    sys.exit(main())
