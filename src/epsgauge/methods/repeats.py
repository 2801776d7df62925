"""Whether rows of a table can be independent of each other, or some are entered several times."""

from __future__ import annotations

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Floats, Ints

UNLIKELY = 1e-4  # independent rows are doubted in one table of ten thousand at most
NEAR = 1e-6  # scores that are closer, in units of their spread, count as equal
NEARER = (0.1, 0.25, 0.5, 2 / 3, 0.75, 5 / 6, 0.9, 0.95)  # parts of the gaps between scores that count as none
BLOCKS = (2, 3, 4, 6, 8, 12)  # rows that follow one another, whatever the gaps between them
LEAST = 0.01  # two groups of equal scores count for no less, however large they are
RATES = np.linspace(0.05, 8.0, 160)  # at any of them Chernoff's bound holds


def copied(model: Ints, score: Floats, bit: Ints) -> str | None:
    """Why rows hardly come from models of their own; None where they may.

    Equal scores alone say nothing: guesses, ranks, counts and rounded numbers have many. What copies share beside the
    score is the bit.
    """
    if len(score) < 2:
        return None
    order = np.argsort(score, kind="stable")
    groups = [Groups(score[order], bit[order], starts) for starts in _groupings(score[order])]
    chances = [*(each.turned() for each in groups), groups[0].alike(len(np.unique(model)) == len(model))]
    if min(chances) * len(chances) >= UNLIKELY:
        return None
    found = groups[int(np.argmin(chances)) % len(groups)]
    at = int(np.argmax(found.repeats))
    one, other = order[found.starts[at] : found.starts[at] + 2]
    where = f"rows {one} and {other}" if model[one] == model[other] else f"models {model[one]} and {model[other]}"
    return (
        f"it needs rows that are independent, but {int((found.sizes[found.repeats] - 1).sum())} of {len(score)} "
        f"repeat another one, score and bit, far more often than chance allows: {where} have the scores "
        f"{score[one]:.6g} and {score[other]:.6g} and the bit {bit[one]}. Enter each model once"
    )


def _groupings(score: Floats) -> list[Ints]:
    """Where groups of near scores start, of scores that ascend: first of equal ones, then of ever wider ones.

    By scores alone, so that each grouping is as good a test as any. Equal scores are never in two groups.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        gaps = np.diff(score, prepend=-np.inf)
        spread = np.nan_to_num(np.subtract(*np.quantile(score, (0.95, 0.05))))
        equal = np.flatnonzero(gaps > NEAR * spread)
        widths = np.quantile(gaps[1:], NEARER, method="lower")
    by_gap = [np.flatnonzero(gaps > width) for width in widths if width > NEAR * spread]
    blocks = (np.arange(0, len(score), size) for size in BLOCKS)
    by_number = [np.unique(equal[np.searchsorted(equal, block, side="right") - 1]) for block in blocks]
    return [equal, *by_gap, *by_number]


class Groups:
    """Rows with near scores, which ascend; each group from one of `starts` to the next."""

    def __init__(self, score: Floats, bit: Ints, starts: Ints) -> None:
        self.starts = starts
        self.sizes: Ints = np.diff(self.starts, append=len(score))
        self.ones: Ints = np.add.reduceat(bit, self.starts)
        self.score = score[self.starts]
        self.repeats = (self.sizes > 1) & ((self.ones == 0) | (self.ones == self.sizes))

    def turned(self) -> float:
        """An upper bound of the probability that so many groups of ones stand just below groups of zeros.

        Let a higher score never make b = 1 less likely. Of two groups with as many ones as the lower one has rows,
        these are all in the lower one with at most one over the number of ways to place them.
        """
        several = np.append(self.sizes[:-1] > 1, False)
        at = np.arange(len(several))
        since = at - np.maximum.accumulate(np.where(several, -1, at))
        low = at[several & (since % 2 == 1)]  # each with the next group, and none in two pairs
        n, k = self.sizes[low], self.sizes[low] + self.sizes[low + 1]
        can = self.ones[low] + self.ones[low + 1] == n
        turned = int(np.sum(can & (self.ones[low + 1] == 0)))
        ways = special.gammaln(k + 1.0) - special.gammaln(n + 1.0) - special.gammaln(k - n + 1.0)
        return _at_least(turned, np.maximum(np.exp(-ways[can]), LEAST))

    def alike(self, one_row_each: bool) -> float:
        """The same of groups whose rows and ones are all multiples of one number: each is so with a half at most.

        Ranks within parts of a table may be so too, and are evenly spaced.
        """
        with np.errstate(over="ignore"):
            gaps = np.diff(self.score)
        counts = np.concatenate([self.sizes, self.ones])
        if not one_row_each or len(gaps) < 2 or np.gcd.reduce(counts) < 2 or np.ptp(gaps) <= 1e-3 * gaps.mean():
            return 1.0
        return float(2.0 ** -len(gaps))


def _at_least(n: int, chances: Floats) -> float:
    """Chernoff's bound for so many of independent events."""
    if not n:
        return 1.0
    rates = RATES[:, None]
    values, times = np.unique(chances, return_counts=True)
    logs = np.log1p(values * np.expm1(rates)) @ times - n * RATES
    return float(np.exp(min(0.0, logs.min())))
