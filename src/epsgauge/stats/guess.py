"""A rough quantile of each posterior, to start Newton from: quantiles of a few points spread like the rates."""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy import special

from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.families import Family

POINTS = 64
# Tallies worked on at once: few enough that the temporaries stay in the cache.
BLOCK = 512


@cache
def _spread() -> tuple[Floats, Floats]:
    """Standard normal points in two dimensions, from a rank-1 lattice."""
    k = np.arange(POINTS) + 0.5
    golden = 0.7548776662466927  # the generalised golden ratio's R2 sequence
    return special.ndtri(k / POINTS), special.ndtri((k * golden) % 1.0)


def rough_quantile(
    family: Family, fnr: tuple[Floats, Floats], fpr: tuple[Floats, Floats], index: Ints, z: Floats
) -> Floats:
    """About the Φ(z) quantile of θ for tallies `index` with these Beta shapes, one z each."""
    if len(z) > BLOCK:
        blocks = [slice(i, i + BLOCK) for i in range(0, len(z), BLOCK)]
        return np.concatenate([rough_quantile(family, fnr, fpr, index[b], z[b]) for b in blocks])
    u, v = _spread()
    x, x_up = _logit_normal(fnr[0][index], fnr[1][index], u)
    y, y_up = _logit_normal(fpr[0][index], fpr[1][index], v)
    theta = family.pick(index[:, None]).of_rates(x, x_up, y, y_up)
    theta.sort(axis=1)

    # between neighbours inside, a longer lever beyond the last point
    place = special.ndtr(z) * POINTS - 0.5
    left = np.clip(np.floor(place), 0, POINTS - 2).astype(np.int64)
    right = left + 1
    left = np.where(place > POINTS - 2, POINTS - 12, left)
    right = np.where(place < 1, 11, right)
    rows = np.arange(len(z))
    low, high = theta[rows, left], theta[rows, right]
    grid = u  # the sorted normal points are the probits of (k + ½)/n
    guess = low + (high - low) * (z - grid[left]) / (grid[right] - grid[left])
    guess = np.where(np.isfinite(guess), guess, 1.0)
    smallest = 0.02 * theta[:, POINTS // 2] + 1e-9
    return np.clip(guess, smallest, 0.999 * family.top)


def _logit_normal(a: Floats, b: Floats, z: Floats) -> tuple[Floats, Floats]:
    """Beta(a, b) and its complement at normal points, with the right mean and variance of its logit, roughly."""
    mean = _digamma(a) - _digamma(b)
    sd = np.sqrt(_trigamma(a) + _trigamma(b))
    logit = mean[:, None] + sd[:, None] * z
    return special.expit(logit), special.expit(-logit)


def _digamma(a: Floats) -> Floats:
    return np.log(a) - 1 / (2 * a) - 1 / (12 * a * a)


def _trigamma(a: Floats) -> Floats:
    return 1 / a + 1 / (2 * a * a) + 1 / (6 * a * a * a)
