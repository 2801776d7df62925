"""The largest probability of a set of outcomes on the edges of a region of rates: a search that proves nothing."""

from __future__ import annotations

import numpy as np

from epsgauge.bounds.cells import Rectangle, Tail, even
from epsgauge.bounds.regions import Region
from epsgauge.stats.arrays import Floats

Edge = tuple[int, bool]  # which rate runs along it, 0 or 1, and whether it is an upper edge

ZOOMS = 2  # how often a part of an edge is looked at more closely
PIECES = 12  # of that part


def seen(tail: Tail, region: Region, within: Rectangle) -> float:
    """The largest probability seen at points of region ∩ within: at most the supremum and, as a rule, nearly that.

    It looks at all edges of the region, then at ever smaller parts of the one with the largest value, and last at the
    top of the parabola through the largest three.
    """
    sides = (within.x_low, within.x_high), (within.y_low, within.y_high)

    def points(edge: Edge, rate: Floats) -> Floats:
        """Rates on an edge, one for each value of the rate that runs, and whether they are within."""
        run, upper = edge
        low, high = sides[1 - run]
        least, most = region.least(rate), region.most(rate)
        other = np.minimum(most, high) if upper else np.maximum(least, low)
        good = (low <= other) & (other <= high) & (least <= other) & (other <= most)
        return np.stack([other, rate, good] if run else [rate, other, good])

    def values(*looked_at: tuple[Edge, Floats]) -> Floats:
        x, y, good = np.concatenate([points(edge, rate) for edge, rate in looked_at], axis=1)
        out: Floats = good * tail.by_corners(np.stack([x, x, y, y]))
        return out

    edges: list[Edge] = [(run, upper) for upper in ((False, True) if tail.many else (False,)) for run in (0, 1)]
    rates = [np.sort(np.append(even(*sides[run]), np.clip(region.corner(upper), *sides[run]))) for run, upper in edges]
    every = values(*zip(edges, rates, strict=True)).reshape(len(edges), -1)
    which = int(every.max(axis=1).argmax())
    edge, rate, value = edges[which], rates[which], every[which]
    best = float(value.max())
    for _ in range(ZOOMS):
        top = int(value.argmax())
        rate = np.linspace(rate[max(top - 1, 0)], rate[min(top + 1, len(rate) - 1)], PIECES + 1)
        value = values((edge, rate))
        best = max(best, float(value.max()))
    top = int(value.argmax())
    if 0 < top < PIECES and value[top - 1] * value[top + 1] > 0:
        left, middle, right = np.log(value[top - 1 : top + 2])
        if left + right < 2 * middle:
            peak = rate[top] + (rate[top + 1] - rate[top]) * 0.5 * (left - right) / (left - 2 * middle + right)
            best = max(best, float(values((edge, np.array([peak])))[0]))
    return best
