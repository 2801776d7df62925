"""Made the runs and score files of this folder, once."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from epsgauge.games.seeds import Branch, training_seed
from epsgauge.runner.executors import InProcess
from epsgauge.runner.plan import Plan
from epsgauge.runner.progress import Watch
from epsgauge.runner.run import run
from epsgauge.runner.store import FILE, Store
from epsgauge.runner.view import Run
from epsgauge.scores.table import Scores
from epsgauge.trainers.mechanism import RandomisedResponseTrainer

FOLDER = Path(__file__).parent
CANARY = {"train_size": 10, "reference_size": 19, "challenge": "explicit", "canaries": "zeros"}
FAILING = [training_seed(0, Branch.audited, i) for i in (3, 21, 22, 25)]


@dataclass(frozen=True)
class Breaks(RandomisedResponseTrainer):
    """Fails for some models, one of which chooses the rule."""

    def train(self, data, *, seed, size=None):
        if seed in FAILING:
            raise RuntimeError("broken")
        return super().train(data, seed=seed, size=size)


@dataclass(frozen=True)
class Pairs:
    """Noisy losses of points that are in or out: any number of pairs per model."""

    shift: float = 1.0
    breaks: bool = False

    def train(self, data, *, seed, size=None):
        if self.breaks and seed in FAILING:
            raise RuntimeError("broken")
        return set(np.asarray(data[0]).tolist()), seed

    def losses(self, model, points):
        members, seed = model
        ids = np.asarray(points[0])
        return np.random.default_rng(seed).normal(size=len(ids)) - self.shift * np.isin(ids, list(members))


class Stop(Watch):
    """Ends a run after some models."""

    def __init__(self, after):
        self.left = after

    def finished_one(self, outcome, progress):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def canary(name, *, n_models=60, trainer=None, audit=None, **game):
    return Plan(
        name=name,
        n_models=n_models,
        data="zeros",
        trainer=trainer or {"use": "randomised-response", "eps": 1.0},
        game={**CANARY, **game},
        audit={"attack": "difference", **(audit or {})},
    )


def pairs(name, *, m=4, n_models=60, shift=1.0, breaks=False, audit=None, **game):
    return Plan(
        name=name,
        n_models=n_models,
        data={"use": "zeros", "size": max(200, 4 * m)},
        trainer=Pairs(shift, breaks),
        game={"train_size": max(20, 2 * m), "reference_size": 19, "pairs_per_model": m, "challenge": "average", **game},
        audit=audit or {},
    )


def digits(name, **values):
    return Plan(
        name=name,
        n_models=30,
        data="digits",
        trainer={"use": "dpsgd", "model": "logistic", "epochs": 2, "noise_multiplier": 0.6, "batch_size": 50},
        game={"train_size": 100, "reference_size": 50, "challenge": "average"},
        audit={"fit_models": 10},
        **values,
    )


def played(plan, after=None):
    folder = FOLDER / plan.name
    with contextlib.suppress(KeyboardInterrupt):
        run(plan, out=folder, executor=InProcess(), watch=None if after is None else Stop(after))
    return folder


def mark(folder, **entries):
    with Store.write(folder / FILE) as store:
        store.put(entries)


def table(n, m, seed, *, shift=1.0, bits=None):
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, n) if bits is None else bits
    rows = np.arange(n)
    return Scores(rows // m, rows % m, bits, np.round(rng.normal(shift * bits, 1.0), 6), "substitute")


def main():
    played(canary("rr"))
    played(canary("rr-failed", trainer=Breaks(1.0)))
    played(canary("rr-given", audit={"rule": "given", "threshold": 0.0, "verdict_method": "clopper-pearson"}))
    played(canary("rr-unfinished"), after=40)
    stop = canary(
        "rr-stopped",
        trainer={"use": "randomised-response", "eps": 4.0},
        audit={"claimed_eps": 0.5, "claimed_delta": 1e-5, "claimed_adjacency": "substitute"},
    )
    mark(played(stop, after=45), stop_when="violation")
    grown = played(canary("rr-extended", n_models=40, audit={"fit_models": 10}))
    Run.open(grown).log_look("audit")
    played(canary("rr-extended", n_models=60, audit={"fit_models": 10}))
    mark(played(canary("rr-recoded")), accepted_code=[{"time": "2026-01-01", "files": ["train.py"]}])
    mark(played(canary("rr-refit")), refit_after_look=True)
    played(
        canary(
            "added",
            adjacency="add-remove",
            audit={"attack": "loss"},
            trainer={"use": "gaussian", "noise_multiplier": 0.7},
        )
    )
    played(
        canary("laplace", trainer={"use": "laplace", "eps": 2.0}, audit={"attack": "loss", "verdict_method": "anytime"})
    )
    played(pairs("pairs"))
    played(pairs("pairs-failed", breaks=True))
    played(pairs("pairs-unfinished"), after=40)
    played(pairs("pairs-anytime", shift=2.0, audit={"verdict_method": "anytime", "rule": "given", "percentile": 20.0}))
    played(pairs("many", m=120, n_models=3, shift=2.0, audit={"rule": "split-pairs"}))
    played(pairs("one-run", m=120, n_models=3, shift=2.0, audit={"rule": "split-pairs", "verdict_method": "one-run"}))
    played(pairs("mu", m=1, audit={"claimed_mu": 0.4, "claimed_adjacency": "substitute"}))
    played(pairs("mu-pairs", shift=2.0, audit={"claimed_mu": 0.4, "claimed_adjacency": "substitute"}))
    played(pairs("same-data", m=1, shift=2.0, audit={"rule": "same-data"}))
    played(pairs("seen-z0", m=1, sees="z0", base="resampled"))
    played(digits("digits"))
    played(digits("digits-control", control=True))
    table(400, 1, 1).write(FOLDER / "one.csv")
    table(800, 4, 2).write(FOLDER / "four.csv")
    table(600, 200, 3, shift=1.5).write(FOLDER / "few-models.csv")
    table(400, 4, 4, bits=(np.random.default_rng(4).random(400) < 0.8).astype(int)).write(FOLDER / "unfair.csv")
    table(800, 8, 5, bits=np.tile([0, 1], 400)).write(FOLDER / "dealt.csv")
    table(16, 1, 6, shift=9.0).write(FOLDER / "perfect.csv")


if __name__ == "__main__":
    main()
