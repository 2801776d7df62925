"""Lower bounds of ε and μ beside each other, one-sided at 95 % and δ = 1e-5, and how long the exact ones take.

`python benchmarks/bounds.py` prints three tables and judges nothing; `--mu` prints that of μ alone, `--noise` that of
DP-SGD's noise by its whole curve, with the time that a curve takes here and by dp-accounting. Seconds are CPU time on
one thread.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from tallies import DELTA, Cells
from timing import on_one_thread

import epsgauge as eg
from epsgauge.adjacency import ADJACENCIES
from epsgauge.bounds import exact
from epsgauge.bounds.exact import Direction, Quantity, by_inversion, exact_lower_bound
from epsgauge.bounds.gaussian import gaussian_bound, of_gaussian
from epsgauge.bounds.noise import eps_of_noise, noise_at_most
from epsgauge.bounds.ordering import EpsOrdering
from epsgauge.bounds.ranked import Ranked
from epsgauge.bounds.regions import MuRegion
from epsgauge.bounds.subsampled import curve
from epsgauge.mechanisms.accounting import composed
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.stats.families import Mu

LEVEL = 0.95

# What the exact bound is to reach at least.
GOALS: dict[Cells, float] = {
    (31, 996, 5, 968): 1.059,
    (63, 511, 2, 424): 2.428,
    (179, 510, 3, 308): 3.255,
    (65, 75, 25, 35): 0.614,
    (600, 600, 400, 400): 0.327,
    (1000, 1000, 0, 0): 6.496,
    (2, 487, 0, 511): 0.0,
}
SIZES = (500, 1000, 5000, 20_000, 50_000)
TRAININGS = ((0.1, 1.0, 100), (0.01, 0.8, 2000), (0.5, 2.0, 10), (0.001, 0.5, 10_000))  # rate, noise and steps
RATES = ((0.4, 0.4), (0.97, 0.005), (0.05, 0.1), (0.48, 0.5), (0.0, 0.0))  # FNR and FPR


def timed(cells: Cells, direction: Direction = "either") -> tuple[float, float]:
    """The exact bound, and the CPU seconds that it took."""
    tally = _tally(cells)
    exact._of_counts.cache_clear()
    start = time.process_time()
    value = exact_lower_bound(tally, delta=DELTA, level=LEVEL, direction=direction)
    return value, time.process_time() - start


def heights() -> None:
    print("TP, TN, FP, FN            Clopper-Pearson    goal   exact   right    Bayes  seconds")
    for cells, goal in GOALS.items():
        rows = eg.intervals(_tally(cells), delta=DELTA, level=2 * LEVEL - 1)
        value, seconds = timed(cells)
        right, _ = timed(cells, "right")
        print(
            f"{', '.join(map(str, cells)):25s} {rows['clopper-pearson'].low:15.3f} {goal:7.3f} {value:7.4f}"
            f" {right:7.4f} {rows['bayes'].low:8.3f} {seconds:8.2f}"
        )


def heights_of_mu() -> None:
    """Direction fixed beforehand. "by ε" is the exact bound of μ with outcomes in the order of ε at δ."""
    by_eps = Quantity(lambda n1, n0, level: EpsOrdering(n1, n0, DELTA, level), MuRegion, Mu())
    print("μ: TP, TN, FP, FN         Clopper-Pearson   exact  either    by ε    Bayes  seconds   ε of both")
    for cells in GOALS:
        tally = _tally(cells)
        plain = gaussian_bound(tally, delta=DELTA, level=LEVEL, method="clopper-pearson")
        start = time.process_time()
        sharp = gaussian_bound(tally, delta=DELTA, level=LEVEL)
        seconds = time.process_time() - start
        either = gaussian_bound(tally, delta=DELTA, level=LEVEL, direction="either")
        other = by_inversion(tally, by_eps, alpha=1.0 - LEVEL, direction="right")
        print(
            f"{', '.join(map(str, cells)):25s} {plain.mu:15.4f} {sharp.mu:7.4f} {either.mu:7.4f} {other:7.4f}"
            f" {eg.estimate_mu(tally).lower_bound(LEVEL):8.4f} {seconds:8.2f}  {plain.eps:6.3f} {sharp.eps:6.3f}"
        )


def noise() -> None:
    """Wrong guesses as of 2,000 normal scores 2 apart: the bound, its ε, and the times of both and of one curve."""
    share = np.append(0, np.cumsum(Ranked.of(np.zeros(2000, bool)).sizes)) / 2000
    wrong = np.diff(np.round(2000 * of_gaussian(2.0)(share)).astype(int))
    guesses = Ranked(tuple(np.diff(np.round(2000 * share)).astype(int).tolist()), tuple(wrong.tolist()))
    print("rate, noise, steps, adjacency     noise    ε at δ   bound, s    ε, s   curve, ms   dp-accounting, ms")
    for rate, sigma, steps in TRAININGS:
        for adjacency in ADJACENCIES:
            privacy, spent = DPSGD(rate, sigma, steps), []
            for job in (
                lambda p=privacy, a=adjacency: noise_at_most(guesses, p, adjacency=a, level=LEVEL),
                lambda p=privacy, a=adjacency: eps_of_noise(p.noise_multiplier, p, delta=DELTA, adjacency=a),
                lambda p=privacy, a=adjacency: curve(p, a),
                lambda p=privacy, a=adjacency: composed(p, a, width=min(0.01, 0.075 / p.steps**0.5)),
            ):
                start = time.process_time()
                spent.append((job(), time.process_time() - start))
            (bound, a), (_, b), (_, c), (_, d) = spent
            eps = eps_of_noise(bound, privacy, delta=DELTA, adjacency=adjacency)
            print(
                f"{f'{rate:g}, {sigma:g}, {steps}, {adjacency}':32s} {bound:6.3f} {eps:9.3f} {a:10.3f} {b:7.3f}"
                f" {1e3 * c:11.1f} {1e3 * d:19.1f}"
            )


def seconds() -> None:
    print(f"{'trials of each kind':>20s}" + "".join(f"{f'rates {x:g}, {y:g}':>22s}" for x, y in RATES))
    for n in SIZES:
        row = [timed((n - round(n * x), n - round(n * y), round(n * y), round(n * x))) for x, y in RATES]
        print(f"{n:20,d}" + "".join(f"{f'{value:.3f} in {s:.2f} s':>22s}" for value, s in row), flush=True)


def _tally(cells: Cells) -> eg.Tally:
    tp, tn, fp, fn = cells
    return eg.Tally(tp=tp, tn=tn, fp=fp, fn=fn)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mu", action="store_true", help="only the table of μ")
    parser.add_argument("--noise", action="store_true", help="only the table of DP-SGD's noise")
    asked = parser.parse_args()
    only_mu = asked.mu
    on_one_thread()
    timed((20, 20, 5, 5))  # imports and caches
    if asked.noise:
        composed(DPSGD(0.5, 1.0, 2), "substitute", width=0.01)
        noise()
        raise SystemExit
    if not only_mu:
        heights()
        print()
    heights_of_mu()
    if not only_mu:
        print()
        seconds()
