"""The mass of the privacy region R(ε, δ) under independent Beta rates, and how fast it grows in ε or in δ.

R is bounded by four lines (§2.3 of the paper). Each is the line y + e^ε x = 1 − δ between x = 0 and the
vertex x = y = v for one of four ways to name the rates, so one piece of code serves all four: see `Names`.
Beyond a line lie the rates that (ε, δ)-DP forbids. With the inner cdf known along the line, the mass beyond
it is a one-dimensional integral, and so is its derivative.

For one tally the calls of NumPy take the time, not the numbers. So x and y share an array, and arrays that meet
have the same shape: that is twice as fast as to broadcast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from epsgauge.stats import beta, charts, special
from epsgauge.stats.arrays import Bools, Floats, Ints
from epsgauge.stats.quadrature import gauss_legendre, nested

Number = TypeVar("Number", bound=np.generic)

NODES = 56
# Shapes that are no multiples of ½ are felt at the end of a line up to about this.
FEELS_ZERO = 12.0

SWAP = np.array([1, 0, 3, 2])  # from a line to the other one of its corner, where x and y change places
# For x, x, y, x and 1 − y: the rows of both shapes and of both ends of the window, among the 12 of x and y
ENDS = np.array([[0, 0, 6, 0, 7], [1, 1, 7, 1, 6], [3, 3, 9, 3, 10], [4, 4, 10, 4, 9]])


@dataclass(frozen=True)
class Names:
    """For n tallies, the four ways to call the rates x and y.

    Lines 0 and 1 have (x, y) = (FNR, FPR) and (FPR, FNR): beyond them an attack is better than (ε, δ)-DP allows.
    Lines 2 and 3 have (1−FPR, 1−FNR) and (1−FNR, 1−FPR): the same for an attack that is reliably wrong.
    """

    fields: Floats  # (2, 6, 4, n): of x and then of y both shapes, norm, both ends of the window, mean
    graded: bool = False  # some shapes are no multiples of ½, so that powers of c and s are not smooth at 0

    @classmethod
    def of(cls, fnr: tuple[Floats, Floats], fpr: tuple[Floats, Floats]) -> Names:
        """From the shapes (a, b) of the posteriors of FNR and FPR."""
        a = np.array([fnr[0], fpr[0], fpr[1], fnr[1]])  # of FNR, FPR, 1−FPR, 1−FNR
        b = a[::-1]
        low = beta.support(a, b)
        high = low[::-1]  # how close to 1 the window comes: where that of the complement starts
        x = np.array([a, b, beta.log_norm(a, b), low, high, a / (a + b)])
        small = a[a < FEELS_ZERO]
        return cls(np.array([x, x.take(SWAP, axis=1)]), graded=bool((2.0 * small % 1.0).any()))

    def pick(self, index: Ints) -> Names:
        return Names(self.fields.take(index, axis=3), self.graded)

    def with_upper(self, other: Names) -> Names:
        """Lines 0 and 1 of these tallies, lines 2 and 3 of others."""
        return Names(
            np.concatenate([self.fields[:, :, :2], other.fields[:, :, 2:]], axis=2), self.graded or other.graded
        )

    @property
    def means(self) -> Floats:
        """Of x and of y."""
        return self.fields[:, 5]


class Mass(NamedTuple):
    """Mass inside and outside a region, each accurate where it is small, and the growth of the inside."""

    inside: Floats
    outside: Floats
    growth: Floats


class _Parameters(NamedTuple):
    """ε and δ of each line, and what follows from them."""

    eps: Floats
    delta: Floats
    scale: Floats  # 1 − δ
    shrink: Floats  # e^−ε
    kappa: Floats  # (1 − δ) e^−ε
    s_vertex: Floats  # s² at the vertex, 1/(1 + e^ε)

    @classmethod
    def of(cls, eps: Floats, delta: Floats) -> _Parameters:
        """Those of the four lines of each tally."""
        eps, delta = np.concatenate([eps] * 4), np.concatenate([delta] * 4)
        scale, shrink = 1.0 - delta, np.exp(-eps)
        return cls(eps, delta, scale, shrink, scale * shrink, special.expit(-eps))

    def pick(self, rows: Ints) -> _Parameters:
        return _Parameters(*(q[rows] for q in self))


def region_mass(names: Names, eps: Floats, delta: Floats, *, along: Literal["eps", "delta"]) -> Mass:
    """Mass of R(eps, delta) for each of n tallies, and its derivative in `along`."""
    n = len(eps)
    fields = names.fields.reshape(2, 6, 4 * n)
    at = _Parameters.of(eps, delta)

    # Is the centre of mass beyond the lines of this corner? Then the mass on this side of them is what is small.
    x_mean, y_mean = names.means.reshape(2, 4 * n)
    beyond = x_mean + at.shrink * y_mean < at.kappa
    beyond |= _swapped(beyond)

    window = _windows(fields, at, graded=names.graded)
    fx_v, fx_e, fy_e, fx_s, sy_s = cdfs = _cdfs(fields, at, window)
    fy_v = _swapped(fx_v)
    inner_end = window[3] > at.s_vertex
    fx_e, fy_e = np.where(inner_end, fx_e, fx_v), np.where(inner_end, fy_e, fy_v)

    # Beyond the line with y > v, or on this side of it with x < v: first what lies outside the window.
    side = np.where(beyond, (fx_v - fx_e) * (1.0 - fy_e) + fx_s * sy_s, (fy_e - fy_v) * fx_e)
    growth = np.zeros(4 * n)
    rows = (window[0] < window[2]).nonzero()[0]
    if rows.size:
        lines = _Lines(fields.take(rows, axis=2), at.pick(rows), beyond[rows], names.graded)
        more, growth[rows] = lines.integrate(window.take(rows, axis=1), cdfs[3:].take(rows, axis=1), along)
        side[rows] += more

    ours = np.where(beyond, 1.0 - fx_v, fx_v).reshape(4, n)
    side = side.reshape(4, n)
    one, other = side[::2] + side[1::2] + ours[::2] * ours[1::2]
    right, wrong = beyond.reshape(4, n)[::2]
    either = right | wrong
    small = np.where(either, np.where(right, one - other, other - one), one + other)
    small = np.minimum(np.maximum(small, 0.0), 1.0)
    large = 1.0 - small
    inside, outside = np.where(either, small, large), np.where(either, large, small)
    if along == "delta":  # where both rates of a line may be at its end, the density of δ is infinite at 0
        growth[(at.delta == 0) & (fields[0, 0] + fields[1, 1] <= 1)] = np.inf
    if np.maximum.reduce(at.kappa) == 1.0:  # R(0, 0) is a line segment: it has no mass at all
        line = (eps == 0) & (delta == 0)
        inside, outside = np.where(line, 0.0, inside), np.where(line, 1.0, outside)
    return Mass(inside, outside, np.add.reduce(growth.reshape(4, n)))


def _swapped(of_lines: NDArray[Number]) -> NDArray[Number]:
    """What the other line of the same corner has."""
    return of_lines.reshape(4, -1).take(SWAP, axis=0).ravel()


def _windows(fields: Floats, at: _Parameters, *, graded: bool) -> charts.Window:
    """From where both rates begin to have mass to where one of them has no more, or to the vertex."""
    (x_low, x_high), (y_low, y_high) = fields[:, 3:5]
    room = np.maximum(at.kappa, 1e-300)
    s_end = np.maximum(np.maximum(y_low / at.scale, 1.0 - (1.0 - x_high) / room), at.s_vertex)
    c_end = np.maximum(1.0 - s_end, 0.0)
    c_start = np.maximum(x_low / room, (y_high - at.delta) / at.scale)
    if graded:
        c_start = np.maximum(c_start, _negligible(fields, at.delta))
    # an empty window shrinks to one point: what lies on either side of it has closed form
    c_start = np.minimum(c_start, c_end)
    return np.array([c_start, 1.0 - c_start, c_end, np.minimum(s_end, 1.0)])


def _negligible(fields: Floats, delta: Floats) -> Floats:
    """A c² below which x and 1 − δ − y together have no mass that counts: it goes with c^(2a + 2e)."""
    (ax, bx), (ay, by) = fields[:, :2]
    exponent = ax + np.where(delta > 0, 1.0, by)
    out: Floats = np.exp(-50.0 / exponent) / (ax + bx + ay + by)
    return out


def _cdfs(fields: Floats, at: _Parameters, window: charts.Window) -> Floats:
    """Pr[x ≤ v], Pr[x ≤ x_end], Pr[y ≤ y_end], Pr[x ≤ x_start] and Pr[y ≥ y_start], in one call of betainc.

    It is called only inside the windows, and not for ends that are the vertex.
    """
    c_start, s_start, c_end, s_end = window
    points: Floats = np.empty((2, 5, len(c_start)))
    x, up = points
    np.multiply(at.scale, at.s_vertex, out=x[0])
    np.multiply(at.kappa, c_end, out=x[1])
    np.multiply(at.scale, s_end, out=x[2])
    np.multiply(at.kappa, c_start, out=x[3])
    np.add(at.delta, at.scale * c_start, out=x[4])
    np.subtract(1.0, x, out=up)
    np.add(at.delta, at.scale * c_end, out=up[2])
    np.multiply(at.scale, s_start, out=up[4])
    ends = fields.reshape(12, -1).take(ENDS, axis=0)
    above = x > ends[2]
    out: Floats = above.astype(np.float64)
    inside = above & (up > ends[3])
    inside[1:3] &= s_end > at.s_vertex
    todo = inside.ravel().nonzero()[0]
    if todo.size:
        found = beta.cdf(*ends[:2].reshape(2, -1).take(todo, axis=1), *points.reshape(2, -1).take(todo, axis=1))
        out.ravel()[todo] = found
    if np.minimum.reduce(at.kappa) < 1e-290:  # x has no digits left, but x^a has: the leading term of betainc
        tiny = (at.kappa < 1e-290) & (c_start > 0)
        a, norm = fields[0, 0, tiny], fields[0, 2, tiny]
        log_x = (np.log(np.maximum(c_start, 1e-300)) + np.log(at.scale) - at.eps)[tiny]
        out[3, tiny] = np.exp(a * log_x + norm) / a
    return out


@dataclass(frozen=True)
class _Lines:
    """Lines with something in their window, flat."""

    fields: Floats
    at: _Parameters
    beyond: Bools
    graded: bool

    def integrate(self, window: charts.Window, before: Floats, along: Literal["eps", "delta"]) -> tuple[Floats, Floats]:
        """Mass beside each line inside its window, and how fast the region grows there.

        `before` is Pr[x below its window] and Pr[y above its window]; it is used up.
        """
        rule = gauss_legendre(NODES)
        side, growth = np.zeros((2, len(self.beyond)))
        if self.graded:
            pieces = charts.graded(window, rule)
        else:
            pieces = charts.pieces(window, self.at.delta, self.fields[1, 1], rule, far=along == "delta")
        for piece in pieces:
            r, (c2, s2) = piece.rows, piece.squares
            eps, delta, scale, kappa = (q[r, None] for q in (self.at.eps, self.at.delta, self.at.scale, self.at.kappa))
            rates, up, logs = (np.empty_like(piece.squares) for _ in range(3))  # of x and of y
            np.multiply(kappa, c2, out=rates[0])
            np.multiply(scale, s2, out=rates[1])
            np.subtract(1.0, rates[0], out=up[0])
            np.multiply(scale, c2, out=up[1])
            up[1] += delta
            np.log(c2, out=logs[0])
            logs[0] += np.log(scale) - eps
            np.log(rates[1], out=logs[1])
            p = beta.density(beta.Shapes(*(self.fields[:, i, r] for i in range(3))), rates, up, logs)
            g = np.divide(piece.speed, piece.squares, out=rates)
            g *= p  # from x f(x) to the density of x along the piece, and so for y
            both = np.multiply(p[0], g[1], out=p[0])
            if along == "delta":
                both /= scale * c2
            growth[r] += both @ rule.weights
            here = g @ rule.weights
            x_rest, y_rest = before[::-1, r] * here
            before[:, r] += here  # where the next piece of these lines starts
            beyond = self.beyond[r]
            swapped = beyond.nonzero()[0]
            g[:, swapped] = g[::-1, swapped]
            inner, outer = g
            side[r] += np.where(beyond, x_rest, y_rest) + nested(rule, outer, inner)
        return side, growth
