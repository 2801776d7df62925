"""The rates that (ε, δ)-DP or μ-Gaussian DP allows: their edges, and how high a plane gets over a part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Floats

Cells = Floats  # (4, n): x_low, x_high, y_low, y_high
Points = list[tuple[Floats, Floats]]

# Relative error that f_μ and its slope are allowed; that of f_μ above TINY is below 3e-13.
CURVE = 1e-10
TINY = 1e-300
# Absolute error that rates are allowed when they are mirrored or subtracted; it is below 3e-16.
RATE = 1e-15


class Region(ABC):
    """A convex set of rates (x, y), symmetric in both, that grows with a parameter: all above a curve that falls.

    Folded, also all below the mirror image of the curve; else attacks that are reliably wrong are allowed.
    """

    folded: bool

    @abstractmethod
    def least(self, rate: Floats) -> Floats:
        """The smallest value of either rate at this value of the other one."""

    def most(self, rate: Floats) -> Floats:
        return 1.0 - self.least(1.0 - rate) if self.folded else np.ones_like(rate)

    @abstractmethod
    def corner(self, upper: bool) -> float:
        """Where the lower or the upper edge has both rates equal."""

    @abstractmethod
    def highest_plane(self, cells: Cells, x_slope: Floats, y_slope: Floats) -> Floats:
        """At least the largest x_slope (x − centre) + y_slope (y − centre) over what the region has of each cell."""

    def _on_edges(self, cells: Cells) -> Points:
        """Both ends of what the region has of each edge of a cell."""
        x0, x1, y0, y1 = cells
        return [
            (x0, np.maximum(y0, self.least(x0))),
            (x1, np.maximum(y0, self.least(x1))),
            (np.maximum(x0, self.least(y0)), y0),
            (np.maximum(x0, self.least(y1)), y1),
            (x0, np.minimum(y1, self.most(x0))),
            (x1, np.minimum(y1, self.most(x1))),
            (np.minimum(x1, self.most(y0)), y0),
            (np.minimum(x1, self.most(y1)), y1),
        ]


@dataclass(frozen=True)
class EpsRegion(Region):
    """R(ε, δ), or all above its lower lines."""

    eps: float
    delta: float
    folded: bool = True

    def least(self, rate: Floats) -> Floats:
        room = 1.0 - self.delta
        steep = room - np.exp(min(self.eps, 700.0)) * rate
        out: Floats = np.maximum(0.0, np.maximum(steep, np.exp(-self.eps) * (room - rate)))
        return out

    def corner(self, upper: bool) -> float:
        v = (1.0 - self.delta) / (1.0 + float(np.exp(min(self.eps, 700.0))))
        return 1.0 - v if upper else v

    def highest_plane(self, cells: Cells, x_slope: Floats, y_slope: Floats) -> Floats:
        """Over a convex polygon the value is largest at one of its corners; these are among the points here."""
        x0, x1, y0, y1 = cells
        # the corners of R itself, moved into the cell where they are not in it
        own = [(np.clip(w, x0, x1), np.clip(w, y0, y1)) for w in (self.corner(False), self.corner(True))]
        return _highest(cells, x_slope, y_slope, self._on_edges(cells) + own)


@dataclass(frozen=True)
class MuRegion(Region):
    """The rates of μ-Gaussian DP: y ≥ f(x) = Φ(−Φ⁻¹(x) − μ), and folded 1 − y ≥ f(1 − x); a little too large."""

    mu: float
    folded: bool = True

    def least(self, rate: Floats) -> Floats:
        """Never above f."""
        value = special.ndtr(-special.ndtri(rate) - self.mu)
        return np.where(value > TINY, value * (1.0 - CURVE), 0.0)

    def most(self, rate: Floats) -> Floats:
        return np.minimum(1.0, super().most(rate) + RATE)

    def corner(self, upper: bool) -> float:
        return float(special.ndtr(self.mu / 2 if upper else -self.mu / 2))

    def highest_plane(self, cells: Cells, x_slope: Floats, y_slope: Floats) -> Floats:
        """The value is largest at an edge of the cell or where a curve inside of it is parallel to the plane."""
        parts = [_highest(cells, x_slope, y_slope, self._on_edges(cells)), self._on_curve(cells, x_slope, y_slope)]
        if self.folded:
            parts.append(self._on_curve(1.0 - cells[[1, 0, 3, 2]], -x_slope, -y_slope))
        out: Floats = np.maximum.reduce(parts) + RATE * (np.abs(x_slope) + np.abs(y_slope))
        return out

    def _on_curve(self, cells: Cells, x_slope: Floats, y_slope: Floats) -> Floats:
        """At least the largest value on what a cell has of the curve, if it can be largest there; else −∞.

        The curve lies above each of its tangents. So the value at x is at most that on the tangent at any q; q is
        where the curve is parallel to the plane, f'(q) = −exp(−μ Φ⁻¹(q) − μ²/2), or the end nearest to there.
        """
        x0, x1, y0, y1 = cells
        first, last = np.maximum(x0, self.least(y1)), np.minimum(x1, self.least(y0) * (1.0 + 3.0 * CURVE))
        there = (x_slope < 0) & (y_slope < 0) & (first <= last + RATE)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            parallel = -np.log(x_slope / y_slope) / max(self.mu, TINY) - 0.5 * self.mu
            q = np.clip(np.clip(special.ndtr(parallel), first, last), x0, x1)
            drop = y_slope * np.exp(-self.mu * special.ndtri(q) - 0.5 * self.mu**2)  # −y_slope f'(q)
            ahead, behind = last - q + RATE, first - q - RATE
            more = np.maximum((x_slope - drop) * ahead, (x_slope - drop) * behind) - CURVE * drop * (ahead - behind)
            at_q = _highest(cells, x_slope, y_slope, [(q, self.least(q))])
        return np.where(there, at_q + more, -np.inf)


def _highest(cells: Cells, x_slope: Floats, y_slope: Floats, points: Points) -> Floats:
    """The plane's largest value at some points of each cell; it is 0 at the cell's centre."""
    x0, x1, y0, y1 = cells
    x_centre, y_centre = 0.5 * (x0 + x1), 0.5 * (y0 + y1)
    out: Floats = np.maximum.reduce([x_slope * (x - x_centre) + y_slope * (y - y_centre) for x, y in points])
    return out
