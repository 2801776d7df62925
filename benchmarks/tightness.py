"""How much of the accountant's ε a guaranteed bound shows: what was reached, beside an ideal adversary.

`python benchmarks/tightness.py` trains the models of each setting and prints one row for each bound: ε by the
accountant; what ideal adversaries show with as many models, judged in the same way (mean ± standard deviation), and how
often that was above ε, which may happen in 5 % of runs; what was reached; and how far apart scores with b = 1 and b = 0
are, of what an ideal adversary has. From the accountant's ε to the ideal it is the statistics, from there to what was
reached the attack. δ = 1e-5, one-sided 95 %.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from timing import on_one_thread

from epsgauge.adjacency import Adjacency
from epsgauge.attacks.rehearsed import effect
from epsgauge.auditing.audit import audit
from epsgauge.data.digits import Digits, digits
from epsgauge.mechanisms.accounting import accountant_eps
from epsgauge.mechanisms.privacy import DISTANCE, DPSGD
from epsgauge.methods.counting import Counting
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.table import METHODS
from epsgauge.runner.plan import Plan
from epsgauge.runner.run import run
from epsgauge.scores.rules import Choice, Given, Judged, Split, default_fit, judge
from epsgauge.scores.table import Scores
from epsgauge.stats import region
from epsgauge.stats.arrays import Floats

DELTA, LEVEL, BOUNDS = 1e-5, 0.95, ("curve", "weighted")
# Seeds of ideal adversaries from here on: how thresholds are chosen was settled on smaller ones.
FIRST_SEED = 1000
ROOT = Path(__file__).resolve().parents[1]
WHITE_BOX = ROOT / "examples/digits-white-box.toml"
DEMO = ROOT / "src/epsgauge/cli/plans/digits-canary.toml"


@dataclass(frozen=True)
class Work:
    """How many ideal adversaries, how many models (None: as the setting says), who trains them, and what keeps them."""

    runs: int = 80
    n_models: int | None = None
    workers: int | None = None
    executor: Executor | None = None
    out: Path | None = None  # the runs, to go on with; None: they are thrown away


@dataclass(frozen=True)
class Shown:
    """A bound of ε, and how far apart the scores with b = 1 and b = 0 are, in standard deviations."""

    bound: float
    apart: float


@dataclass(frozen=True)
class Row:
    setting: str
    n_models: int
    method: str
    accountant: float
    ideal: tuple[Shown, ...]  # by each ideal adversary
    reached: Shown

    def __str__(self) -> str:
        bounds = np.array([one.bound for one in self.ideal])
        apart = f"{self.reached.apart:.2f} of {np.mean([one.apart for one in self.ideal]):.2f}"
        above = float(np.mean(bounds > self.accountant))
        share, reached_share = (100 * bound / self.accountant for bound in (bounds.mean(), self.reached.bound))
        ideal = f"{bounds.mean():.2f} ± {bounds.std():.2f} | {share:.1f} % | {100 * above:.0f} %"
        reached = f"{self.reached.bound:.2f} | {reached_share:.1f} %"
        cells = (self.setting, f"{self.n_models:,}", self.method, f"{self.accountant:.2f}", ideal, reached, apart)
        return f"| {' | '.join(cells)} |"


COLUMNS = ("setting", "N", "bound", "accountant", "ideal", "share", "above ε", "reached", "share", "scores apart")
HEAD = f"| {' | '.join(COLUMNS)} |\n{'|---' * len(COLUMNS)}|"


# The settings


def white_box(work: Work, n_models: int = 2_000) -> Iterator[Row]:
    """Gradient canaries ±C in a direction of their own, seen in every step."""
    plan = Plan.read(WHITE_BOX).changed(n_models=work.n_models or n_models)
    yield from _rows("white box, gradient canaries", plan, BOUNDS, work)


def long_white_box(work: Work) -> Iterator[Row]:
    yield from white_box(work, 20_000)


def records(work: Work) -> Iterator[Row]:
    """The same with records, made from the data, in place of gradients."""
    plan = Plan.read(WHITE_BOX)
    adversary = {"sees": "updates", "inserts": "record"}
    plan = plan.changed(
        name="records", game=_with("auto", plan), adversary=adversary, n_models=work.n_models or plan.n_models
    )
    yield from _rows("white box, records", plan, BOUNDS, work)


def hidden_state(work: Work) -> Iterator[Row]:
    """The last model alone; a linear model of 68 parameters, 250 steps, every record in every step."""
    for eps in (1.0, 4.0, 8.0):
        mu = float(region.gaussian_mu(eps, delta=DELTA))
        noise = DISTANCE["substitute"] * math.sqrt(HIDDEN_STEPS) / mu
        plan = hidden_plan(noise, n_models=work.n_models or 5_000).changed(name=f"hidden-state-{eps:g}")
        asked = {"claimed_mu": mu, "claimed_adjacency": "substitute"}
        yield from _rows(f"hidden state, 68 parameters, ε = {eps:g}", plan, ("gaussian",), work, **asked)


def black_box(work: Work) -> Iterator[Row]:
    """The demo's pipeline, its losses at the end; and logistic regression in its place, also with a crafted canary."""
    demo = Plan.read(DEMO)
    for model, canaries in (("mlp", "auto"), ("logistic", "auto"), ("logistic", "digits")):
        plan = demo.changed(
            name=f"black-box-{model}-{canaries}",
            trainer={**demo.trainer.identity(), "model": model},
            game=_with(canaries, demo),
            n_models=work.n_models or 2_000,
        )
        crafted = "" if canaries == "auto" else ": crafted"
        yield from _rows(f"black box, {model}{crafted}", plan, BOUNDS, work)


def _with(canaries: str, plan: Plan) -> dict[str, Any]:
    """A game as the plan's, with these canaries."""
    return {"train_size": plan.game.train_size, "reference_size": plan.game.reference_size, "canaries": canaries}


SETTINGS: dict[str, Callable[[Work], Iterator[Row]]] = {
    "white-box": white_box,
    "records": records,
    "hidden-state": hidden_state,
    "black-box": black_box,
    "long": long_white_box,
}

HIDDEN_TRAIN, HIDDEN_STEPS = 200, 250


def small_digits() -> Digits:
    """Zeros and ones, the upper 33 pixels of each: with two classes, logistic regression has 68 parameters."""
    x, y = digits()
    return x[y < 2, :33], y[y < 2]


def hidden_plan(noise: float, *, n_models: int) -> Plan:
    return Plan(
        name="hidden-state",
        n_models=n_models,
        data="tightness:small_digits",
        trainer={
            "use": "dpsgd",
            "model": "logistic",
            "n_classes": 2,
            "epochs": HIDDEN_STEPS,
            "batch_size": HIDDEN_TRAIN,
            "learning_rate": 0.1,
            "noise_multiplier": noise,
        },
        game={"train_size": HIDDEN_TRAIN, "reference_size": 20},
        adversary={"preset": "hidden-state"},
        # +C and −C are alike: whether the weight went up or down is the rule, and no model is needed to choose it
        audit={"delta": DELTA, "rule": "given", "threshold": 0.0},
        folder=Path(__file__).parent,
    )


# What is reached, and the ideal


def _rows(setting: str, plan: Plan, methods: tuple[str, ...], work: Work, **asked: Any) -> Iterator[Row]:
    """A row for each method, of the same models."""
    with tempfile.TemporaryDirectory() as scratch:
        out = (work.out or Path(scratch)) / f"{plan.name}-{plan.n_models}"
        played = run(plan, out=out, workers=work.workers, executor=work.executor)
        privacy, adjacency, n = played.privacy, plan.game.adjacency, plan.n_models
        name = setting if played.canary is None else f"{setting}: {played.canary['name']}"
        assert isinstance(privacy, DPSGD)
        eps = accountant_eps(privacy, delta=DELTA, adjacency=adjacency)
        assert eps is not None
        for method in methods:
            found = audit(played, verdict_method=method, verdict_level=LEVEL, **asked)
            ideal = ideals(privacy, adjacency, n, method, work.runs, given=plan.audit.rule == "given")
            yield Row(name, n, method, eps, ideal, Shown(found.verdict.bound.value, _apart(found.judged)))


@cache
def ideals(
    privacy: DPSGD, adjacency: Adjacency, n: int, method: str, runs: int, *, given: bool = False
) -> tuple[Shown, ...]:
    """What ideal adversaries show with n models. `given`: the threshold is 0, else a sixth of the models choose it."""
    choice: Choice = Given(0.0) if given else Split(default_fit(n))
    out = []
    for seed in range(FIRST_SEED, FIRST_SEED + runs):
        judged = judge(ideal_scores(privacy, adjacency, n, seed), choice, delta=DELTA)
        evidence = replace(Evidence(judged, privacy=privacy), counting=Counting(delta=DELTA, level=LEVEL))
        form = METHODS[method].form(evidence, by_mu=True)
        out.append(Shown(form.lower_bound(evidence, delta=DELTA, level=LEVEL), _apart(judged)))
    return tuple(out)


def _apart(judged: Judged) -> float:
    return effect(judged.judged.score, judged.judged.bit)


def ideal_scores(privacy: DPSGD, adjacency: Adjacency, n: int, seed: int) -> Scores:
    """Log-likelihood ratios of all steps.

    x ~ N(g, σ²) in each step, where g is 1 for b = 1 and −1, or 0, for b = 0 if the point is in the batch, else 0.
    """
    rng, q, noise = np.random.default_rng(seed), privacy.sample_rate, privacy.noise_multiplier
    bits, score, zero = rng.integers(0, 2, n), np.zeros(n), 1.0 - DISTANCE[adjacency]
    gradient = np.where(bits == 1, 1.0, zero)

    def against_none(x: Floats, g: float) -> Floats:
        with np.errstate(divide="ignore"):  # the log of 0 where q = 1
            out: Floats = np.logaddexp(np.log1p(-q), np.log(q) + (2 * x * g - g * g) / (2 * noise**2))
        return out

    for _ in range(privacy.steps):
        x = (rng.random(n) < q) * gradient + rng.normal(0.0, noise, n)
        score += against_none(x, 1.0) - against_none(x, zero)
    return Scores(np.arange(n), np.zeros(n, np.int64), bits, score, adjacency, bits="coins")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=80, help="ideal adversaries for each row")
    parser.add_argument("--models", type=int, help="in each setting, in place of its own number")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--out", type=Path, help="a folder that keeps the runs; the same call again resumes them")
    parser.add_argument("--only", choices=list(SETTINGS), help="one setting")
    parser.add_argument("--long", action="store_true", help="also the white box with 20,000 models")
    asked = parser.parse_args()
    work = Work(asked.runs, asked.models, asked.workers, out=asked.out)
    print(HEAD)
    for name, rows in SETTINGS.items():
        if name == asked.only or (asked.only is None and (name != "long" or asked.long)):
            for row in rows(work):
                print(row, flush=True)


if __name__ == "__main__":
    on_one_thread()
    main()
