"""Which of very many thresholds may be the best; whole blocks that cannot hold it are left out at once.

From one threshold to the next FN only grows and FP only falls, so the tallies of a block are in the rectangle that its
ends span. Let `least` be its corner with both counts smallest and `most` the one with both largest.

Jeffreys and Clopper-Pearson: both upper limits of a rate rise with its count, so the lower end is largest at `least`.

The posterior: its lower end is above ε iff the mass outside R(ε, δ) is more than 1 − tail. What is outside lies below R
or above it. The rates' Beta distributions grow stochastically with the counts, and a point below R stays there if a
rate falls, so no tally of the rectangle has more mass below R than `least`, and by the same reason none has more above
R than `most`. If both together are too little, no lower end of the block is above ε. That holds for every δ and level,
also where a count is 0; nothing is taken from enumeration. A block of one has its own mass on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Bools, Floats, Ints
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.lines import Names
from epsgauge.stats.posterior import JEFFREYS
from epsgauge.stats.quick import Quick

Pairs = tuple[Ints, Ints]  # FN and FP

# Blocks at first, and parts of a block that may hold the best.
BLOCKS, PARTS = 250, 5
# At first the best is sought among so many of each of three samples, and so many of them are looked at.
SAMPLE, START = 3000, 60
# So many that are left are looked at one by one.
FEW = 500
# More than the error of a lower end, and more than that of a mass.
MARGIN, MASS_MARGIN = 1e-8, 1e-6


@dataclass(frozen=True)
class LowerEnds:
    """The lower ends of a method's intervals, each missed with `tail`, for n1 samples with b = 1 and n0 with b = 0."""

    of: Quick
    n1: int
    n0: int
    delta: float
    tail: float

    def at(self, at: Pairs) -> Floats:
        """Those of each tally: of both ends the low one where the guesses are no worse than chance, else 0 or more."""
        fn, fp = (count.astype(np.float64) for count in at)
        counts = Counts(self.n1 - fn, self.n0 - fp, fp, fn)
        return self.of.lower_bound(self._family(len(fn)), counts, self.tail, JEFFREYS)

    def may_exceed(self, eps: float, least: Pairs, most: Pairs) -> Bools:
        """Whether a tally between `least` and `most` may have a lower end above ε ≥ 0; if one has, it is True."""
        if self.of.falls:
            return self.at(least) > eps
        names = self._names(least).with_upper(self._names(most))
        n = len(least[0])
        inside = self._family(n).distribution(names, np.full(n, eps), np.arange(n)).cdf
        # a mean of `least` below R and one of `most` above it: no distribution has that, so it is not computed
        x, y = names.means
        far = x + np.exp(-eps) * y < (1.0 - self.delta) * np.exp(-eps)
        out: Bools = (inside < self.tail * (1.0 + MASS_MARGIN)) | (far[:2].any(axis=0) & far[2:].any(axis=0))
        return out

    def _names(self, at: Pairs) -> Names:
        (fn, fp), (a, b) = (count.astype(np.float64) for count in at), JEFFREYS
        return Names.of((fn + a, self.n1 - fn + b), (fp + a, self.n0 - fp + b))

    def _family(self, n: int) -> EpsAtDelta:
        return EpsAtDelta(np.full(n, self.delta))


def contenders(fn: Ints, fp: Ints, edge: Ints, ends: LowerEnds) -> Ints:
    """The places of all that may have the largest lower end and, of equal ones, the largest edge.

    FN ascends and FP descends; `edge` is what breaks ties.
    """
    if not len(fn):
        return np.arange(0)
    top = int(np.argmax(edge))
    start = np.append(_promising(fn, fp, ends), top)
    best = float(ends.at((fn[start], fp[start])).max())
    low, high = _parts(np.array([0]), np.array([len(fn) - 1]), BLOCKS)
    while True:
        eps = max(best - MARGIN * (1.0 + best), 0.0)
        keep = ends.may_exceed(eps, (fn[low], fp[high]), (fn[high], fp[low]))
        if best == 0:  # many may have it
            keep |= _largest(edge, low, high) == edge[top]
        low, high = low[keep], high[keep]
        if (high - low + 1).sum() <= FEW or (high == low).all():
            return _members(low, high)
        best = max(best, float(ends.at((fn[low], fp[low])).max()))
        low, high = _parts(low, high, PARTS)


def _promising(fn: Ints, fp: Ints, ends: LowerEnds) -> Ints:
    """A few with a large lower end by the normal approximation, of those near both ends and a sample between."""
    last, near = len(fn) - 1, np.arange(min(SAMPLE, len(fn)))
    some = np.concatenate([near, last - near, np.linspace(0, last, SAMPLE).astype(np.int64)])
    x, y = (fn[some] + 0.5) / (ends.n1 + 1), (fp[some] + 0.5) / (ends.n0 + 1)
    z = special.ndtri(ends.tail)
    rough = np.maximum(
        np.log((1 - y) / x) + z * np.sqrt((1 - x) / (x * ends.n1) + y / ((1 - y) * ends.n0)),
        np.log((1 - x) / y) + z * np.sqrt((1 - y) / (y * ends.n0) + x / ((1 - x) * ends.n1)),
    )
    return some[np.argsort(rough)[-START:]]


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
