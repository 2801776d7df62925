"""The mass of {μ(FNR, FPR) ≤ m}, the region of m-Gaussian DP, under independent Beta rates.

Its boundary is Φ⁻¹(x) + Φ⁻¹(y) = −m for (x, y) = (FNR, FPR), and the same for (1−FNR, 1−FPR).
"""

from __future__ import annotations

import numpy as np

from epsgauge.stats import beta, special
from epsgauge.stats.arrays import Floats
from epsgauge.stats.lines import Names
from epsgauge.stats.quadrature import gauss_legendre, sweep

NODES = 64
PANEL_WIDTH = 14.0


def region_mass(names: Names, mu: Floats) -> tuple[Floats, Floats, Floats]:
    """Mass inside, mass outside and density at `mu` for each of n tallies."""
    n = len(mu)
    ax, bx, nx, xlow, xhigh, x_mean, ay, by, ny, ylow, yhigh, y_mean = names.fields[:, :, [0, 3]].reshape(12, 2 * n)
    m = np.tile(mu, 2)
    rule = gauss_legendre(NODES)
    start = np.maximum(_edge(ax, xlow), -m + _edge(by, yhigh))
    end = np.minimum(-_edge(bx, xhigh), -m - _edge(ay, ylow))
    end = np.maximum(start, end)  # an empty window: one point, with closed forms on either side

    fx_e, sy_e = _cdfs(ax, bx, ay, by, end, m)
    fx, sy = _cdfs(ax, bx, ay, by, start, m)
    below = (1.0 - sy_e) * fx_e
    above = (1.0 - fx_e) * sy_e + fx * sy
    density = np.zeros(2 * n)
    panels = max(2, int(np.ceil((end - start).max() / PANEL_WIDTH)))
    width = (end - start) / panels
    for k in range(panels):
        z = (start + k * width)[:, None] + width[:, None] * rule.nodes
        z, t = _clip(z), _clip(-m[:, None] - z)
        px, gx = _along(beta.Shapes(ax, bx, nx), z, width)
        _, gy = _along(beta.Shapes(ay, by, ny), t, width)
        swept = sweep(rule, gx, gy, x_before=fx, y_before=sy)
        below += swept.below
        above += swept.above
        fx, sy = fx + swept.x, sy + swept.y
        density += (gy * px * _hazard(z, special.ndtr(z))) @ rule.weights

    # as in `lines`: with the centre of mass beyond the curve the inside is what is small
    centre = special.ndtri(x_mean) + special.ndtri(y_mean) < -m
    below, above, beyond = below.reshape(2, n), above.reshape(2, n), centre.reshape(2, n)
    outside = below[0] + below[1]
    inside = np.where(beyond[0], above[0] - below[1], np.where(beyond[1], above[1] - below[0], 1.0 - outside))
    inside = np.where(mu == 0, 0.0, inside)  # a line has no mass at all
    outside = np.where(beyond[0] | beyond[1], 1.0 - inside, outside)
    return np.clip(inside, 0.0, 1.0), np.clip(outside, 0.0, 1.0), density.reshape(2, n).sum(0)


def _clip(z: Floats) -> Floats:
    """To where Φ(z) and Φ(−z) are above 0; no window that is not empty goes further."""
    return np.clip(z, -37.0, 37.0)


def _edge(a: Floats, low: Floats) -> Floats:
    """Φ⁻¹ of the start of a window; where that is 0, of the x below which x^a is nothing."""
    out: Floats = special.ndtri(np.maximum(low, beta.OUTSIDE ** (1.0 / np.minimum(a, 1.0))))
    return out


def _cdfs(ax: Floats, bx: Floats, ay: Floats, by: Floats, z: Floats, m: Floats) -> tuple[Floats, Floats]:
    """Pr[x ≤ Φ(z)] and Pr[y ≥ Φ(−m − z)]."""
    z, t = _clip(z), _clip(-m - z)
    x, x_up, y, y_up = special.ndtr(z), special.ndtr(-z), special.ndtr(t), special.ndtr(-t)
    return beta.cdf(ax, bx, x, x_up), beta.cdf(by, ay, y_up, y)


def _along(shapes: beta.Shapes, z: Floats, width: Floats) -> tuple[Floats, Floats]:
    """x f(x) at x = Φ(z), and the density of x along the panel."""
    x = special.ndtr(z)
    p = beta.density(shapes, x, special.ndtr(-z), np.log(x))
    return p, p * _hazard(z, x) * width[:, None]


def _hazard(z: Floats, x: Floats) -> Floats:
    """φ(z)/Φ(z), where x = Φ(z)."""
    out: Floats = np.exp(-0.5 * z * z) / (x * np.sqrt(2 * np.pi))
    return out
