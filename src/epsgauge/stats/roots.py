"""Quantiles of many posteriors at once: Newton on the probit of the cdf, inside a bracket."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Bools, Floats, Ints
from epsgauge.stats.families import Distribution

Evaluate = Callable[[Floats, Ints], Distribution]

# A cdf or sf below this says only on which side of the root we are.
FLOOR = 1e-17
# Stop when the probit at the last point is this close to the target: what Newton leaves is its square.
CLOSE = 1e-6
# Or when the product of the distances of the last two points is this small, as the cubic leaves its square / 24 ...
CLOSE_TWICE = 1e-6
# ... and what the cubic adds to the parabola is this small against θ: its own error is of the next order.
CUBIC_TERM = 1e-9
MAX_STEPS = 200
SQRT_TAU = np.sqrt(2 * np.pi)


def solve(evaluate: Evaluate, z: Floats, *, start: Floats, top: float) -> Floats:
    """The smallest θ ≥ 0 with cdf ≥ Φ(z).

    `evaluate(theta, index)` gives the distribution of problems `index` at `theta`. `start` has two rows of points, best
    on either side of the root. They are evaluated together, as that takes hardly longer than one of them.
    """
    out, todo = np.empty(z.size), np.arange(z.size)
    points = _points(start.ravel(), evaluate(start.ravel(), np.concatenate([todo, todo]))).reshape(3, 2, -1)
    below = points[1] < z
    # the root is above low, which is −1 as long as 0, which may have mass, is not ruled out
    low, high = np.maximum(*np.where(below, start, -1.0)), np.minimum(*np.where(below, top, start))
    first, second = np.abs(points[1] - z)
    old, new = np.where(first < second, points[:, ::-1], points).swapaxes(0, 1)
    for k in range(MAX_STEPS):
        theta = new[0]
        step, done = _step(z, old, new, low, high)
        inside = (new[2] > 0) & (step >= np.maximum(low, 0.0)) & (step <= high)
        if k > 2:  # a tail so small that it has no digits: is there a number in between?
            done |= np.abs(step - theta) <= 4e-16 * theta
        done &= inside
        if np.count_nonzero(inside) < inside.size:
            halfway = np.where(np.isfinite(high), 0.5 * (low + high), 2.0 * theta + 1.0)
            step = np.where(inside, step, np.where(low < 0, 0.0, halfway))
            done |= (high - low <= 4e-16 * low) | ((high == 0) & (low < 0))
            step = np.where(high == 0, 0.0, step)
        if np.count_nonzero(done):
            out[todo[done]] = step[done]
            todo, keep = todo[~done], ~done
            if not todo.size:
                return out
            new, step, z, low, high = new[:, keep], step[keep], z[keep], low[keep], high[keep]
        old, new = new, _points(step, evaluate(step, todo))
        below = new[1] < z
        low, high = np.where(below, step, low), np.where(below, high, step)
    raise ArithmeticError("a quantile did not converge")  # a defect of ours, never of the input


def probit(p: Floats, q: Floats) -> Floats:
    """Φ⁻¹(p) from whichever of p and q = 1 − p is smaller."""
    z: Floats = np.copysign(special.ndtri(np.minimum(p, q)), p - q)
    return z


def _points(theta: Floats, d: Distribution) -> Floats:
    """Points of the inverse function, in three rows: θ, its probit z, and dθ/dz, or 0 where z says only which side."""
    small = np.minimum(d.cdf, d.sf)
    usable = (small > FLOOR) & (d.pdf > 0)
    z = np.copysign(special.ndtri(np.maximum(small, FLOOR)), d.cdf - d.sf)
    return np.array([theta, z, np.exp(-0.5 * z * z) / np.where(usable, SQRT_TAU * d.pdf, np.inf)])


def _step(z: Floats, old: Floats, new: Floats, low: Floats, high: Floats) -> tuple[Floats, Bools]:
    """The inverse function at z, and whether that is close enough.

    By the cubic through two points with their slopes or, where there are no two, by Newton. `term` is how far the cubic
    is from the parabola through both points with the slope of the new one.
    """
    ahead, gap = z - new[1], new[1] - old[1]
    miss = np.abs(ahead)
    two = (np.minimum(old[2], new[2]) > 0) & (np.abs(gap) > np.maximum(miss / 3, 1e-7))
    gap = np.where(two, gap, 1.0)
    u = ahead / gap  # 0 at the new point, −1 at the old one
    turn = new[2] - (new[0] - old[0]) / gap
    term = ahead * u * (1.0 + u) * (turn + turn + old[2] - new[2])
    newton = new[0] + ahead * new[2]
    cubic = newton + ahead * u * turn + term
    two &= (cubic > low) & (cubic < high)
    step = np.where(two, cubic, newton)
    close = two & (miss * np.abs(z - old[1]) <= CLOSE_TWICE) & (np.abs(term) <= CUBIC_TERM * step)
    return step, close | (miss <= CLOSE)
