"""Whether bits can be those of fair coins: as many of 1 as of 0, and spread over the models as coins fall."""

from __future__ import annotations

import math

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Ints
from epsgauge.stats.binomial import log_mass

# Fair coins are doubted at most in one table of ten thousand: for their number, or for how they are spread.
UNFAIR = 1e-4


def unfair(model: Ints, bit: Ints, failed_ones: int, failed_zeros: int) -> str | None:
    """Why the bits are hardly those of fair coins; None where they may be."""
    ones, n = int(bit.sum()) + failed_ones, len(bit) + failed_ones + failed_zeros
    if 2 * special.bdtr(min(ones, n - ones), n, 0.5) < UNFAIR / 2:
        return f"it needs bits that are coins, but {ones} of {n} are 1"
    _, of = np.unique(model, return_inverse=True)
    if too_even(np.bincount(of, bit).astype(np.int64), np.bincount(of)) < UNFAIR / 2:
        return (
            "it needs bits that are coins, but each model has about as many ones as zeros, more evenly than coins fall"
        )
    return None


def too_even(ones: Ints, pairs: Ints) -> float:
    """An upper bound of the probability that fair coins spread this evenly: Chernoff's, for Σ (2 ones − pairs)².

    A table that was made with as many ones as zeros in every model is no game of coins: who knows one bit knows more
    of the others.
    """
    several = pairs > 1
    if not several.any():
        return 1.0
    sizes, times = np.unique(pairs[several], return_counts=True)
    seen = float(np.sum((2 * ones[several] - pairs[several]) ** 2))
    logs = []
    for rate in np.geomspace(1e-3, 1e3, 25) / float(np.mean(sizes)):
        terms = [n * _log_mean(int(m), rate) for m, n in zip(sizes, times, strict=True)]
        logs.append(rate * seen + sum(terms))
    return math.exp(min(0.0, *logs))


def _log_mean(m: int, rate: float) -> float:
    """log E exp(−rate (2X − m)²) for X of m coins."""
    k = np.arange(m + 1.0)
    return float(special.logsumexp(log_mass(k, m, 0.5) - rate * (2.0 * k - m) ** 2))
