"""The mass of the privacy region R(ε, δ) under independent Beta rates, and how fast it grows in ε or in δ.

R is bounded by four lines (§2.3 of the paper). Each is the line y + e^ε x = 1 − δ between x = 0 and the
vertex x = y = v for one of four ways to name the rates, so one piece of code serves all four: see `Names`.
Beyond a line lie the rates that (ε, δ)-DP forbids. With the inner cdf known along the line, the mass beyond
it is a one-dimensional integral, and so is its derivative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from epsgauge.stats import beta, charts
from epsgauge.stats.arrays import Bools, Floats, Ints
from epsgauge.stats.quadrature import gauss_legendre, nested

NODES = 56
# Tallies worked on at once: few enough that the temporaries stay in the cache.
TALLIES = 512
# Shapes that are no multiples of ½ are felt at the end of a line up to about this.
FEELS_ZERO = 12.0

SWAP = [1, 0, 3, 2]  # from a line to the other one of its corner, where x and y change places
# Fields of `Names` for x, x, y, x and 1 − y
A, B, LOW, HIGH = [0, 0, 6, 0, 7], [1, 1, 7, 1, 6], [3, 3, 9, 3, 10], [4, 4, 10, 4, 9]


@dataclass(frozen=True)
class Names:
    """For n tallies, the four ways to call the rates x and y.

    Lines 0 and 1 have (x, y) = (FNR, FPR) and (FPR, FNR): beyond them an attack is better than (ε, δ)-DP allows.
    Lines 2 and 3 have (1−FPR, 1−FNR) and (1−FNR, 1−FPR): the same for an attack that is reliably wrong.
    """

    fields: Floats  # (12, 4, n): shapes, norm, window and mean of x, then of y; one array, so that to pick is one step
    graded: bool = False  # some shapes are no multiples of ½, so that powers of c and s are not smooth at 0

    @classmethod
    def of(cls, fnr: tuple[Floats, Floats], fpr: tuple[Floats, Floats]) -> Names:
        """From the shapes (a, b) of the posteriors of FNR and FPR."""
        a = np.stack([fnr[0], fpr[0], fpr[1], fnr[1]])  # of FNR, FPR, 1−FPR, 1−FNR
        b = np.stack([fnr[1], fpr[1], fpr[0], fnr[0]])
        low = beta.support(a, b)
        high = low[[3, 2, 1, 0]]  # how close to 1 the window comes: where that of the complement starts
        x = np.stack([a, b, beta.log_norm(a, b), low, high, a / (a + b)])
        small = a[a < FEELS_ZERO]
        return cls(np.concatenate([x, x[:, SWAP]]), graded=bool((small != np.round(2 * small) / 2).any()))

    @property
    def x_mean(self) -> Floats:
        out: Floats = self.fields[5]
        return out

    @property
    def y_mean(self) -> Floats:
        out: Floats = self.fields[11]
        return out

    def pick(self, index: Ints) -> Names:
        return Names(self.fields[:, :, index], self.graded)

    def with_above(self, other: Names) -> Names:
        """The lines below R of these tallies, and the lines above R of others."""
        return Names(np.concatenate([self.fields[:, :2], other.fields[:, 2:]], axis=1), self.graded or other.graded)


@dataclass(frozen=True)
class Mass:
    """Mass inside and outside a region, each accurate where it is small, and the growth of the inside."""

    inside: Floats
    outside: Floats
    growth: Floats


@dataclass(frozen=True)
class _Parameters:
    """ε and δ of n tallies, and what follows from them."""

    eps: Floats
    delta: Floats
    scale: Floats  # 1 − δ
    shrink: Floats  # e^−ε
    kappa: Floats  # (1 − δ) e^−ε
    s_vertex: Floats  # s² at the vertex, 1/(1 + e^ε)

    @classmethod
    def of(cls, eps: Floats, delta: Floats) -> _Parameters:
        scale, shrink = 1.0 - delta, np.exp(-eps)
        return cls(eps, delta, scale, shrink, scale * shrink, special.expit(-eps))


def region_mass(names: Names, eps: Floats, delta: Floats, *, along: Literal["eps", "delta"]) -> Mass:
    """Mass of R(eps, delta) for each of n tallies, and its derivative in `along`."""
    n = len(eps)
    if n > TALLIES:
        out = np.empty((3, n))
        for i in range(0, n, TALLIES):
            part = slice(i, i + TALLIES)
            m = region_mass(Names(names.fields[:, :, part], names.graded), eps[part], delta[part], along=along)
            out[:, part] = m.inside, m.outside, m.growth
        return Mass(*out)

    at = _Parameters.of(eps, delta)
    xlow, xhigh, x_mean = names.fields[3:6]
    ylow, yhigh, y_mean = names.fields[9:12]

    # Is the centre of mass beyond the lines of this corner? Then the mass on this side of them is what is small.
    beyond = x_mean + at.shrink * y_mean < at.kappa
    beyond |= beyond[SWAP]

    # The window in c² = x/κ and s² = y/(1−δ): from where both rates begin to have mass to where one of them has
    # no more, or to the vertex.
    room = np.maximum(at.kappa, 1e-300)
    s_end = np.maximum(np.maximum(ylow / at.scale, 1.0 - (1.0 - xhigh) / room), at.s_vertex)
    c_end = np.maximum(1.0 - s_end, 0.0)
    c_start = np.maximum(np.maximum(xlow / room, (yhigh - delta) / at.scale), 0.0)
    if names.graded:
        c_start = np.maximum(c_start, _negligible(names, delta))
    alive = c_start < c_end
    # an empty window shrinks to one point: what lies on either side of it has closed form
    c_start = np.minimum(c_start, c_end)
    window = charts.Window(c_start, 1.0 - c_start, c_end, np.minimum(s_end, 1.0))

    fx_v, fx_e, fy_e, fx_s, sy_s = _cdfs(names, at, window)
    fy_v = fx_v[SWAP]
    at_vertex = window.s_end <= at.s_vertex
    fx_e, fy_e = np.where(at_vertex, fx_v, fx_e), np.where(at_vertex, fy_v, fy_e)

    # Beyond the line with y > v, or on this side of it with x < v: first what lies outside the window.
    side = np.where(beyond, (fx_v - fx_e) * (1.0 - fy_e) + fx_s * sy_s, (fy_e - fy_v) * fx_e)
    growth = np.zeros((4, n))
    rows = np.flatnonzero(alive)
    if rows.size:
        lines = _Lines.of(names, at, beyond, rows)
        more, grown = lines.integrate(window.pick(rows), fx_s.ravel()[rows], sy_s.ravel()[rows], along)
        side.ravel()[rows] += more
        growth.ravel()[rows] = grown

    corner = side[::2] + side[1::2]
    corner += np.where(beyond[::2], (1.0 - fx_v[::2]) * (1.0 - fy_v[::2]), fx_v[::2] * fy_v[::2])
    either = beyond[0] | beyond[2]
    small = np.where(
        beyond[0], corner[0] - corner[1], np.where(beyond[2], corner[1] - corner[0], corner[0] + corner[1])
    )
    small = np.clip(small, 0.0, 1.0)
    inside = np.where(either, small, 1.0 - small)
    outside = np.where(either, 1.0 - small, small)
    if along == "delta":  # where both rates of a line may be at its end, the density of δ is infinite at 0
        growth[(delta == 0) & (names.fields[0] + names.fields[7] <= 1)] = np.inf
    line = (eps == 0) & (delta == 0)
    if line.any():  # R(0, 0) is a line segment: it has no mass at all
        inside, outside = np.where(line, 0.0, inside), np.where(line, 1.0, outside)
    return Mass(inside, outside, growth.sum(axis=0))


def _negligible(names: Names, delta: Floats) -> Floats:
    """A c² below which x and 1 − δ − y together have no mass that counts: it goes with c^(2a + 2e)."""
    ax, bx, ay, by = names.fields[[0, 1, 6, 7]]
    exponent = ax + np.where(delta > 0, 1.0, by)
    out: Floats = np.exp(-50.0 / exponent) / (ax + bx + ay + by)
    return out


def _cdfs(names: Names, at: _Parameters, window: charts.Window) -> Floats:
    """Pr[x ≤ v], Pr[x ≤ x_end], Pr[y ≤ y_end], Pr[x ≤ x_start] and Pr[y ≥ y_start], in one call of betainc.

    It is called only inside the windows, and not for ends that are the vertex.
    """
    x = np.zeros((5, *window.c_start.shape))
    up = np.empty_like(x)
    x[0] = at.scale * at.s_vertex
    x[1] = at.kappa * window.c_end
    x[3] = at.kappa * window.c_start
    np.subtract(1.0, x, out=up)
    x[2], up[2] = at.scale * window.s_end, at.delta + at.scale * window.c_end
    up[4], x[4] = at.scale * window.s_start, at.delta + at.scale * window.c_start
    low, high = names.fields[LOW], names.fields[HIGH]
    out = np.where(x <= low, 0.0, 1.0)
    inside = (x > low) & (up > high)
    inside[1:3] &= window.s_end > at.s_vertex
    todo = np.flatnonzero(inside)
    if todo.size:
        a, b = names.fields[A].ravel()[todo], names.fields[B].ravel()[todo]
        out.ravel()[todo] = beta.cdf(a, b, x.ravel()[todo], up.ravel()[todo])
    if at.kappa.min() < 1e-290:  # x has no digits left, but x^a has: the leading term of the incomplete beta function
        tiny = (at.kappa < 1e-290) & (window.c_start > 0)
        a, norm = names.fields[0][tiny], names.fields[2][tiny]
        log_x = (np.log(np.maximum(window.c_start, 1e-300)) + np.log(at.scale) - at.eps)[tiny]
        out[3][tiny] = np.exp(a * log_x + norm) / a
    return out


@dataclass(frozen=True)
class _Lines:
    """Lines with something in their window, flat."""

    x: beta.Shapes
    y: beta.Shapes
    eps: Floats
    delta: Floats
    beyond: Bools
    graded: bool

    @classmethod
    def of(cls, names: Names, at: _Parameters, beyond: Bools, rows: Ints) -> _Lines:
        f = names.fields.reshape(12, -1)[:, rows]
        x, y = beta.Shapes(f[0], f[1], f[2]), beta.Shapes(f[6], f[7], f[8])
        tally = rows % len(at.eps)
        return cls(x, y, at.eps[tally], at.delta[tally], beyond.ravel()[rows], names.graded)

    def integrate(
        self, window: charts.Window, x_before: Floats, y_before: Floats, along: Literal["eps", "delta"]
    ) -> tuple[Floats, Floats]:
        """Mass beside each line inside its window, and how fast the region grows there.

        `x_before` is Pr[x below its window] and `y_before` is Pr[y above its window]; both are used up.
        """
        rule = gauss_legendre(NODES)
        side, growth = np.zeros(len(self.eps)), np.zeros(len(self.eps))
        if self.graded:
            pieces = charts.graded(window, rule)
        else:
            pieces = charts.pieces(window, self.delta, self.y.b, rule, far=along == "delta")
        for piece in pieces:
            r = piece.rows
            delta, eps = self.delta[r][:, None], self.eps[r][:, None]
            scale = 1.0 - delta
            x, y = (scale * np.exp(-eps)) * piece.c2, scale * piece.s2
            log_x = np.log(piece.c2)
            log_x += np.log(scale) - eps
            px = beta.density(self.x.pick(r), x, 1.0 - x, log_x)
            gy = beta.density(self.y.pick(r), y, delta + scale * piece.c2, np.log(y))
            gy *= piece.speed / piece.s2  # from y f(y) to the density of y along the piece
            gx = px * (piece.speed / piece.c2)
            x_here, y_here = gx @ rule.weights, gy @ rule.weights
            near = self.beyond[r]
            outer, inner = gy, gx
            if near.any():
                flag = near[:, None]
                outer, inner = np.where(flag, gx, gy), np.where(flag, gy, gx)
            side[r] += np.where(near, y_before[r] * x_here, x_before[r] * y_here) + nested(rule, outer, inner)
            x_before[r] += x_here  # where the next piece of these lines starts
            y_before[r] += y_here
            gy *= px
            if along == "delta":
                gy /= scale * piece.c2
            growth[r] += gy @ rule.weights
        return side, growth
