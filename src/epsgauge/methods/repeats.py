"""Whether rows of a table can be independent of each other, or some are entered several times."""

from __future__ import annotations

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Floats, Ints

UNLIKELY = 5e-5  # of either test here: independent rows are doubted in one table of ten thousand at most
NEAR = 1e-6  # scores that are closer, in units of their spread, count as equal
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
    groups = Groups(score[order], bit[order])
    if min(groups.turned(), groups.alike(len(np.unique(model)) == len(model))) >= UNLIKELY:
        return None
    at = int(np.argmax(groups.repeats))
    one, other = order[groups.starts[at] : groups.starts[at] + 2]
    where = f"rows {one} and {other}" if model[one] == model[other] else f"models {model[one]} and {model[other]}"
    return (
        f"it needs rows that are independent, but {int((groups.sizes[groups.repeats] - 1).sum())} of {len(score)} "
        f"repeat another one, score and bit, far more often than chance allows: {where} have the score "
        f"{score[one]:.6g} and the bit {bit[one]}. Enter each model once"
    )


class Groups:
    """Rows with equal scores, which ascend."""

    def __init__(self, score: Floats, bit: Ints) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            spread = np.nan_to_num(np.subtract(*np.quantile(score, (0.95, 0.05))))
            new = np.diff(score, prepend=-np.inf) > NEAR * spread
        self.starts: Ints = np.flatnonzero(new)
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
