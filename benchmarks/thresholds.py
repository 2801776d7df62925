"""The best of all thresholds, or pairs of cuts, on the same scores, beside a rule that half of the scores chose.

For mechanisms whose ε is known: how often a 95 % lower bound is above the true ε, and how high it is on average.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from scipy import special

from epsgauge.bounds.simultaneous import Rules, fixed_thresholds_lower_bound, simultaneous_lower_bound
from epsgauge.stats import rates
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.region import eps_of_rates

DELTA, LEVEL = 1e-5, 0.95
ONE: Rules = "one-sided"
TWO: Rules = "two-sided"
Draw = Callable[[np.random.Generator, int], Floats]


def gaussian(shift: float) -> Draw:
    return lambda rng, n: rng.normal(shift, 1.0, n)


def laplace(shift: float) -> Draw:
    return lambda rng, n: rng.laplace(shift, 1.0, n)


def wide_laplace(scale: float) -> Draw:
    return lambda rng, n: rng.laplace(0.0, scale, n)


def bump(rng: np.random.Generator, n: int) -> Floats:
    """Uniform on (0, 1), but every third score is between 0.45 and 0.55."""
    score = rng.random(n)
    return np.where(rng.random(n) < 1 / 3, 0.45 + 0.1 * score, score)


def best_wide_laplace(scale: float) -> float:
    """ε of the best rule |score| ≥ t."""
    t = np.linspace(0.0, 12.0 * scale, 200_001)
    tails = np.exp(-t / scale) - DELTA
    return float(np.max(np.log(tails[tails > 0]) + t[tails > 0]))


def best_gaussian(mu: float) -> float:
    """ε of the best threshold."""
    t = np.linspace(-12.0, 12.0, 20_001)
    return float(np.max(eps_of_rates(special.ndtr(t - mu), special.ndtr(-t), delta=DELTA)))


# name, scores with b = 1, scores with b = 0, ε of the best rule; that of Laplace with a shift is for δ = 0
CASES = [
    ("no leak", gaussian(0.0), gaussian(0.0), 0.0),
    ("Gaussian, μ = 0.5", gaussian(0.5), gaussian(0.0), best_gaussian(0.5)),
    ("Gaussian, μ = 2", gaussian(2.0), gaussian(0.0), best_gaussian(2.0)),
    ("Laplace, ε = 1", laplace(1.0), laplace(0.0), 1.0),
    ("Laplace, ε = 3", laplace(3.0), laplace(0.0), 3.0),
    ("Laplace, wider", wide_laplace(2.0), laplace(0.0), best_wide_laplace(2.0)),
    ("bump", bump, lambda rng, n: rng.random(n), float(np.log((1 / 3 + 1 / 15 - DELTA) / 0.1))),
]
# Of a split with two cuts.
CUTS = 60


def split(ins: Floats, outs: Floats) -> float:
    """Half of the scores choose the threshold with the largest Clopper-Pearson bound, the others judge it."""
    (a, c), (b, d) = (np.array_split(part, 2) for part in (ins, outs))
    t = np.unique(a)
    t = t[np.linspace(0, len(t) - 1, min(len(t), 400)).astype(int)]
    lower = _clopper_pearson(a, b, t)
    return float(_clopper_pearson(c, d, t[[int(np.argmax(lower))]])[0])


def folded(ins: Floats, outs: Floats) -> tuple[Floats, Floats]:
    """Distances from the centre, which is known beforehand: ½ for scores between 0 and 1, else 0."""
    centre = 0.5 if ins.min() >= 0 and ins.max() <= 1 else 0.0
    return np.abs(ins - centre), np.abs(outs - centre)


def split_two_cuts(ins: Floats, outs: Floats) -> float:
    """Half of the scores choose two cuts, among quantiles, and whether to guess 1 between them or beyond."""
    (a, c), (b, d) = (np.array_split(part, 2) for part in (ins, outs))
    cuts = np.unique(np.quantile(np.concatenate([a, b]), special.expit(np.linspace(-8.0, 8.0, CUTS))))
    low, high = (cuts[places] for places in np.triu_indices(len(cuts), 1))

    def lower(ins: Floats, outs: Floats, low: Floats, high: Floats) -> Floats:
        p, q = (np.diff(np.searchsorted(np.sort(part), [low, high]), axis=0)[0] for part in (ins, outs))
        return np.stack([_bound(len(ins) - p, len(ins), q, len(outs)), _bound(p, len(ins), len(outs) - q, len(outs))])

    rule, place = np.divmod(int(np.argmax(lower(a, b, low, high))), len(low))
    return float(lower(c, d, low[[place]], high[[place]])[rule, 0])


def _clopper_pearson(ins: Floats, outs: Floats, t: Floats) -> Floats:
    fn, fp = np.searchsorted(np.sort(ins), t), len(outs) - np.searchsorted(np.sort(outs), t)
    return _bound(fn, len(ins), fp, len(outs))


def _bound(fn: Ints, n1: int, fp: Ints, n0: int) -> Floats:
    tail = (1 - LEVEL) / 2
    x = rates.clopper_pearson_limits(fn.astype(float), np.full(len(fn), float(n1)), tail)[1]
    y = rates.clopper_pearson_limits(fp.astype(float), np.full(len(fp), float(n0)), tail)[1]
    return np.where(x + y < 1, eps_of_rates(x, y, delta=DELTA), 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    grid = np.linspace(-1.0, 6.0, 15)
    methods: dict[str, Callable[[Floats, Floats], float]] = {
        "all": lambda a, b: simultaneous_lower_bound(a, b, delta=DELTA, level=LEVEL).low,
        "all, one way": lambda a, b: simultaneous_lower_bound(a, b, delta=DELTA, level=LEVEL, directions="high").low,
        "all, two cuts": lambda a, b: simultaneous_lower_bound(a, b, delta=DELTA, level=LEVEL, rules="two-sided").low,
        "15 fixed": lambda a, b: fixed_thresholds_lower_bound(a, b, grid, delta=DELTA, level=LEVEL).low,
        "split": split,
        "split, two cuts": split_two_cuts,
        "folded": lambda a, b: simultaneous_lower_bound(*folded(a, b), delta=DELTA, level=LEVEL).low,
    }
    print(f"{args.runs} runs, δ = {DELTA:g}: mean lower bound at {LEVEL:.0%} (share of runs above the true ε)")
    print(f"{'':20}{'scores':>8}{'true ε':>8}" + "".join(f"{name:>16}" for name in methods))
    for n in (200, 1000, 10_000, 100_000):
        for name, draw_in, draw_out, eps in CASES:
            runs = max(20, args.runs * 1000 // max(n, 1000))
            values = np.array([[f(*pair) for f in methods.values()] for pair in
                               ((draw_in(rng, n // 2), draw_out(rng, n // 2)) for _ in range(runs))])  # fmt: skip
            cells = "".join(f"{m:9.3f} ({s:4.0%})" for m, s in zip(values.mean(0), (values > eps).mean(0), strict=True))
            print(f"{name:20}{n:8,}{eps:8.3f}{cells}", flush=True)
    ins, outs = rng.normal(1.0, 1.0, 500_000), rng.normal(0.0, 1.0, 500_000)
    for what, rules in (("first call", ONE), ("next call", ONE), ("two cuts", TWO)):
        wall, cpu = time.perf_counter(), time.process_time()
        simultaneous_lower_bound(ins, outs, delta=DELTA, level=LEVEL, rules=rules)
        print(f"1,000,000 scores, {what}: {time.perf_counter() - wall:.2f} s, CPU {time.process_time() - cpu:.2f} s")


if __name__ == "__main__":
    main()
