"""Quantiles of many posteriors at once: Newton on the probit of the cdf, inside a bracket."""

from __future__ import annotations

from collections.abc import Callable

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
    # the last point: θ, its probit and dθ/dprobit (0: none that can be used)
    old = (start, z_wanted, np.zeros_like(start))
    for _ in range(MAX_STEPS):
        d = evaluate(theta, todo)
        # the side is decided on whichever of cdf and sf is small
        below = np.where(p < 0.5, d.cdf < p, d.sf > q)
        low, high = np.where(below, theta, low), np.where(below, high, theta)

        usable = (d.cdf > FLOOR) & (d.sf > FLOOR) & (d.pdf > 0)
        z = np.where(usable, probit(d.cdf, d.sf), z_wanted)
        slope = np.where(usable, np.exp(-0.5 * z * z) / (np.sqrt(2 * np.pi) * np.where(usable, d.pdf, 1.0)), 0.0)
        cubic, term, two = _cubic(z_wanted, old, (theta, z, slope))
        two &= (cubic > low) & (cubic < high)
        step = np.where(two, cubic, theta + (z_wanted - z) * slope)
        inside = usable & (step >= np.maximum(low, 0.0)) & (step <= high)
        fallback = np.where(low < 0, 0.0, np.where(np.isfinite(high), 0.5 * (low + high), 2.0 * theta + 1.0))
        new = np.where(inside, step, fallback)

        miss = np.abs(z_wanted - z)
        close_twice = two & (miss * np.abs(z_wanted - old[1]) <= CLOSE_TWICE) & (np.abs(term) <= CUBIC_TERM * new)
        done = inside & ((miss <= CLOSE) | close_twice)
        done |= (high - low <= 4e-16 * low) | ((high == 0) & (low < 0))
        out[todo[done]] = np.where(high == 0, 0.0, new)[done]
        old = (theta, z, slope)
        theta = new
        if done.any():
            keep = ~done
            if not keep.any():
                return out
            todo = todo[keep]
            theta, z_wanted, p, q, low, high = (a[keep] for a in (theta, z_wanted, p, q, low, high))
            old = (old[0][keep], old[1][keep], old[2][keep])
    raise ArithmeticError("a quantile did not converge")  # a defect of ours, never of the input


def probit(p: Floats, q: Floats) -> Floats:
    """Φ⁻¹(p) from whichever of p and q = 1 − p is smaller."""
    low = p < q
    z: Floats = special.ndtri(np.where(low, p, q))
    return np.where(low, z, -z)


def _cubic(
    z: Floats, old: tuple[Floats, Floats, Floats], new: tuple[Floats, Floats, Floats]
) -> tuple[Floats, Floats, Bools]:
    """The inverse function at z by the cubic through two points with their slopes, and whether there are two.

    Between them: how far the cubic is from the parabola through both points with the slope of the new one.
    """
    (t0, z0, s0), (t1, z1, s1) = old, new
    gap = z1 - z0
    two = (s0 > 0) & (s1 > 0) & (np.abs(gap) > 1e-7)
    gap = np.where(two, gap, 1.0)
    u = (z - z1) / gap  # 0 at the new point, −1 at the old one
    chord = (t1 - t0) / gap
    parabola = t1 + gap * u * (s1 + u * (s1 - chord))
    term = gap * u * u * (1.0 + u) * (s1 - 2 * chord + s0)
    return parabola + term, term, two & (np.abs(u) < 3)
