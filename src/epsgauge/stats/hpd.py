"""Highest-density sets of a posterior: the point mass at 0 first, then where the density is highest."""

from __future__ import annotations

import numpy as np

from epsgauge.stats.arrays import Floats
from epsgauge.stats.interval import Interval
from epsgauge.stats.posterior import Posterior

GRID = 400
REFINE = 60
STEPS = 100


def highest_density(posterior: Posterior, level: float) -> tuple[Interval, ...]:
    """Disjoint intervals from left to right with total mass `level`; [0, 0] is the point mass alone."""
    atom = float(posterior.mass_at_zero)
    if atom >= level:
        return (Interval(0.0, 0.0, level, "credible"),)
    grid = _grid(posterior)
    density = posterior.pdf(grid)
    wanted = level - atom

    # the mass above a density falls as the density grows: regula falsi on it, with the Illinois halving
    low, high = 0.0, float(density.max())
    above_low, above_high = 1.0 - atom - wanted, -wanted
    for _ in range(STEPS):
        at = (low * above_high - high * above_low) / (above_high - above_low)
        edges = _edges(posterior, grid, density, at)
        cdf = posterior.cdf(edges)
        excess = float((cdf[1::2] - cdf[::2]).sum()) - wanted
        if abs(excess) < 1e-9:
            break
        if excess > 0:
            low, above_low, above_high = at, excess, 0.5 * above_high
        else:
            high, above_high, above_low = at, excess, 0.5 * above_low

    pieces = [Interval(float(a), float(b), level, "credible") for a, b in edges.reshape(-1, 2)]
    if atom > 0 and not (pieces and pieces[0].low == 0):
        pieces.insert(0, Interval(0.0, 0.0, level, "credible"))
    return tuple(pieces)


def _grid(posterior: Posterior) -> Floats:
    """Points from 0 to far out, dense where the posterior is: its quantiles, and evenly in between."""
    tails = np.geomspace(1e-9, 0.02, 16)
    inner = np.linspace(0.02, 0.98, 60)
    quantiles = posterior.quantile(np.concatenate([[0.0], tails, inner]))
    knots = np.unique(np.concatenate([quantiles, posterior.isf(tails)]))
    even = np.linspace(0.0, knots[-1], GRID)
    return np.unique(np.concatenate([knots, even]))


def _edges(posterior: Posterior, grid: Floats, density: Floats, at: float) -> Floats:
    """Where the density crosses `at`, in pairs that enclose the pieces above it."""
    above = density >= at
    change = np.flatnonzero(above[1:] != above[:-1])
    low, high = grid[change].copy(), grid[change + 1].copy()
    f_low, f_high = density[change] - at, density[change + 1] - at
    for _ in range(REFINE):  # regula falsi with halving of the end that stays (Illinois)
        if not low.size or np.all(high - low <= 1e-13 * high):
            break
        mid = np.clip(high - f_high * (high - low) / (f_high - f_low), low, high)
        f_mid = posterior.pdf(mid) - at
        left = np.sign(f_mid) == np.sign(f_low)
        f_low, f_high = np.where(left, f_mid, f_low * np.where(left, 1, 0.5)), np.where(left, f_high * 0.5, f_mid)
        low, high = np.where(left, mid, low), np.where(left, high, mid)
        if np.all(np.abs(f_mid) <= 1e-10 * at):
            low = high = mid
            break
    edges = list(0.5 * (low + high))
    if above[0]:
        edges.insert(0, 0.0)
    if len(edges) % 2:
        edges.append(grid[-1])
    return np.array(edges)
