"""Which of very many thresholds may be the best; whole blocks that cannot hold it are left out at once.

From one threshold to the next FN only grows and FP only falls, so the tallies of a block are in the rectangle that its
ends span, and no lower end of an interval is larger inside a rectangle of counts than at one of its corners. Those of
Jeffreys and Clopper-Pearson fall with either count. For the posterior, let x be the FNR and y the FPR. The mass of y
that the convex region R leaves at x is log-concave in x if the density of y is, so it rises and falls once. Beta
distributions have monotone likelihood ratios, so the mass of R rises and falls once as FN grows, and the lower end
falls and rises once. If a count is 0 that density is not log-concave: there, it was checked by enumeration.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from epsgauge.stats.arrays import Floats, Ints

# (FN, FP) -> the lower end
Value = Callable[[Ints, Ints], Floats]

# Blocks at first, and parts of a block that may hold the best.
BLOCKS, PARTS = 250, 5
# So many that are left are looked at one by one.
FEW = 500
# More than the error of a lower end.
MARGIN = 1e-8


def contenders(fn: Ints, fp: Ints, edge: Ints, value: Value) -> Ints:
    """The places of all that may have the largest value and, of equal values, the largest edge.

    FN ascends and FP descends; `edge` is what breaks ties.
    """
    if not len(fn):
        return np.arange(0)
    top = int(np.argmax(edge))
    best = float(value(fn[[top]], fp[[top]])[0])
    low, high = _parts(np.array([0]), np.array([len(fn) - 1]), BLOCKS)
    while True:
        ends = np.maximum(value(fn[low], fp[low]), value(fn[high], fp[high]))
        best = max(best, float(ends.max()))
        corners = np.maximum(value(fn[low], fp[high]), value(fn[high], fp[low]))
        keep = np.maximum(ends, corners) >= best - MARGIN * (1.0 + best)
        if best == 0:  # many may have it
            keep = (corners > 0) | (_largest(edge, low, high) == edge[top])
        low, high = low[keep], high[keep]
        if (high - low + 1).sum() <= FEW or (high == low).all():
            return _members(low, high)
        low, high = _parts(low, high, PARTS)


def _parts(low: Ints, high: Ints, n: int) -> tuple[Ints, Ints]:
    """Every block in n parts, or in as many as it has members."""
    cuts = low[:, None] + (high - low + 1)[:, None] * np.arange(n + 1) // n
    first, last = cuts[:, :-1].ravel(), cuts[:, 1:].ravel() - 1
    some = first <= last
    return first[some], last[some]


def _largest(edge: Ints, low: Ints, high: Ints) -> Ints:
    """The largest edge of each block."""
    padded = np.append(edge, edge[-1])  # the last block ends where an array has no place
    return np.maximum.reduceat(padded, np.stack([low, high + 1], axis=1).ravel())[::2]


def _members(low: Ints, high: Ints) -> Ints:
    sizes = high - low + 1
    before = np.cumsum(sizes) - sizes
    return np.repeat(low - before, sizes) + np.arange(sizes.sum())
