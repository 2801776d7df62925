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
# Or when the product of the distances of the last two points is this small: the cubic leaves its square / 24.
CLOSE_TWICE = 3e-6
MAX_STEPS = 200


def solve(evaluate: Evaluate, *, p: Floats, q: Floats, start: Floats, first: Distribution, top: float) -> Floats:
    """θ with cdf = p and sf = q = 1 − p (both given, so that either tail is exact), for 0 < p < 1.

    `evaluate(theta, index)` gives the distribution of problems `index` at `theta`, and `first` is that at
    `start`. The caller knows that the mass at 0 is below p.
    """
    target = probit(p, q)
    theta = start.copy()
    low, high = np.zeros_like(theta), np.full_like(theta, top)
    # the last evaluated point of each problem: θ, its probit and dθ/dprobit (0: none that can be used)
    old_t, old_z, old_s = np.zeros_like(theta), np.zeros_like(theta), np.zeros_like(theta)
    todo = np.arange(theta.size)
    for step_number in range(MAX_STEPS):
        t, zt = theta[todo], target[todo]
        d = evaluate(t, todo) if step_number else first
        # the side is decided on whichever of cdf and sf is small
        below = np.where(p[todo] < 0.5, d.cdf < p[todo], d.sf > q[todo])
        low[todo] = np.where(below, np.maximum(low[todo], t), low[todo])
        high[todo] = np.where(below, high[todo], np.minimum(high[todo], t))
        lo, hi = low[todo], high[todo]

        z = probit(d.cdf, d.sf)
        usable = (d.cdf > FLOOR) & (d.sf > FLOOR) & (d.pdf > 0)
        z = np.where(usable, z, zt)
        slope = np.where(usable, np.exp(-0.5 * z * z) / np.sqrt(2 * np.pi) / np.where(usable, d.pdf, 1.0), 0.0)
        newton = t + (zt - z) * slope
        cubic, two = _cubic(zt, (old_t[todo], old_z[todo], old_s[todo]), (t, z, slope))
        step = np.where(two & (cubic > lo) & (cubic < hi), cubic, newton)
        inside = usable & (step >= lo) & (step <= hi)
        halved = np.where(np.isfinite(hi), 0.5 * (lo + hi), 2.0 * t + 1.0)
        theta[todo] = np.where(inside, step, halved)

        miss = np.abs(zt - z)
        done = inside & ((miss <= CLOSE) | (two & (miss * np.abs(zt - old_z[todo]) <= CLOSE_TWICE)))
        done |= hi - lo <= 4e-16 * lo
        old_t[todo], old_z[todo], old_s[todo] = t, z, slope
        todo = todo[~done]
        if not todo.size:
            return theta
    raise ArithmeticError("a quantile did not converge")  # a defect of ours, never of the input


def probit(p: Floats, q: Floats) -> Floats:
    """Φ⁻¹(p) from whichever of p and q = 1 − p is smaller."""
    low = p < q
    z: Floats = special.ndtri(np.where(low, p, q))
    return np.where(low, z, -z)


def _cubic(z: Floats, old: tuple[Floats, Floats, Floats], new: tuple[Floats, Floats, Floats]) -> tuple[Floats, Bools]:
    """The inverse function at z by the cubic through two points with their slopes, and whether there are two."""
    (t0, z0, s0), (t1, z1, s1) = old, new
    gap = z1 - z0
    two = (s0 > 0) & (s1 > 0) & (np.abs(gap) > 1e-7)
    gap = np.where(two, gap, 1.0)
    u = (z - z1) / gap  # 0 at the new point, −1 at the old one
    chord = (t1 - t0) / gap
    cubic = t1 + gap * u * (s1 + u * ((2 * s1 - 3 * chord + s0) + u * (s1 - 2 * chord + s0)))
    return cubic, two & (np.abs(u) < 3)
