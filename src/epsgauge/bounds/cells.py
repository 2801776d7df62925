"""Whether a set of outcomes is improbable at all rates of a part of the square: proven by covering it with cells.

The set is a down-set (few errors) and the mirror image of a down-set (many errors). The probability of the first falls
and that of the second grows with either rate, so over a cell of rates their sum is at most that of the first at the
cell's lower left corner plus that of the second at its upper right corner. Where that is too much, a second bound is
tried: the tangent plane at the centre, and a bound of the curvature. Where both are too much, the cell is quartered.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsgauge.bounds.outcomes import DownSet
from epsgauge.bounds.regions import Cells, Region
from epsgauge.stats.arrays import Floats

# Relative error of a computed probability; that of sums of binomial probabilities of 50,000 trials is below 1e-9.
KERNEL = 1e-8
# Absolute: far above what the windows leave out of both sets.
WINDOWS = 1e-15
# Cells are cut until they are this small, in standard deviations of the counts, or until there are too many.
FINEST = 1e-8
MAX_CELLS = 20_000
WITNESSES = 24  # cells in which a point is looked at
FIRST = 12  # pieces of either side of the rectangle to begin with
ROUNDING = 1e-14  # of the edges of cells: none is dropped that is empty by less


@dataclass(frozen=True)
class Rectangle:
    """Rates with x_low ≤ FNR ≤ x_high and y_low ≤ FPR ≤ y_high."""

    x_low: float
    x_high: float
    y_low: float
    y_high: float


@dataclass(frozen=True)
class Tail:
    """Outcomes at least as telling as the observed one: with few errors, and with many (as a mirror image)."""

    few: DownSet
    many: DownSet | None

    def by_corners(self, cells: Cells) -> Floats:
        """An upper bound of the probability over each cell, from monotony."""
        out = self.few.probability(cells[0], cells[2])
        if self.many is not None:
            out += self.many.probability(1.0 - cells[1], 1.0 - cells[3])
        return out * (1.0 + KERNEL) + WINDOWS

    def by_tangent(self, cells: Cells, region: Region, corners: Floats) -> Floats:
        """An upper bound over what the region has of each cell, from the tangent plane at its centre.

        If an event has probability at most p, its second derivatives are at most √(2p) n/(x(1 − x)) in a rate x, and
        √p times the roots of both such terms across. `corners` bounds p on the cell.
        """
        x0, x1, y0, y1 = cells
        x, y = 0.5 * (x0 + x1), 0.5 * (y0 + y1)
        value, x_slope, y_slope = self.few.slopes(x, y)
        events = 1.0
        if self.many is not None:
            mirrored = self.many.slopes(1.0 - x, 1.0 - y)
            value, x_slope, y_slope = value + mirrored[0], x_slope - mirrored[1], y_slope - mirrored[2]
            events = 2.0  # √p + √q ≤ √(2(p + q))
        with np.errstate(divide="ignore", invalid="ignore"):
            across = 0.5 * (x1 - x0) * np.sqrt(self.few.n1 / np.minimum(x0 * (1 - x0), x1 * (1 - x1)))
            up = 0.5 * (y1 - y0) * np.sqrt(self.few.n0 / np.minimum(y0 * (1 - y0), y1 * (1 - y1)))
            curved = 0.5 * np.sqrt(events * corners) * (np.sqrt(2.0) * (across**2 + up**2) + 2.0 * across * up)
            plane = region.highest_plane(cells, x_slope, y_slope)
            rounding = KERNEL * (value + np.sqrt(corners) * (across + up))  # a slope is at most √(p n/(x(1 − x)))
        out: Floats = value + plane + curved + rounding + WINDOWS
        return out


def improbable(tail: Tail, region: Region, within: Rectangle, most: float) -> bool:
    """Whether the tail's probability is proven to be at most `most` at every point of region ∩ within.

    False is said where it is not so, and where it could not be shown with cells that are small enough.
    """
    cells = _grid(within)
    while True:
        cells = _clipped(cells, region)
        bound = tail.by_corners(cells)
        cells, bound = cells[:, bound > most], bound[bound > most]
        inner = np.flatnonzero((cells[0] > 0) & (cells[1] < 1) & (cells[2] > 0) & (cells[3] < 1))
        bound[inner] = np.fmin(bound[inner], tail.by_tangent(cells[:, inner], region, bound[inner]))
        cells, bound = cells[:, bound > most], bound[bound > most]
        if not bound.size:
            return True
        if bound.size > MAX_CELLS or _seen_above(tail, region, cells, bound, most):
            return False
        if _widths(cells, tail.few.n1, tail.few.n0).max(axis=0).min() < FINEST:
            return False
        cells = _quartered(cells)


def _grid(within: Rectangle) -> Cells:
    x, y = even(within.x_low, within.x_high), even(within.y_low, within.y_high)
    x_low, y_low = (q.ravel() for q in np.meshgrid(x[:-1], y[:-1]))
    x_high, y_high = (q.ravel() for q in np.meshgrid(x[1:], y[1:]))
    return np.stack([x_low, x_high, y_low, y_high])


def even(low: float, high: float) -> Floats:
    """Edges that are even on the scale of angles, on which a share's deviation is the same everywhere."""
    edges: Floats = np.sin(np.linspace(np.arcsin(np.sqrt(low)), np.arcsin(np.sqrt(high)), FIRST + 1)) ** 2
    edges[0], edges[-1] = low, high
    return edges


def _clipped(cells: Cells, region: Region) -> Cells:
    """The smallest cells around what the region has of each; those without any are dropped."""
    x_low, x_high, y_low, y_high = cells
    y_low, y_high = np.maximum(y_low, region.least(x_high)), np.minimum(y_high, region.most(x_low))
    x_low, x_high = np.maximum(x_low, region.least(y_high)), np.minimum(x_high, region.most(y_low))
    kept = (x_low <= x_high + ROUNDING) & (y_low <= y_high + ROUNDING)
    x_low, y_low = np.minimum(x_low, x_high), np.minimum(y_low, y_high)
    return np.stack([x_low, x_high, y_low, y_high])[:, kept]


def _seen_above(tail: Tail, region: Region, cells: Cells, bound: Floats, most: float) -> bool:
    """Whether a point of the region in one of the most promising cells is above, so that cutting on is in vain."""
    x_low, x_high, y_low, y_high = cells[:, np.argsort(bound)[-WITNESSES:]]
    x = 0.5 * (x_low + x_high)
    y = np.maximum(y_low, region.least(x))
    inside = (y <= y_high) & (y <= region.most(x))
    x, y = x[inside], y[inside]
    return bool((tail.by_corners(np.stack([x, x, y, y])) > most).any())


def _widths(cells: Cells, n1: int, n0: int) -> Floats:
    angle = np.arcsin(np.sqrt(np.clip(cells, 0.0, 1.0)))
    return np.stack([2 * np.sqrt(n1) * (angle[1] - angle[0]), 2 * np.sqrt(n0) * (angle[3] - angle[2])])


def _quartered(cells: Cells) -> Cells:
    angle = np.arcsin(np.sqrt(np.clip(cells, 0.0, 1.0)))
    x, y = (np.clip(np.sin(0.5 * (angle[i] + angle[i + 1])) ** 2, cells[i], cells[i + 1]) for i in (0, 2))
    x0, x1, y0, y1 = cells
    return np.concatenate([(x0, x, y0, y), (x, x1, y0, y), (x0, x, y, y1), (x, x1, y, y1)], axis=1)
