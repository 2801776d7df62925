"""How near lower bounds of ε come to what the data allow: every guaranteed method, other tools and the ideal.

Two tables at one-sided 95 % and δ = 1e-5. The first is of independent samples: mean bounds where the true ε is known,
and how often bounds are above it where a mechanism is exactly tight. The second is of one model with very many
canaries. It judges nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import peers
from ideal import eps_at, ideal
from scipy import special
from timing import on_one_thread

from epsgauge.bounds.guesses import Guessed, Guesses, surest_right
from epsgauge.bounds.one_run import one_run_fdp_mu, published_mu
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.methods.counting import Counting
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.facts import GAUSSIAN_CURVE, INDEPENDENT, MODELS_INDEPENDENT
from epsgauge.methods.method import Asked
from epsgauge.methods.table import METHODS
from epsgauge.scores.rules import Given, SameData, Split, SplitPairs, default_fit, default_fit_pairs, judge
from epsgauge.scores.table import Scores
from epsgauge.stats import region
from epsgauge.stats.arrays import Floats, Ints

DELTA, LEVEL = 1e-5, 0.95
GRID = np.linspace(-9.0, 11.0, 4001)  # of the laws of normal scores
NUMBERS = tuple(int(n) for n in np.geomspace(50, 5000, 21))  # of guesses, to find the best
PARTS = (6, 12, 20)  # one of so many chooses the rule
SAME_DATA = Asked("same-data", 1, by_mu=False)
OF_MU = "†"  # after the name of a bound that assumes Gaussian DP
STEINKE = "pooled, δ term of Steinke et al."

# A sixth of the scores choose the threshold, as in our audits; the others take jax-privacy's default, Bonferroni.
GIVEN = "significance=0.05, delta=delta"
SPLIT = f"{GIVEN}, threshold_strategy=auditing.Split(1 / 6, seed=0)"
PEERS = {
    "jax-privacy, Clopper-Pearson": peers.by_jax_privacy(f"epsilon_clopper_pearson({GIVEN})"),
    "jax-privacy, Clopper-Pearson, split": peers.by_jax_privacy(f"epsilon_clopper_pearson({SPLIT})"),
    "jax-privacy, one run": peers.by_jax_privacy(f"epsilon_one_run({GIVEN})"),
    "jax-privacy, one run, split": peers.by_jax_privacy(f"epsilon_one_run({SPLIT})"),
    f"jax-privacy, one run f-DP, split {OF_MU}": peers.by_jax_privacy(f"epsilon_one_run_fdp({SPLIT})"),
    "opake, one run": peers.OPAKE,
}

Draw = tuple[Ints, Floats]  # bits and scores
T = TypeVar("T")


# What is drawn


@dataclass(frozen=True)
class Normal:
    """Scores with a mean of `shift` where b = 1, with a chance of `rate`; else with a mean of 0."""

    shift: float
    rate: float = 1.0

    def draw(self, bits: Ints, rng: np.random.Generator) -> Floats:
        out: Floats = rng.normal(self.shift * bits * (rng.random(bits.shape) < self.rate))
        return out

    def laws(self) -> tuple[Floats, Floats]:
        """Of scores with b = 1 and with b = 0."""
        ins, outs = (density / density.sum() for density in (np.exp(-0.5 * (GRID - m) ** 2) for m in (self.shift, 0)))
        return self.rate * ins + (1 - self.rate) * outs, outs


@dataclass(frozen=True)
class Answers:
    """The answers of randomised response."""

    eps: float

    def draw(self, bits: Ints, rng: np.random.Generator) -> Floats:
        lies = rng.random(bits.shape) < special.expit(-self.eps)
        return np.where(lies, 1 - bits, bits).astype(np.float64)

    def laws(self) -> tuple[Floats, Floats]:
        ins = special.expit(np.array([-self.eps, self.eps]))
        return ins, ins[::-1]


@dataclass(frozen=True)
class Setting:
    """n scores with fair bits. `tight`: how often a bound is above the true ε is shown, and not its mean."""

    name: str
    source: Normal | Answers
    n: int
    tight: bool = False

    @property
    def title(self) -> str:
        return f"{self.name}, N = {self.n:,}"

    @property
    def truth(self) -> float:
        return eps_at(*self.source.laws(), DELTA)

    def draws(self, seed: int, runs: Iterable[int]) -> list[Draw]:
        out = []
        for run in runs:
            rng = np.random.default_rng([seed, run, self.n, *self.name.encode()])
            bits = rng.integers(0, 2, self.n)
            out.append((bits, self.source.draw(bits, rng)))
        return out

    def ideal(self) -> str:
        return "" if self.tight else f"{ideal(*self.source.laws(), self.n, delta=DELTA, level=LEVEL):.2f}"

    def cell(self, name: str, bounds: Floats) -> str:
        """In brackets where the bound assumes Gaussian DP and the setting is another."""
        said = f"{100 * np.mean(bounds > self.truth + 1e-9):.1f} %" if self.tight else f"{np.mean(bounds):.2f}"
        gaussian = isinstance(self.source, Normal) and self.source.rate == 1
        return f"({said})" if OF_MU in name and not gaussian else said


SETTINGS = (
    Setting("Gauss, μ = 1", Normal(1.0), 2000),
    Setting("Gauss, μ = 1", Normal(1.0), 200),
    Setting("subsampled, q = 0.2, μ = 1.5", Normal(1.5, 0.2), 2000),
    Setting("randomised response, ε = 1", Answers(1.0), 2000, tight=True),
    Setting("no leak", Normal(0.0), 2000, tight=True),
    Setting("randomised response, ε = 1", Answers(1.0), 200, tight=True),
    Setting("no leak", Normal(0.0), 200, tight=True),
)


# Our bounds


def of_samples(draw: Draw, names: frozenset[str]) -> dict[str, float]:
    """Guaranteed bounds of independent samples, each about a model of its own."""
    return _ours(_samples(draw), Split(default_fit(len(draw[0]))), set(), names)


def of_one_model(draw: Draw, names: frozenset[str]) -> dict[str, float]:
    """Guaranteed bounds of one model with many pairs, some of which choose the rule; and where none is chosen."""
    table = _pairs(draw)
    ours = _ours(table, SplitPairs(default_fit_pairs(len(table))), {INDEPENDENT, MODELS_INDEPENDENT}, names)
    whole = _counted(Evidence(judge(table, Given(0.0), delta=DELTA)), "one-run", by_mu=True, guessed="top")
    published = float(region.gaussian_eps(published_mu(whole.guesses, level=LEVEL), delta=DELTA))
    return {
        **ours,
        f"one-run {OF_MU}, all canaries judged": _bound("one-run", whole, by_mu=True),
        f"the same by the published recursion {OF_MU}": published,
    }


def of_samples_split(draw: Draw) -> dict[str, Floats]:
    """Bounds of independent samples, for each share of them that chooses."""
    return {name: _by_share(_samples(draw), Split, name) for name in ("exact", "pooled")}


def of_one_model_split(draw: Draw) -> dict[str, Floats]:
    """Bounds of one model with many pairs, for each share of these that chooses."""
    table = _pairs(draw)
    found = {name: _by_share(table, SplitPairs, name) for name in ("pooled",)}
    return {**found, f"one-run {OF_MU}": _by_share(table, SplitPairs, "one-run", by_mu=True)}


def _by_share(table: Scores, split: type[Split] | type[SplitPairs], name: str, *, by_mu: bool = False) -> Floats:
    judged = (Evidence(judge(table, split(max(1, len(table) // part)), delta=DELTA)) for part in PARTS)
    return np.array([_bound(name, _counted(e, name, by_mu=by_mu), by_mu=by_mu) for e in judged])


def _samples(draw: Draw) -> Scores:
    bits, scores = draw
    return Scores(np.arange(len(bits)), np.zeros(len(bits), np.int64), bits, scores, "substitute", bits="coins")


def _pairs(draw: Draw) -> Scores:
    bits, scores = draw
    return Scores(np.zeros(len(bits), np.int64), np.arange(len(bits)), bits, scores, "substitute", bits="coins")


def _bound(name: str, evidence: Evidence, *, by_mu: bool) -> float:
    return METHODS[name].form(evidence, by_mu=by_mu).lower_bound(evidence, delta=DELTA, level=LEVEL)


def _ours(table: Scores, split: Split | SplitPairs, broken: set[str], names: frozenset[str]) -> dict[str, float]:
    """As an audit has them. Methods that allow it choose their rule on all rows, the others on those set apart."""
    apart, whole = (Evidence(judge(table, choice, delta=DELTA)) for choice in (split, SameData()))
    out: dict[str, float] = {}
    for method in METHODS.values():
        if method.of_dpsgd or method.name not in names:  # nothing here is DP-SGD, see tightness.py
            continue
        for by_mu in (False, True):
            evidence = _counted(whole if method.judges(SAME_DATA) else apart, method.name, by_mu=by_mu)
            form = method.form(evidence, by_mu=by_mu)
            name = f"{form.name} {OF_MU}" if GAUSSIAN_CURVE in form.assumptions else form.name
            if form.promise == "guaranteed" and name not in out and not broken.intersection(form.assumptions):
                out[name] = form.lower_bound(evidence, delta=DELTA, level=LEVEL)
    fixed = _counted(apart, "one-run", by_mu=False).guesses
    return {**out, STEINKE: pooled_bound(fixed, delta=DELTA, level=LEVEL, term="published").eps}


def _counted(evidence: Evidence, name: str, *, by_mu: bool, guessed: Guessed | None = None) -> Evidence:
    """With the guesses that count for this method."""
    fixed = METHODS[name].fixed_number or by_mu
    return replace(evidence, counting=Counting(guessed, delta=DELTA, level=LEVEL, fixed=fixed, by_mu=by_mu))


def of_numbers(draw: Draw) -> Floats:
    """One run f-DP by the published recursion, for each number of the surest guesses; the middle is known."""
    return np.array([_of_number(draw, n, published_mu) for n in NUMBERS if n <= len(draw[0])])


def of_number(draw: Draw, number: int) -> float:
    """One run f-DP under Gaussian DP, of so many of the surest guesses."""
    return _of_number(draw, number, one_run_fdp_mu)


def _of_number(draw: Draw, number: int, mu: Callable[..., float]) -> float:
    bits, scores = draw
    right = surest_right(scores, bits, threshold=0.5)
    return float(region.gaussian_eps(mu(Guesses(int(right[number]), number, len(bits)), level=LEVEL), delta=DELTA))


# The tables


@dataclass(frozen=True)
class Work:
    """How bounds are computed: in how many processes, and by which Python those of other tools, if at all."""

    jobs: int = 1
    names: frozenset[str] = frozenset(METHODS)  # of our methods
    python: Path | None = None
    limit: float = 600.0

    def map(self, function: Callable[[Draw], T], draws: Sequence[Draw]) -> list[T]:
        if self.jobs == 1:
            return list(map(function, draws))
        with ProcessPoolExecutor(self.jobs) as pool:
            return list(pool.map(function, draws))

    def ours(self, function: Callable[[Draw], dict[str, float]], draws: Sequence[Draw]) -> dict[str, Floats]:
        each = self.map(function, draws)
        return {name: np.array([found[name] for found in each]) for name in each[0]}

    def theirs(self, programs: Mapping[str, str], draws: Sequence[Draw]) -> dict[str, Floats]:
        out: dict[str, Floats] = {}
        if self.python is None:
            return out
        bits, scores = (np.array(part) for part in zip(*draws, strict=True))
        for name, program in programs.items():
            answer = peers.bounds(self.python, program, scores, bits, delta=DELTA, limit=self.limit)
            if answer.why:
                print(f"{name}: {answer.n_failed} of {len(draws)} runs failed, the last with {answer.why}")
            if len(answer.bounds):
                out[name] = answer.bounds
        return out


def samples(runs: int, seed: int, work: Work, settings: Sequence[Setting] = SETTINGS) -> None:
    """Mean bounds of independent samples, then false alarms."""
    print(f"{runs} runs, seed {seed}\n")
    columns = []
    for setting in settings:
        draws = setting.draws(seed, range(runs))
        columns.append({**work.ours(partial(of_samples, names=work.names), draws), **work.theirs(PEERS, draws)})
    _row("", [f"above ε: {s.title}" if s.tight else s.title for s in settings])
    _row("---", ["---"] * len(settings))
    _row("true ε", [f"{s.truth:.3f}" for s in settings])
    _row("ideal by KL projection", [s.ideal() for s in settings])
    for name in dict.fromkeys(name for column in columns for name in column):
        pairs = zip(settings, columns, strict=True)
        _row(name, [s.cell(name, column[name]) if name in column else "" for s, column in pairs])


def one_model(runs: int, canaries: int, seed: int, work: Work) -> None:
    """Mean bounds of one model with many canaries; the best number of guesses is found on other draws."""
    setting = Setting("one model", Normal(1.0), canaries)
    draws, others = setting.draws(seed, range(runs)), setting.draws(seed, range(runs, 2 * runs))
    best = int(np.argmax(np.mean(work.map(of_numbers, others), axis=0)))
    found = {
        **work.ours(partial(of_one_model, names=work.names), draws),
        f"one-run {OF_MU}, the {NUMBERS[best]} surest": np.array(
            work.map(partial(of_number, number=NUMBERS[best]), draws)
        ),
        **work.theirs({name: program for name, program in PEERS.items() if "one run" in name}, draws),
    }
    print(f"\n{runs} runs, seed {seed}\n")
    _row("", [setting.title, "above ε"])
    _row("---", ["---"] * 2)
    _row("true ε", [f"{setting.truth:.3f}", ""])
    _row("ideal by KL projection", [setting.ideal(), ""])
    for name, bounds in found.items():
        _row(name, [setting.cell(name, bounds), replace(setting, tight=True).cell(name, bounds)])


def shares(runs: int, models: int, canaries: int, seed: int, work: Work) -> None:
    """Mean bounds for each share of the scores that chooses the rule, all on the same draws."""
    print(f"{runs} runs of samples, {models} of one model, seed {seed}\n")
    _row("", [f"1/{part}" for part in PARTS])
    _row("---", ["---"] * len(PARTS))
    several = Setting("one model, μ = 1", Normal(1.0), canaries)
    for setting in [*(s for s in SETTINGS if not s.tight and runs), *([several] if models else [])]:
        function, n = (of_one_model_split, models) if setting is several else (of_samples_split, runs)
        each = work.map(function, setting.draws(seed, range(n)))
        for name in each[0]:
            means = np.mean([found[name] for found in each], axis=0)
            _row(f"{setting.title}: {name}", [f"{mean:.2f}" for mean in means])


def _row(name: str, cells: Iterable[str]) -> None:
    print(f"| {' | '.join([name, *cells])} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=40, help="of each setting of independent samples")
    parser.add_argument("--models", type=int, default=10, help="with many canaries; 0 leaves that table out")
    parser.add_argument("--canaries", type=int, default=100_000, help="of one model")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--shares", action="store_true", help="instead, bounds by the share that chooses the rule")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS), help="of ours")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--peers", action="store_true", help="also the bounds of other tools")
    parser.add_argument("--peer-env", type=Path, default=peers.ENVIRONMENT, help="their environment, made if needed")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for a bound of another tool and a setting")
    args = parser.parse_args()
    on_one_thread()
    theirs = peers.environment(args.peer_env) if args.peers else None
    work = Work(args.jobs, frozenset(args.methods), theirs, args.limit)
    if args.shares:
        shares(args.runs, args.models, args.canaries, args.seed, work)
        return
    if args.runs:
        samples(args.runs, args.seed, work)
    if args.models:
        one_model(args.models, args.canaries, args.seed, work)


if __name__ == "__main__":
    main()
