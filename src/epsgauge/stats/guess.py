"""Rough quantiles of each posterior, to start a search from: quantiles of a few points spread like the rates."""

from __future__ import annotations

from functools import cache

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Floats
from epsgauge.stats.families import Family

POINTS = 128
# Tallies worked on at once: few enough that the temporaries stay in the cache.
BLOCK = 128


@cache
def _spread() -> Floats:
    """Standard normal points in two dimensions, from a rank-1 lattice, one row a dimension; the first ascends."""
    k = np.arange(POINTS) + 0.5
    golden = 0.7548776662466927  # the generalised golden ratio's R2 sequence
    out: Floats = special.ndtri(np.array([k / POINTS, (k * golden) % 1.0]))
    return out


def rough_quantiles(family: Family, shapes: Floats, z: Floats) -> Floats:
    """About the Φ(z) quantiles of θ for n tallies.

    `shapes` (2, 2, n) are a of FNR and of FPR, then b of both; z (any, n) has a column for each tally.
    """
    n = z.shape[1]
    if n > BLOCK:
        blocks = [np.arange(i, min(i + BLOCK, n)) for i in range(0, n, BLOCK)]
        return np.concatenate([rough_quantiles(family.pick(b), shapes[..., b], z[:, b]) for b in blocks], axis=1)
    spread = _spread()
    odds = np.exp(-_logits(shapes, spread))
    rates = 1.0 / (1.0 + odds)
    (x, y), (x_up, y_up) = rates, odds * rates
    theta = family.pick(np.arange(n)[:, None]).of_rates(x, x_up, y, y_up)
    theta.sort(axis=1)

    # between neighbours inside, a longer lever beyond the last point
    place = special.ndtr(z) * POINTS - 0.5
    left = np.minimum(np.maximum(place, 0.0), POINTS - 2.0).astype(np.int64)
    right = left + 1
    left = np.where(place > POINTS - 2, POINTS - 12, left)
    right = np.where(place < 1, 11, right)
    rows = np.arange(n)
    low, high = theta[rows, left], theta[rows, right]
    grid = spread[0]  # the probits of (k + ½)/n
    guess = low + (high - low) * (z - grid[left]) / (grid[right] - grid[left])
    guess = np.where(np.isfinite(guess), guess, 1.0)
    smallest = 0.02 * theta[:, POINTS // 2] + 1e-9
    return np.minimum(np.maximum(guess, smallest), 0.999 * family.top)


def _logits(shapes: Floats, z: Floats) -> Floats:
    """Logits of both rates at normal points, with the right mean, variance and skewness (Cornish and Fisher)."""
    first, second, third = special.psi(shapes), special.zeta(2.0, shapes), special.zeta(3.0, shapes)  # polygammas
    variance = second[0] + second[1]
    bend = (third[1] - third[0]) / (3.0 * variance)
    z = z[:, None]
    out: Floats = (first[0] - first[1])[..., None] + np.sqrt(variance)[..., None] * z + bend[..., None] * (z * z - 1.0)
    return out
