"""The best of all thresholds on the same scores, beside a threshold that half of the scores chose.

For mechanisms whose ε is known: how often a 95 % lower bound is above the true ε, and how high it is on average.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from scipy import special

from epsgauge.bounds.simultaneous import fixed_thresholds_lower_bound, simultaneous_lower_bound
from epsgauge.stats import rates
from epsgauge.stats.arrays import Floats
from epsgauge.stats.region import eps_of_rates

DELTA, LEVEL = 1e-5, 0.95
Draw = Callable[[np.random.Generator, int], Floats]


def gaussian(shift: float) -> Draw:
    return lambda rng, n: rng.normal(shift, 1.0, n)


def laplace(shift: float) -> Draw:
    return lambda rng, n: rng.laplace(shift, 1.0, n)


def best_gaussian(mu: float) -> float:
    """ε of the best threshold."""
    t = np.linspace(-12.0, 12.0, 20_001)
    return float(np.max(eps_of_rates(special.ndtr(t - mu), special.ndtr(-t), delta=DELTA)))


# name, scores with b = 1, scores with b = 0, ε of the best threshold; that of Laplace is for δ = 0
CASES = [
    ("no leak", gaussian(0.0), gaussian(0.0), 0.0),
    ("Gaussian, μ = 0.5", gaussian(0.5), gaussian(0.0), best_gaussian(0.5)),
    ("Gaussian, μ = 2", gaussian(2.0), gaussian(0.0), best_gaussian(2.0)),
    ("Laplace, ε = 1", laplace(1.0), laplace(0.0), 1.0),
    ("Laplace, ε = 3", laplace(3.0), laplace(0.0), 3.0),
]


def split(ins: Floats, outs: Floats) -> float:
    """Half of the scores choose the threshold with the largest Clopper-Pearson bound, the others judge it."""
    (a, c), (b, d) = (np.array_split(part, 2) for part in (ins, outs))
    t = np.unique(a)
    t = t[np.linspace(0, len(t) - 1, min(len(t), 400)).astype(int)]
    lower = _clopper_pearson(a, b, t)
    return float(_clopper_pearson(c, d, t[[int(np.argmax(lower))]])[0])


def _clopper_pearson(ins: Floats, outs: Floats, t: Floats) -> Floats:
    tail = (1 - LEVEL) / 2
    fn, fp = np.searchsorted(np.sort(ins), t), len(outs) - np.searchsorted(np.sort(outs), t)
    x = rates.clopper_pearson_limits(fn.astype(float), np.full(len(t), float(len(ins))), tail)[1]
    y = rates.clopper_pearson_limits(fp.astype(float), np.full(len(t), float(len(outs))), tail)[1]
    return np.where(x + y < 1, eps_of_rates(x, y, delta=DELTA), 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=200)
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    grid = np.linspace(-1.0, 6.0, 15)
    methods = {
        "all": lambda a, b: simultaneous_lower_bound(a, b, delta=DELTA, level=LEVEL).low,
        "all, one way": lambda a, b: simultaneous_lower_bound(a, b, delta=DELTA, level=LEVEL, directions="high").low,
        "15 fixed": lambda a, b: fixed_thresholds_lower_bound(a, b, grid, delta=DELTA, level=LEVEL).low,
        "split": split,
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
    for what in ("first call", "next call"):
        wall, cpu = time.perf_counter(), time.process_time()
        simultaneous_lower_bound(ins, outs, delta=DELTA, level=LEVEL)
        print(f"1,000,000 scores, {what}: {time.perf_counter() - wall:.2f} s, CPU {time.process_time() - cpu:.2f} s")


if __name__ == "__main__":
    main()
