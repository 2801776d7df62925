"""How often a bound is above the true ε at some moment of a run that is looked at all the time.

Each run has --samples independent trials with a fair bit; the table shows the share of runs in which a one-sided 95 %
lower bound was above the true ε after any of the looks. "anytime", "betting" and "shapes" are made for that; the first
sixth of the samples says for "shapes" how sure guesses are. Clopper-Pearson is for one look, and is shown both with its
one look at the end and with all of them, "until it is a violation".
"""

import argparse
import time

import numpy as np

import epsgauge as eg
from epsgauge.bounds.anytime import anytime_refutes
from epsgauge.bounds.betting import STAKES
from epsgauge.bounds.watched import log_ratio, watched
from epsgauge.scores.rules import default_fit
from epsgauge.stats import rates
from epsgauge.stats.region import eps_of_rates

# FNR, FPR: no leak, the vertex of two regions, off the vertex, an FPR of one in the number of samples
CASES = {
    "no leak": (0.5, 0.5),
    "no leak, FPR 0.1": (0.9, 0.1),
    "vertex, ε = 0.4": (0.4, 0.4),
    "vertex, ε = 3": (0.0474, 0.0474),
    "off the vertex": (0.3, 0.5),
    "FPR 0.01": (0.9, 0.01),
    "FPR 1/N": (0.95, 1e-4),
}


def counts(rng: np.random.Generator, x: float, y: float, n: int) -> eg.Tally:
    """The tally after each of n trials."""
    bit, wrong = rng.integers(0, 2, n) == 1, rng.random(n)
    miss, alarm = bit & (wrong < x), ~bit & (wrong < y)
    return eg.Tally(tp=np.cumsum(bit & ~miss), fn=np.cumsum(miss), fp=np.cumsum(alarm), tn=np.cumsum(~bit & ~alarm))


def clopper_pearson_refutes(tally: eg.Tally, eps: float, delta: float, alpha: float) -> np.ndarray:
    x = rates.clopper_pearson_limits(tally.fn.astype(float), tally.n_positive.astype(float), alpha / 2)[1]
    y = rates.clopper_pearson_limits(tally.fp.astype(float), tally.n_negative.astype(float), alpha / 2)[1]
    return (x + y < 1) & (eps_of_rates(x, y, delta=delta) > eps)


def betting_refutes(tally: eg.Tally, eps: float, delta: float, alpha: float) -> bool:
    """Whether the gambler's wealth ever was 1/α; the same stakes as in `betting`, one pair per model."""
    fn, fp = np.diff(tally.fn, prepend=0), np.diff(tally.fp, prepend=0)
    grown, slack = np.exp(eps), 1 - delta
    stakes = STAKES[STAKES * (2 * grown - slack) <= 1][:, None]
    logs = [np.cumsum(np.log1p(np.maximum(stakes * (slack - 2 * b - 2 * grown * a), -1 + 1e-15)), axis=1)
            for a, b in ((fn, fp), (fp, fn))]  # fmt: skip
    wealth = np.exp(np.minimum(np.concatenate(logs), 600)).sum(axis=0) / (2 * STAKES.size)
    return bool((wealth >= 1 / alpha).any())


def shapes_refute(tally: eg.Tally, eps: float, delta: float, alpha: float) -> bool:
    """Whether the likelihood ratio of shapes ever was 1/α; a guess is the score, one pair per model."""
    bit, wrong = (np.diff(x, prepend=0) for x in (tally.tp + tally.fn, tally.fp + tally.fn))
    guess, cut = (bit ^ wrong).astype(float), default_fit(len(bit))
    n = len(bit) - cut
    seen = watched(guess[cut:], bit[cut:], np.arange(n), np.ones(n, np.int64), guess[:cut], bit[:cut])
    return bool((log_ratio(seen, eps, delta, slice(None)) >= -np.log(alpha)).any())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--every", type=int, default=100, help="samples between the looks of Clopper-Pearson")
    parser.add_argument("--delta", type=float, default=1e-5)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    rng, alpha, start = np.random.default_rng(args.seed), 0.05, time.perf_counter()
    looks = np.arange(args.every - 1, args.samples, args.every)
    print(f"{args.runs} runs of {args.samples:,} samples, δ = {args.delta:g}, nominal {alpha:.0%}")
    print(f"{'':20}{'ε':>8}{'anytime':>9}{'betting':>9}{'shapes':>9}{'CP once':>9}{'CP always':>11}")
    print(f"{'looks every':20}{'':8}{'1':>9}{'1':>9}{'1':>9}{'':9}{args.every:11}")
    for name, (x, y) in CASES.items():
        eps = float(eps_of_rates(x, y, delta=args.delta))
        hits = np.zeros(5)
        for _ in range(args.runs):
            tally = counts(rng, x, y, args.samples)
            cp = clopper_pearson_refutes(tally[looks], eps, args.delta, alpha)
            hits += (
                bool(np.any(anytime_refutes(tally, eps=eps, delta=args.delta, level=1 - alpha))),
                betting_refutes(tally, eps, args.delta, alpha),
                shapes_refute(tally, eps, args.delta, alpha),
                bool(cp[-1]),
                bool(cp.any()),
            )
        shares = "".join(f"{share:{w}.1%}" for share, w in zip(hits / args.runs, (9, 9, 9, 9, 11), strict=True))
        print(f"{name:20}{eps:8.4f}{shares}", flush=True)
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
