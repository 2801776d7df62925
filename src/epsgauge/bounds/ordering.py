"""The order in which an exact bound takes outcomes: by the posterior probability of leaking more than θ.

For an outcome (fn, fp) let h(fn, fp; θ) be the probability, with independent Beta(½, ½) priors for both rates, that
they lie beyond the lower edge of the region of θ. For ε at δ that is FPR + e^ε FNR < 1 − δ or FNR + e^ε FPR < 1 − δ;
for μ of Gaussian DP it is Φ⁻¹(FNR) + Φ⁻¹(FPR) < −μ. h falls when θ, fn or fp grows, because the posterior of a rate
moves up with its count. So every set {h(·; θ) ≥ p} is a down-set: with an outcome it has all that have no more misses
and no more false alarms.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from epsgauge.stats import beta, brent, special
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.quadrature import gauss_legendre

NODES = 16  # of each panel
PANEL = 2.5  # width of a panel in standard deviations of a rate on the scale of angles
# What h may be wrong by. Outcomes that come within it of the observed one count as ties.
TIE = 1e-9
# With so few trials a rate may be anywhere.
FEW = 30
# Mass of a rate that may be left outside the nodes.
OUTSIDE = 1e-17
# The θ of a rank is found to about this, and not above it.
RESOLUTION = 1e-7
# Φ⁻¹ of a rate has no mass that counts beyond this, even for a count of 0.
FARTHEST = 13.5
# An angle, whose cosine is a rate's root, moves at most this much with Φ⁻¹ of the rate.
ANGLE = 0.4


@dataclass(frozen=True, order=True)
class Rank:
    """Where an outcome stands in the order: first by theta, the largest θ with h ≥ level, then by probability.

    Where even h at θ = 0 is below the level, theta is 0 and `probability` is that h; otherwise it is the level.
    """

    theta: float
    probability: float


class Ordering(ABC):
    """What was fixed before the data: the numbers of trials with b = 1 and b = 0, the level, and what θ is."""

    n1: int
    n0: int
    level: float

    @abstractmethod
    def beyond(self, fn: Ints | Floats, fp: Ints | Floats, theta: float) -> Floats:
        """h for every pair of a row fn and a column fp, with an error far below TIE; both are ascending."""

    def rank(self, fn: int, fp: int) -> Rank:
        """The rank of the outcome (fn, fp) or, by RESOLUTION or TIE, one below it; never one above it."""
        rows, cols = np.array([float(fn)]), np.array([float(fp)])

        def surplus(theta: float) -> float:
            return float(self.beyond(rows, cols, theta)[0, 0]) - (self.level + TIE)

        at_zero = surplus(0.0)
        if at_zero < 0:
            return Rank(0.0, min(self.level, self.level + at_zero))
        high = 1.0
        while surplus(high) >= 0:
            high *= 2.0
        low = brent.root(surplus, 0.0, high, xtol=RESOLUTION / 4)
        step = RESOLUTION
        while low > 0 and surplus(low) < 0:  # to the safe side of what was found
            low, step = max(0.0, low - step), 2.0 * step
        return Rank(low, self.level)

    def ends(self, rank: Rank, rows: Ints, cols: Ints) -> Ints:
        """For each row fn the largest fp in `cols` that is ranked at least `rank`, or one before the first.

        Rows and columns are consecutive. What is within TIE counts, and so does every outcome with no more errors
        than one that counts, so the set is never too small, and it is a down-set whatever the rounding.
        """
        if self.beyond(rows[:1], cols[:1], rank.theta)[0, 0] < rank.probability - TIE:
            return np.full(len(rows), cols[0] - 1)
        good = self.beyond(rows, cols, rank.theta) >= rank.probability - TIE
        last = np.where(good.any(axis=1), len(cols) - 1 - np.argmax(good[:, ::-1], axis=1), -1)
        out: Ints = cols[0] + np.maximum.accumulate(last[::-1])[::-1]
        return out


@dataclass(frozen=True)
class EpsOrdering(Ordering):
    """By ε at a δ."""

    n1: int
    n0: int
    delta: float
    level: float

    def beyond(self, fn: Ints | Floats, fp: Ints | Floats, theta: float) -> Floats:
        """Beyond the lines lies the square below the vertex (v, v), and what is left of each line beside it."""
        x, y = _Rate(np.asarray(fn, np.float64), self.n1), _Rate(np.asarray(fp, np.float64), self.n0)
        v = np.array([(1.0 - self.delta) * special.expit(-theta)])
        out = x.cdf(v) @ y.cdf(v).T
        out += self._beside(x, y, theta)
        out += self._beside(y, x, theta).T
        return out

    def _beside(self, x: _Rate, y: _Rate, eps: float) -> Floats:
        """Pr[x > v and y < (1 − δ − x) e^−ε], with x = (1 − δ) cos² ω, where ω runs from 0 to atan e^(ε/2)."""
        scale = 1.0 - self.delta
        edges = self._edges(x, y, eps)
        if not edges.size:
            return np.zeros((len(x.k), len(y.k)))
        omega, weight = _nodes(edges)
        cos2, sin2 = np.cos(omega) ** 2, np.sin(omega) ** 2
        density = x.density(scale * cos2, self.delta + scale * sin2) * (scale * np.sin(2 * omega) * weight)
        out: Floats = density @ y.cdf(scale * np.exp(-eps) * sin2).T
        return out

    def _edges(self, x: _Rate, y: _Rate, eps: float) -> Floats:
        """Panels of ω that are so narrow that all is smooth on them; none where nothing has mass.

        Below its window y has no mass, above it y has all: there only x asks for narrow panels. Towards ω = 0 the
        factor (1 − x)^(b−1) = (δ + (1 − δ) sin² ω)^(b−1) asks for ever narrower ones, down to √δ.
        """
        scale = 1.0 - self.delta

        def angle(share: float) -> float:
            return float(np.arcsin(np.sqrt(min(max(share, 0.0), 1.0))))

        x_low, x_high = x.window
        y_low, y_high = (np.exp(eps) * end / scale for end in y.window)
        start = max(angle((scale - x_high) / scale), angle(y_low))
        end = min(float(np.arctan(np.exp(eps / 2))), angle((scale - x_low) / scale))
        if not start < end:
            return np.empty(0)
        middle = min(max(angle(y_high), start), end)
        graded = np.sqrt(self.delta) * 2.0 ** np.arange(60) if self.delta > 0 else np.empty(0)
        graded = graded[(graded > start) & (graded < end)]
        parts = [_even(start, middle, max(x.n, y.n)), _even(middle, end, x.n), graded]
        return np.unique(np.concatenate(parts))


@dataclass(frozen=True)
class MuOrdering(Ordering):
    """By μ of Gaussian DP."""

    n1: int
    n0: int
    level: float

    def beyond(self, fn: Ints | Floats, fp: Ints | Floats, theta: float) -> Floats:
        """The integral of Pr[y < Φ(−z − μ)] over x = Φ(z): smooth on the whole line of z."""
        x, y = _Rate(np.asarray(fn, np.float64), self.n1), _Rate(np.asarray(fp, np.float64), self.n0)
        edges = self._edges(x, y, theta)
        if not edges.size:
            return np.zeros((len(x.k), len(y.k)))
        z, weight = _nodes(edges)
        density = x.density(special.ndtr(z), special.ndtr(-z)) * (weight * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi))
        out: Floats = density @ y.cdf(special.ndtr(-z - theta)).T
        return out

    def _edges(self, x: _Rate, y: _Rate, mu: float) -> Floats:
        """Panels of z: up to `full` y has all its mass below the curve, and only x asks for narrow ones."""

        def probit(share: float) -> float:
            return float(np.clip(special.ndtri(share), -FARTHEST, FARTHEST))

        start, end = (probit(share) for share in x.window)
        none, full = (-probit(share) - mu for share in y.window)
        end = min(end, none)
        if not start < end:
            return np.empty(0)
        full = min(max(full, start), end)
        parts = [_even(ANGLE * start, ANGLE * full, x.n), _even(ANGLE * full, ANGLE * end, max(x.n, y.n))]
        return np.unique(np.concatenate(parts)) / ANGLE


def _nodes(edges: Floats) -> tuple[Floats, Floats]:
    """Nodes and weights of all panels."""
    rule, width = gauss_legendre(NODES), np.diff(edges)
    nodes: Floats = (edges[:-1, None] + width[:, None] * rule.nodes).ravel()
    weights: Floats = (width[:, None] * rule.weights).ravel()
    return nodes, weights


def _even(start: float, end: float, n: int) -> Floats:
    """Edges of panels that are narrow beside the standard deviation of a share of n."""
    widest = PANEL / (2.0 * np.sqrt(n + 1.0))
    return np.linspace(start, end, 2 + int((end - start) / widest))


@dataclass(frozen=True)
class _Rate:
    """The posteriors of one rate after k of n, one per row."""

    k: Floats
    n: int

    @cached_property
    def shapes(self) -> tuple[Floats, Floats]:
        return (self.k + 0.5)[:, None], (self.n - self.k + 0.5)[:, None]

    @property
    def window(self) -> tuple[float, float]:
        """Outside of it none of the posteriors has mass that counts; k is in ascending order."""
        return _window(float(self.k[0]), float(self.k[-1]), self.n)

    def cdf(self, x: Floats) -> Floats:
        """Each count more takes x^a (1 − x)^(b−1) / (a B(a, b)) away (DLMF 8.17.18): no betainc for each."""
        a, b = self.shapes
        if len(self.k) == 1 or np.any(np.diff(self.k) != 1):
            out: Floats = special.betainc(a, b, x)
            return out
        first, (a, b) = special.betainc(a[:1], b[:1], x), (a[:-1], b[:-1])
        with np.errstate(divide="ignore"):
            less = np.exp(beta.log_norm(a, b) + a * np.log(x) + (b - 1.0) * np.log1p(-x)) / a
        return np.concatenate([first, first - np.cumsum(less, axis=0)])

    def density(self, x: Floats, upper: Floats) -> Floats:
        """At x, with upper = 1 − x."""
        a, b = self.shapes
        out: Floats = np.exp(beta.log_norm(a, b) + (a - 1.0) * np.log(x) + (b - 1.0) * np.log(upper))
        return out


@lru_cache(maxsize=4096)
def _window(fewest: float, most: float, n: int) -> tuple[float, float]:
    """Of counts from the fewest to the most. Kept, as a search for a rank asks for the same one at each θ."""
    if n <= FEW:
        return 0.0, 1.0
    low = beta.quantile(np.array([fewest + 0.5]), np.array([n - fewest + 0.5]), OUTSIDE)
    high = beta.quantile(np.array([most + 0.5]), np.array([n - most + 0.5]), OUTSIDE, upper=True)
    return float(low[0]), float(high[0])
