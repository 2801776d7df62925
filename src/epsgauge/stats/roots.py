"""Quantiles of many posteriors at once: Newton on the probit of the cdf, inside a bracket."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import special

from epsgauge.stats.arrays import Bools, Floats, Ints
from epsgauge.stats.families import Distribution

Evaluate = Callable[[Floats, Ints], Distribution]

# A cdf or sf below this says only on which side of the root we are.
FLOOR = 1e-17
# Stop when the probit at the last point is this close to the target: what Newton leaves is its square.
CLOSE = 1e-6
# Or when the product of the distances of the last two points is this small, as the cubic leaves its square / 24 ...
CLOSE_TWICE = 3e-6
# ... and what the cubic adds to the parabola is this small against θ: its own error is of the next order.
CUBIC_TERM = 1e-8
MAX_STEPS = 200


def solve(evaluate: Evaluate, *, p: Floats, q: Floats, start: Floats, top: float) -> Floats:
    """The smallest θ ≥ 0 with cdf ≥ p, for 0 < p < 1; q = 1 − p is given too, so that either tail is exact.

    `evaluate(theta, index)` gives the distribution of problems `index` at `theta`.
    """
    out = np.empty_like(start)
    todo, theta, z_wanted = np.arange(start.size), start, probit(p, q)
    low = np.full_like(start, -1.0)  # the root is above it; −1 as long as 0, which may have mass, is not ruled out
    high = np.full_like(start, top)
    old: Point | None = None
    for _ in range(MAX_STEPS):
        d = evaluate(theta, todo)
        # the side is decided on whichever of cdf and sf is small
        below = np.where(p < 0.5, d.cdf < p, d.sf > q)
        low, high = np.where(below, theta, low), np.where(below, high, theta)
        point, usable = _point(theta, d)
        miss = np.abs(z_wanted - point.z)
        step, done = theta + (z_wanted - point.z) * point.slope, miss <= CLOSE
        if old is not None:
            cubic, term, two = _cubic(z_wanted, old, point)
            two &= (cubic > low) & (cubic < high)
            step = np.where(two, cubic, step)
            done |= two & (miss * np.abs(z_wanted - old.z) <= CLOSE_TWICE) & (np.abs(term) <= CUBIC_TERM * step)
        inside = usable & (step >= np.maximum(low, 0.0)) & (step <= high)
        done |= np.abs(step - theta) <= 4e-16 * theta  # no number in between
        done &= inside
        if not inside.all():
            halfway = np.where(np.isfinite(high), 0.5 * (low + high), 2.0 * theta + 1.0)
            step = np.where(inside, step, np.where(low < 0, 0.0, halfway))
            done |= (high - low <= 4e-16 * low) | ((high == 0) & (low < 0))
            step = np.where(high == 0, 0.0, step)
        old, theta = point, step
        if done.any():
            out[todo[done]] = theta[done]
            keep = ~done
            if not keep.any():
                return out
            todo, old = todo[keep], Point(*(a[keep] for a in old))
            theta, z_wanted, p, q, low, high = (a[keep] for a in (theta, z_wanted, p, q, low, high))
    raise ArithmeticError("a quantile did not converge")  # a defect of ours, never of the input


def probit(p: Floats, q: Floats) -> Floats:
    """Φ⁻¹(p) from whichever of p and q = 1 − p is smaller."""
    low = p < q
    z: Floats = special.ndtri(np.where(low, p, q))
    return np.where(low, z, -z)


class Point(NamedTuple):
    """A point of the inverse function: θ, its probit z, and dθ/dz, which is 0 where it cannot be used."""

    theta: Floats
    z: Floats
    slope: Floats


def _point(theta: Floats, d: Distribution) -> tuple[Point, Bools]:
    """The point at `theta`, and whether the cdf says more there than on which side the root is."""
    small = np.minimum(d.cdf, d.sf)
    usable = (small > FLOOR) & (d.pdf > 0)
    z = special.ndtri(np.maximum(small, FLOOR))
    z = np.where(d.cdf < d.sf, z, -z)
    slope = np.exp(-0.5 * z * z) / (np.sqrt(2 * np.pi) * np.where(usable, d.pdf, np.inf))
    return Point(theta, z, slope), usable


def _cubic(z: Floats, old: Point, new: Point) -> tuple[Floats, Floats, Bools]:
    """The inverse function at z by the cubic through two points with their slopes, and whether there are two.

    Between them: how far the cubic is from the parabola through both points with the slope of the new one.
    """
    gap = new.z - old.z
    two = (old.slope > 0) & (new.slope > 0) & (np.abs(gap) > 1e-7)
    gap = np.where(two, gap, 1.0)
    u = (z - new.z) / gap  # 0 at the new point, −1 at the old one
    two &= np.abs(u) < 3
    chord = (new.theta - old.theta) / gap
    parabola = new.theta + gap * u * (new.slope + u * (new.slope - chord))
    term = gap * u * u * (1.0 + u) * (new.slope - 2 * chord + old.slope)
    return parabola + term, term, two
