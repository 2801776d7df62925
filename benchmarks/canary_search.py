"""Whether a search among canaries beats those that `canaries = "auto"` tries, on the demo's pipeline.

    python benchmarks/canary_search.py

Candidates are records along some direction against their negatives, evolved from the best built-in one (far-opposite):
other lengths, signs, pixels and labels, then children of the best four, twice. Each is tried on 300 models set apart.
The best three are tried again on 600, and the best of these is judged on two sets of 2,400 fresh models beside
far-opposite. About half an hour on one core.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from timing import on_one_thread

import epsgauge as eg
from epsgauge.attacks.rehearsed import effect
from epsgauge.data.canaries.view import view_of
from epsgauge.data.digits import digits
from epsgauge.runner.executors import InProcess
from epsgauge.stats.arrays import Floats

TRIED, AGAIN, JUDGED = 300, 600, 2400
PLAIN = {"train_size": 400, "reference_size": 50, "points_seed": 0, "control_models": 16, "challenge": "explicit"}
TRAINER = {
    "use": "dpsgd",
    "model": "mlp",
    "epochs": 5,
    "batch_size": 200,
    "learning_rate": 1.0,
    "noise_multiplier": 3.5,
    "max_grad_norm": 1.0,
}
Candidate = dict[str, Any]


def pair(raw: Any) -> tuple[Any, Any]:
    """The canary that the environment describes, as a plan names it."""
    view, what = view_of(raw), json.loads(os.environ["CANDIDATE"])
    along = np.array(what["direction"])
    along = along / np.linalg.norm(along) * what["times"] * view.size
    zero, one = view.at(-along, view.labels[what["label"]]), view.at(along, view.labels[what["label1"]])
    return view.write([zero]), view.write([one])


def candidate(direction: Floats, times: float, label: int = 0, label1: int = 0) -> Candidate:
    return {"direction": np.asarray(direction, float).tolist(), "times": times, "label": label, "label1": label1}


def told(of: Candidate | str, n_models: int, seed: int) -> tuple[float, float]:
    """How far apart the scores of both bits are, in standard deviations, and the verdict's bound."""
    if isinstance(of, dict):
        os.environ["CANDIDATE"] = json.dumps(of)
    plan = eg.Plan(
        name="search",
        seed=seed,
        n_models=n_models,
        data="digits",
        trainer=TRAINER,
        game={**PLAIN, "canaries": of if isinstance(of, str) else "canary_search:pair"},
        adversary={"start": "known"},
        audit={"attack": "difference"},
        folder=Path(__file__).resolve().parent,
    )
    with tempfile.TemporaryDirectory() as folder:
        run = eg.run(plan, out=Path(folder) / "run", executor=InProcess())
        loss, bits = run.signals()["loss"], run.signals().bits
        return effect(loss[..., 0] - loss[..., 1], bits), eg.audit(run).verdict.bound.value


def main() -> None:
    unused = (np.ptp(view_of(digits()).flat, axis=0) == 0).astype(float)
    rng = np.random.default_rng(0)
    signs = unused * rng.choice([-1, 1], len(unused))
    single = np.eye(1, len(unused), int(np.flatnonzero(unused)[0]))[0]
    pool = [candidate(direction, times) for direction in (unused, signs, single) for times in (2, 4, 8, 16)]
    pool += [candidate(unused, 4, *labels) for labels in ((1, 1), (0, 1), (1, 0))]
    found = [(told(each, TRIED, 100 + i)[0], each) for i, each in enumerate(pool)]
    for generation in range(2):
        found.sort(key=lambda each: -each[0])
        for j, (_, parent) in enumerate(found[:4]):
            along = np.array(parent["direction"])
            among = 1.0 if generation else unused
            along = along / np.linalg.norm(along) + 0.3 * rng.normal(size=len(along)) / 8 * among
            times = parent["times"] * float(np.exp(0.3 * rng.normal()))
            child = candidate(along, times, parent["label"], parent["label1"])
            found.append((told(child, TRIED, 200 + 10 * generation + j)[0], child))
    found.sort(key=lambda each: -each[0])
    best = max((each for _, each in found[:3]), key=lambda each: told(each, AGAIN, 500)[0])
    print(f"{len(found)} candidates, {TRIED * len(found) + 3 * AGAIN} models set apart")
    for seed in (11, 12):
        for name, of in (("search", best), ("far-opposite", "far-opposite")):
            apart, bound = told(of, JUDGED, seed)
            print(f"seed {seed}  {name:<14}scores apart {apart:.3f}   ε ≥ {bound:.3f}")


if __name__ == "__main__":
    on_one_thread()
    main()
