"""The mass of the privacy region R(ε, δ) under independent Beta rates, and its derivatives in ε and δ.

R is bounded by four lines (§2.3 of the paper). Each is the line y + e^ε x = 1 − δ between x = 0 and the
vertex x = y = v for one of four ways to name the rates, so one piece of code serves all four: see `Names`.
Along a line x = κ c² and y = (1 − δ) s² with c² + s² = 1 and κ = (1 − δ) e^−ε, which removes the
singularities of a Beta(½, ·) density at x = 0 and y = 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from epsgauge.stats import beta
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.quadrature import Rule, gauss_legendre, sweep

NODES = 56
# Rows of nodes worked on at once: few enough that the temporaries stay in the cache.
ROWS = 256
# With δ > 0, (1 − y)^(b−1) has a branch point at c = i √δ; it is felt for shapes b up to about this.
CORNER_SHAPE = 40.0


@dataclass(frozen=True)
class Names:
    """For n tallies, the four ways to call the rates x and y; each field has the shape (4, n).

    Rows 0 and 1 are (FNR, FPR) and (FPR, FNR): the lines below which an attack is better than (ε, δ)
    allows. Rows 2 and 3 are (1−FPR, 1−FNR) and (1−FNR, 1−FPR): the same for an attack that is reliably wrong.
    """

    fields: Floats  # (10, 4, n): shapes, norms and windows, one array so that picking tallies is one step

    @classmethod
    def of(cls, fnr: tuple[Floats, Floats], fpr: tuple[Floats, Floats]) -> Names:
        """From the shapes (a, b) of the posteriors of FNR and FPR."""
        a = np.stack([fnr[0], fpr[0], fpr[1], fnr[1]])  # FNR, FPR, 1−FPR, 1−FNR
        b = np.stack([fnr[1], fpr[1], fpr[0], fnr[0]])
        norm = beta.log_norm(a, b)
        low = beta.support(a, b)
        high = low[[3, 2, 1, 0]]  # how close to 1 the window comes: the window of the complement
        x = np.stack([a, b, norm, low, high])
        return cls(np.concatenate([x, x[:, [1, 0, 3, 2]]]))

    def pick(self, index: Ints) -> Names:
        return Names(self.fields[:, :, index])


@dataclass(frozen=True)
class Mass:
    """Inside and outside mass of a region, each accurate where it is small, and the rate of growth."""

    inside: Floats
    outside: Floats
    d_eps: Floats
    d_delta: Floats


@dataclass(frozen=True)
class _Lines:
    """One row a line: fields of `Names`, flattened, with ε and δ."""

    ax: Floats
    bx: Floats
    nx: Floats
    ay: Floats
    by: Floats
    ny: Floats
    eps: Floats
    delta: Floats
    scale: Floats  # 1 − δ
    kappa: Floats  # (1 − δ) e^−ε
    log_kappa: Floats


def region_mass(names: Names, eps: Floats, delta: Floats) -> Mass:
    """Mass of R(eps, delta) for each of n tallies."""
    n = len(eps)
    step = ROWS // 4
    if n > step:
        parts = []
        for i in range(0, n, step):
            index = np.arange(i, min(i + step, n))
            parts.append(region_mass(names.pick(index), eps[index], delta[index]))
        return Mass(*(np.concatenate([getattr(p, f) for p in parts]) for f in Mass.__dataclass_fields__))

    ax, bx, nx, xlow, xhigh, ay, by, ny, ylow, yhigh = names.fields.reshape(10, 4 * n)
    eps4, delta4 = np.tile(eps, 4), np.tile(delta, 4)
    scale = 1.0 - delta4
    shrink = np.exp(-eps4)
    line = _Lines(ax, bx, nx, ay, by, ny, eps4, delta4, scale, scale * shrink, np.log1p(-delta4) - eps4)
    kappa = line.kappa

    # The window: c² from where x and y both begin to have mass to where one of them ends, or the vertex.
    s_vertex = special.expit(-eps4)
    tiny = np.maximum(kappa, 1e-300)
    c_start = np.maximum(np.minimum(xlow / tiny, 1.0), (yhigh - delta4) / scale)  # c²
    s_end = np.maximum(np.maximum(s_vertex, ylow / scale), 1.0 - np.minimum((1.0 - xhigh) / tiny, 1.0))  # s²
    c_start = np.clip(c_start, 0.0, 1.0)
    s_end = np.minimum(s_end, 1.0)
    alive = c_start < 1.0 - s_end
    # a line with an empty window is cut at one point: what lies on either side of it has closed form
    c_start = np.where(alive, c_start, 1.0 - s_end)
    s_start, c_end = 1.0 - c_start, 1.0 - s_end

    # values of both cdfs at the ends of the window and at the vertex
    v = scale * s_vertex
    fx_v, fy_v = _cdf(ax, bx, xlow, xhigh, v, 1.0 - v), _cdf(ay, by, ylow, yhigh, v, 1.0 - v)
    xe, ye = kappa * c_end, scale * s_end
    fx_e = _cdf(ax, bx, xlow, xhigh, xe, 1.0 - xe)
    fy_e = _cdf(ay, by, ylow, yhigh, ye, delta4 + scale * c_end)
    xs, ys = kappa * c_start, scale * s_start
    fx_s = _cdf(ax, bx, xlow, xhigh, xs, 1.0 - xs)
    sy_s = _cdf(by, ay, yhigh, ylow, delta4 + scale * c_start, ys)

    # per line: mass below it with y > v (for the outside), above it with x < v (for the inside)
    below = (fy_e - fy_v) * fx_e
    above = (fx_v - fx_e) * (1.0 - fy_e) + fx_s * sy_s
    d_eps, d_delta = np.zeros(4 * n), np.zeros(4 * n)
    rows = np.flatnonzero(alive)
    if rows.size:
        for panel in _panels(line, rows, c_start, s_start, c_end, s_end):
            _add(panel, line, fx_s, sy_s, below, above, d_eps, d_delta)

    # Corners: below both lines, or above both. Take what is small: with the centre of mass below the
    # lines the inside is small, and is a sum of positive terms but for the opposite corner.
    x0, y0 = (ax / (ax + bx)).reshape(4, n), (ay / (ay + by)).reshape(4, n)
    room = scale.reshape(4, n)
    in_line = y0 * shrink.reshape(4, n) + x0 < room * shrink.reshape(4, n)
    corner = (in_line[0] | in_line[1], in_line[2] | in_line[3])
    fx_v, fy_v, below, above = (q.reshape(4, n) for q in (fx_v, fy_v, below, above))
    outside = [below[i] + below[i + 1] + fx_v[i] * fy_v[i] for i in (0, 2)]
    inside = [above[i] + above[i + 1] + (1.0 - fx_v[i]) * (1.0 - fy_v[i]) for i in (0, 2)]
    total_in = np.where(
        corner[0], inside[0] - outside[1], np.where(corner[1], inside[1] - outside[0], 1.0 - (outside[0] + outside[1]))
    )
    total_in = np.where((eps == 0) & (delta == 0), 0.0, total_in)  # R(0, 0) is a line: it has no mass at all
    total_out = np.where(corner[0] | corner[1], 1.0 - total_in, outside[0] + outside[1])
    return Mass(
        np.clip(total_in, 0.0, 1.0), np.clip(total_out, 0.0, 1.0), d_eps.reshape(4, n).sum(0), d_delta.reshape(4, n).sum(0)
    )


def _cdf(a: Floats, b: Floats, low: Floats, high: Floats, x: Floats, upper: Floats) -> Floats:
    """Beta cdf that calls the incomplete beta function only inside the window."""
    out = np.where(x <= low, 0.0, 1.0)
    todo = np.flatnonzero((x > low) & (upper > high))
    if todo.size:
        out[todo] = beta.cdf(a[todo], b[todo], x[todo], upper[todo])
    return out


@dataclass(frozen=True)
class _Panel:
    """Nodes on some lines: c, s = √(1 − c²) and dc/dw·width, with x growing along the nodes."""

    rows: Ints
    c: Floats
    s: Floats
    dc: Floats
    rule: Rule


def _panels(
    line: _Lines, rows: Ints, c_start: Floats, s_start: Floats, c_end: Floats, s_end: Floats
) -> list[_Panel]:
    rule = gauss_legendre(NODES)
    cs, ss, ce, se = (np.sqrt(q[rows]) for q in (c_start, s_start, c_end, s_end))
    corner = (line.delta[rows] > 0) & (line.by[rows] < CORNER_SHAPE) & (cs * cs < 0.5 * np.minimum(line.delta[rows], 1))
    plain = np.flatnonzero(~corner)
    panels = []
    if plain.size:
        panels.append(_rational(rows[plain], cs[plain], ss[plain], ce[plain], se[plain], rule))
    if corner.any():
        special_rows = np.flatnonzero(corner)
        split = np.minimum(ce[special_rows], 0.75)
        panels.append(_corner(rows[special_rows], line.delta[rows[special_rows]], cs[special_rows], split, rule))
        rest = special_rows[ce[special_rows] > 0.75]
        if rest.size:
            c0 = np.full(rest.size, 0.75)
            panels.append(_rational(rows[rest], c0, np.sqrt(1 - c0 * c0), ce[rest], se[rest], rule))
    return panels


def _rational(rows: Ints, cs: Floats, ss: Floats, ce: Floats, se: Floats, rule: Rule) -> _Panel:
    """Half-angle chart c = 2g/(1+g²), or the same for s, from whichever end is nearer."""
    from_x = cs + ce < ss + se
    start, end = np.where(from_x, cs / (1 + ss), ss / (1 + cs)), np.where(from_x, ce / (1 + se), se / (1 + ce))
    g = start[:, None] + (end - start)[:, None] * rule.nodes
    q = 1.0 / (1.0 + g * g)
    near, far = 2.0 * g * q, (1.0 - g) * (1.0 + g) * q
    c, s = np.where(from_x[:, None], near, far), np.where(from_x[:, None], far, near)
    dc = 2.0 * q * s * np.abs(end - start)[:, None]
    return _Panel(rows, c, s, dc, rule)


def _corner(rows: Ints, delta: Floats, cs: Floats, ce: Floats, rule: Rule) -> _Panel:
    """c = √η sinh τ with η = δ/(1−δ): then 1 − y = δ cosh² τ, smooth however small δ is."""
    root = np.sqrt(delta / (1.0 - delta))
    start, end = np.arcsinh(cs / root), np.arcsinh(ce / root)
    tau = start[:, None] + (end - start)[:, None] * rule.nodes
    c = root[:, None] * np.sinh(tau)
    dc = np.sqrt(root[:, None] ** 2 + c * c) * (end - start)[:, None]
    return _Panel(rows, c, np.sqrt((1.0 - c) * (1.0 + c)), dc, rule)


def _log_upper(x: Floats, upper: Floats) -> Floats:
    """log(1 − x) where both x and 1 − x are at hand; for small x as accurate as log1p."""
    return np.log(upper) + np.where(upper > 0.5, ((1.0 - upper) - x) / upper, 0.0)


def _add(
    panel: _Panel, line: _Lines, fx_s: Floats, sy_s: Floats, below: Floats, above: Floats, d_eps: Floats, d_delta: Floats
) -> None:
    r, c, s = panel.rows, panel.c, panel.s
    kappa, scale, delta = line.kappa[r][:, None], line.scale[r][:, None], line.delta[r][:, None]
    c2, s2 = c * c, s * s
    log_c2 = np.log(c2)
    x, y = kappa * c2, scale * s2
    x_up, y_up = 1.0 - x, delta + scale * c2
    px = beta.density(line.ax[r], line.bx[r], line.nx[r], x, x_up, line.log_kappa[r][:, None] + log_c2, _log_upper(x, x_up))
    py = beta.density(line.ay[r], line.by[r], line.ny[r], y, y_up, _log_upper(y_up, y), _log_upper(y, y_up))
    gx = px * (panel.dc / c)
    gx *= 2.0
    gy = py * (panel.dc * c / s2)
    gy *= 2.0
    swept = sweep(panel.rule, gx, gy, x_before=fx_s[r], y_before=sy_s[r])
    below[r] += swept.below
    above[r] += swept.above
    fx_s[r] += swept.x  # where the next panel of these lines starts
    sy_s[r] += swept.y
    flow, w = gy * px, panel.rule.weights
    d_eps[r] += flow @ w
    d_delta[r] += (flow / c2) @ w / line.scale[r]
