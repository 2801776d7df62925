"""How much of the accountant's ε a guaranteed bound shows, with the best adversary of each setting.

`python benchmarks/tightness.py` prints one row per setting: ε by the accountant, the mean bound over runs, its share,
and how often the bound was above ε, which may happen in 5 % of the runs. δ = 1e-5, one-sided 95 %. A sixth of the
models choose the threshold.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import special
from timing import on_one_thread

from epsgauge.auditing.accounting import accountant_eps
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.methods.counting import Counting
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.table import METHODS
from epsgauge.scores.rules import Split, default_fit, judge
from epsgauge.scores.table import Scores
from epsgauge.stats.arrays import Floats

DELTA, LEVEL = 1e-5, 0.95
# Seeds from here on: the choice of thresholds was settled on smaller ones.
FIRST_SEED = 1000


@dataclass(frozen=True)
class Row:
    """What one setting showed in each run."""

    setting: str
    accountant: float
    bounds: Floats

    def __str__(self) -> str:
        mean, error = self.bounds.mean(), self.bounds.std() / np.sqrt(len(self.bounds))
        above = float(np.mean(self.bounds > self.accountant))
        share = f"{mean / self.accountant:.1%} ± {error / self.accountant:.1%}"
        return f"| {self.setting} | {self.accountant:.3f} | {mean:.3f} | {share} | {above:.0%} |"


def white_box(runs: int, n_models: int, method: str) -> Row:
    """Gradient canaries ±C in a direction of their own, seen in every step; the score is the log-likelihood ratio."""
    privacy = DPSGD(sample_rate=0.1, noise_multiplier=1.0, steps=100)
    bounds = [_bound(_steps(privacy, n_models, seed), privacy, method) for seed in range(FIRST_SEED, FIRST_SEED + runs)]
    eps = accountant_eps(privacy, delta=DELTA, adjacency="substitute")
    assert eps is not None
    name = f"white box, gradient canaries, q = 0.1, T = 100, σ = 1, N = {n_models:,}: {method}"
    return Row(name, eps, np.array(bounds))


def _steps(privacy: DPSGD, n: int, seed: int) -> Scores:
    """x ~ N(±1 or 0, σ²) in each step; the point is in a batch with probability q."""
    rng, q, noise = np.random.default_rng(seed), privacy.sample_rate, privacy.noise_multiplier
    bits, score = rng.integers(0, 2, n), np.zeros(n)
    for _ in range(privacy.steps):
        x = (rng.random(n) < q) * (2 * bits - 1) + rng.normal(0.0, noise, n)
        score += np.log1p(q * special.expm1((x - 0.5) / noise**2)) - np.log1p(q * special.expm1((-x - 0.5) / noise**2))
    return Scores(np.arange(n), np.zeros(n, np.int64), bits, score, "substitute", bits="coins")


def _bound(scores: Scores, privacy: DPSGD, name: str) -> float:
    """As an audit of a run has it."""
    method = METHODS[name]
    judged = judge(scores, Split(default_fit(len(scores))), delta=DELTA, best=method.best(privacy, scores.adjacency))
    evidence = replace(Evidence(judged, privacy=privacy), counting=Counting(delta=DELTA, level=LEVEL))
    return method.lower_bound(evidence, delta=DELTA, level=LEVEL)


SETTINGS: tuple[Callable[[int], Row], ...] = (
    lambda runs: white_box(runs, 2_000, "curve"),
    lambda runs: white_box(runs, 20_000, "curve"),
    lambda runs: white_box(runs, 2_000, "weighted"),
    lambda runs: white_box(runs, 2_000, "exact"),
)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=80, help="of each setting")
    asked = parser.parse_args()
    on_one_thread()
    print("| setting | accountant | bound | share | above ε |\n|---|---|---|---|---|")
    for setting in SETTINGS:
        print(setting(asked.runs), flush=True)
