"""Runs of milliseconds for tests: trainers that only draw noise, plans for them, and ways to play these."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from epsgauge.games.seeds import Branch, training_seed
from epsgauge.mechanisms.randomised_response import RandomisedResponse
from epsgauge.methods.evidence import Evidence, Failed
from epsgauge.runner.executors import InProcess
from epsgauge.runner.plan import Plan
from epsgauge.runner.progress import Watch
from epsgauge.runner.run import run
from epsgauge.runner.view import Run
from epsgauge.scores.table import Scores
from epsgauge.trainers.mechanism import RandomisedResponseTrainer

CLAIM = {"claimed_delta": 1e-5, "claimed_adjacency": "substitute"}  # goes with claimed_eps
FAILING = (3, 21, 22, 25)  # the first of them is a model that chooses the rule
TEXT = """
name = "{name}"
seed = 3
n_models = {n_models}

[data]
use = "zeros"
size = 60

[trainer]
use = "laplace"
eps = {eps}

[game]
train_size = 20
reference_size = 10
pairs_per_model = {m}
{challenge}

[audit]
attack = "{attack}"
fit_models = 60
"""
CANARY = 'challenge = "explicit"\ncanaries = "zeros"'


@dataclass(frozen=True)
class Breaks(RandomisedResponseTrainer):
    """Fails for the models FAILING."""

    def train(self, data, *, seed, size=None):
        if seed in [training_seed(0, Branch.audited, i) for i in FAILING]:
            raise RuntimeError("broken")
        return super().train(data, seed=seed, size=size)


@dataclass(frozen=True)
class Pairs:
    """Noisy losses of points that are in or out: any number of pairs per model."""

    shift: float = 1.0

    def train(self, data, *, seed, size=None):
        return set(np.asarray(data[0]).tolist()), seed

    def losses(self, model, points):
        members, seed = model
        ids = np.asarray(points[0])
        return np.random.default_rng(seed).normal(size=len(ids)) - self.shift * np.isin(ids, list(members))


def plan(trainer=None, *, n_models=60, name="rr", audit=None, data="zeros", control=False, seed=0, **game):
    """Randomised response about one canary, unless told otherwise; a setting of the game that is None is left out."""
    settings = {"train_size": 10, "reference_size": 19, "challenge": "explicit", "canaries": "zeros", **game}
    return Plan(
        name=name,
        seed=seed,
        n_models=n_models,
        data=data,
        trainer=trainer or {"use": "randomised-response", "eps": 1.0},
        game={key: value for key, value in settings.items() if value is not None},
        audit={"attack": "difference", **(audit or {})},
        control=control,
    )


def small_plan(n_models=40):
    return plan(n_models=n_models, audit={"fit_models": 10})


def pairs_plan(m=4, *, shift=1.0, **kw):
    """Several pairs of ordinary points per model."""
    own = {"pairs_per_model": m, "challenge": "average", "canaries": None, "train_size": 20, **kw}
    return plan(Pairs(shift), **{"audit": {"attack": "percentile"}, "data": {"use": "zeros", "size": 200}, **own})


def plan_text(name="leaky", n_models=360, eps=2.0, m=1, challenge=CANARY, attack="difference"):
    """A plan as TOML, for the command line."""
    return TEXT.format(name=name, n_models=n_models, eps=eps, m=m, challenge=challenge, attack=attack)


def played(a_plan, out, watch=None, **more):
    return run(a_plan, out=out, executor=InProcess(), watch=watch, **more)


class Stop(Watch):
    """Ends a run after some models."""

    def __init__(self, after):
        self.left = after

    def finished_one(self, outcome, progress):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def stopped(a_plan, out, after):
    with pytest.raises(KeyboardInterrupt):
        played(a_plan, out, Stop(after))
    return Run.open(out)


def responses(eps, n, seed=0, adjacency="substitute"):
    """Scores that are the answers of randomised response."""
    rng = np.random.default_rng(seed)
    bits = rng.integers(0, 2, n)
    said = [RandomisedResponse(eps).sample(float(bit), rng) for bit in bits]
    return Scores(np.arange(n), np.zeros(n), bits, said, adjacency, bits="coins")


def evidence_of_tally(tally, failed=(0, 0)):
    """Evidence with these guesses about one pair of each model; `failed` models with b = 1 and b = 0 count as wrong."""
    t = {c: int(getattr(tally, c)) for c in ("tp", "fn", "fp", "tn")}
    wrong = (failed[0], failed[1])
    bit = np.repeat([1, 1, 0, 0], [t["tp"], t["fn"] - wrong[0], t["fp"] - wrong[1], t["tn"]])
    said = np.repeat([1.0, 0.0, 1.0, 0.0], [t["tp"], t["fn"] - wrong[0], t["fp"] - wrong[1], t["tn"]])
    n = len(bit)
    models = [Failed(n + i, np.array([b])) for i, b in enumerate(np.repeat([1, 0], wrong))]
    scores = Scores(np.arange(n), np.zeros(n, int), bit, said, "substitute")
    return replace(Evidence.of_scores(scores, 0.5), failed=models)
