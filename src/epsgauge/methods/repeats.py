"""Whether rows of a table can be independent of each other, or some are entered several times."""

from __future__ import annotations

import math

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Floats, Ints

UNLIKELY = 1e-4  # independent rows are doubted in one table of ten thousand at most
NEAR = 1e-6  # scores that are closer, in units of their spread, count as equal
NEARER = (0.1, 0.25, 0.5, 2 / 3, 0.75, 5 / 6, 0.9, 0.95)  # parts of the gaps between scores that count as none
BLOCKS = (2, 3, 4, 6, 8, 12)  # rows that follow one another, whatever the gaps between them
LEAST = 0.01  # two groups of equal scores count for no less, however large they are
PERIODS, DIFFER = 12, 1 / 4  # by which a stretch of bits is compared with itself, and differs in a quarter at least
TIMES = (2, 3, 5, 7, 11, 13)  # that rows are entered one after the other
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
    if min(chances) * len(chances) >= UNLIKELY / 2:
        return _again(model, bit)
    found = groups[int(np.argmin(chances)) % len(groups)]
    at = int(np.argmax(found.repeats))
    one, other = order[found.starts[at] : found.starts[at] + 2]
    where = f"rows {one} and {other}" if model[one] == model[other] else f"models {model[one]} and {model[other]}"
    return (
        f"it needs rows that are independent, but {int((found.sizes[found.repeats] - 1).sum())} of {len(score)} "
        f"repeat another one, score and bit, far more often than chance allows: {where} have the scores "
        f"{score[one]:.6g} and {score[other]:.6g} and the bit {bit[one]}. Enter each model once"
    )


def _again(model: Ints, bit: Ints) -> str | None:
    """Why a stretch of bits looks like a copy, in the order of rows or of models, whatever the scores."""
    orders = [np.arange(len(bit)), *([np.argsort(model, kind="stable")] if np.any(np.diff(model) < 0) else [])]
    for order in orders:
        if (found := stretch(bit[order], UNLIKELY / 8)) is not None:
            one, other, length = found
            where = " and ".join(f"{order[at]} to {order[at + length - 1]}" for at in (one, other))
            what = f"the {length} bits of rows {where} are the same"
        elif (times := in_a_row(bit[order], UNLIKELY / 8)) is not None:
            what = f"equal bits come in multiples of {times}"
        else:
            continue
        return f"it needs rows that are independent, but {what}, which coins hardly do. Enter each model once"
    return None


def stretch(bit: Ints, unlikely: float) -> tuple[int, int, int] | None:
    """Where a stretch of bits begins that is there twice, and its length; None if coins may do that.

    Two stretches of as many coins are equal with 2^−length, also where they overlap. The length is twice what this
    asks for, so that it is enough where each second bit follows from the one before, as with one member in a pair.
    Bits that were sorted, or taken in turn, repeat too: a stretch counts only if it differs from itself a little later.
    """
    length = 2 * math.ceil(math.log2(len(bit) ** 2 / 2 / unlikely))
    if len(bit) <= length:
        return None
    code, size = bit.astype(np.int64), 1
    while size < length:  # equal codes are equal stretches
        step = min(size, length - size)
        code = np.unique(code[:-step] * (code.max() + 1) + code[step:], return_inverse=True)[1].ravel()
        size += step
    differ = np.full(len(code), True)
    for period in range(1, min(PERIODS, length - 1) + 1):
        sums = np.append(0, np.cumsum(bit[period:] != bit[:-period]))
        differ &= (sums[length - period :] - sums[: len(sums) - length + period])[: len(code)] >= DIFFER * length
    at = np.flatnonzero(differ)
    order = at[np.argsort(code[at], kind="stable")]
    same = np.flatnonzero(np.diff(code[order]) == 0)
    return (int(order[same[0]]), int(order[same[0] + 1]), length) if len(same) else None


def in_a_row(bit: Ints, unlikely: float) -> int | None:
    """Of which number the lengths of runs are multiples, in a stretch of so many runs as coins hardly have.

    A run of coins is a multiple of two with a third, and with a half at most if ones are more likely than zeros.
    """
    ends = np.flatnonzero(np.diff(bit))
    lengths = np.diff(ends)
    for times in TIMES:
        others = np.flatnonzero(np.append(np.insert(lengths % times, 0, 1), 1))
        widest = int(np.argmax(np.diff(others)))
        runs = lengths[others[widest] : others[widest + 1] - 1]
        if len(runs) > math.log2(len(bit) * len(TIMES) / unlikely) and np.ptp(runs):
            return times
    return None


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
