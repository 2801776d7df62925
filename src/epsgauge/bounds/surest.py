"""A lower bound for ε from the surest guesses of fair bits that holds however many of them one then counts.

The scores alone say which guesses are surest, and randomised response is the best that (ε, 0)-DP allows for each of
them. So the number of right ones among the surest is a walk that is known, and the best of all its moments has a known
law. `docs/guarantees.md` has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.bounds.guesses import checked_pair, surest_first
from epsgauge.bounds.walk import influence, reached
from epsgauge.stats import brent, checks
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.roots import probit
from epsgauge.stats.steps import last_step

Side = Literal["high", "low", "both"]

# Numbers of guesses that compete grow by this factor, from this number on.
STEP = 1.15
FEWEST = 8
# The first number is so large that δ takes no more than this share of 1 − level at ε = 0; above, it takes less.
DELTA_SHARE = 0.5
# Outcomes are ordered by a limit of the share of right guesses, each limit missed with this share of 1 − level.
LIMIT_SHARE = 0.25
# ε is a multiple of this, rounded down.
RESOLUTION = 1e-5
# And the first, cruder ε, which only says what δ costs, of this.
CRUDE = 0.01
# Rounding errors of limits and goals stay below this.
SLACK = 1e-6


@dataclass(frozen=True)
class Surest:
    """The bound, and the guesses that decided it: of the n highest scores, guessed 1, of the n lowest, guessed 0, or
    of both, `n_right` of all `n_guesses` are right. If nothing is refuted, `low` is 0.
    """

    low: float
    level: float
    side: Side
    n_guesses: int
    n_right: int


def surest_lower_bound(
    scores: ArrayLike, bits: ArrayLike, *, delta: float, level: float = 0.95, unseen: int = 0, seed: int = 0
) -> Surest:
    """A lower bound of ε for fair bits, after the best number of surest guesses was picked on the same scores.

    A high score says b = 1. The highest scores compete, guessed 1, the lowest, guessed 0, and as many of both; no more
    than half of all bits on either side. Guesses may depend on each other in any way. Equal scores are taken in several
    orders drawn from the seed, and the fewest right guesses count. `unseen` bits of the game have no score, and count
    as wrong guesses.

    >>> rng = np.random.default_rng(0)
    >>> bits = rng.integers(0, 2, 2000)
    >>> found = surest_lower_bound(rng.normal(bits, 1), bits, delta=1e-5)
    >>> round(found.low, 2), found.side, found.n_guesses
    (2.15, 'both', 86)
    """
    s, b = checked_pair(scores, bits)
    d, alpha = float(checks.one("delta", checks.delta(delta))), 1.0 - checks.level(level)
    n = len(s) + int(checks.one("unseen", checks.counts("unseen", unseen)))
    half = n // 2
    if not half:
        return Surest(0.0, level, "both", 0, 0)
    sizes = _sizes(half, n * d, alpha)
    counts = _right(s, b, sizes, half, seed)
    z = -float(probit(np.asarray(LIMIT_SHARE * alpha), np.asarray(1.0 - LIMIT_SHARE * alpha)))
    limits = {side: _limit(right, _guesses(side, sizes), z) for side, right in counts.items()}
    side = max(limits, key=lambda each: float(limits[each].max()))
    at = int(limits[side].argmax())
    low = _inverted(sizes, float(limits[side][at]), z, n * d, alpha)
    return Surest(low, level, side, int(_guesses(side, sizes)[at]), int(counts[side][at]))


def _inverted(sizes: Ints, limit: float, z: float, failing: float, alpha: float) -> float:
    """The largest ε at which a limit as high as this, on any side and at any size, is improbable.

    Its probability grows with ε, and what δ can add to it falls. So what is refuted with the price of a smaller ε is
    refuted, and that price can be taken at the largest ε that has been refuted.
    """
    one, two = _goals(sizes, limit, z), _goals(2 * sizes, limit, z)

    def p(eps: float) -> float:
        return 2.0 * reached(sizes, one, eps) + reached(2 * sizes, two, eps)

    low = 0.0
    for resolution in (CRUDE, RESOLUTION):
        low = _last_below(p, alpha - _price(int(sizes[0]), failing, low), low, resolution)
    return low


def _last_below(p: Callable[[float], float], most: float, low: float, resolution: float) -> float:
    """The largest multiple of `resolution` at which p, which grows, is at most so large; `low` where that is larger."""
    if p(low) >= most:
        return low
    high = low + 0.5
    while p(high) <= most:
        high *= 2.0
    root = brent.root(lambda x: math.log(max(p(x), 1e-300) / most), low, high, xtol=1e-3 * resolution)
    near, last = math.floor(root / resolution), math.ceil(high / resolution)
    return max(low, resolution * last_step(lambda k: p(k * resolution) <= most, near=near, most=last))


def _price(size: int, failing: float, eps: float) -> float:
    """What δ can add: the walks of one side have the first goal at `size`, that of both at twice as many."""
    return failing * (influence(size, eps) + influence(2 * size, eps)) if failing else 0.0


def _sizes(half: int, failing: float, alpha: float) -> Ints:
    """How many guesses of one side compete: a series that depends on no score."""
    first = min(FEWEST, half)
    while first < half and _price(first, failing, 0.0) > DELTA_SHARE * alpha:
        first = min(2 * first, half)
    steps = max(0, math.ceil(math.log(half / first) / math.log(STEP)))
    return np.unique(np.minimum(np.round(first * STEP ** np.arange(steps + 1.0)), half)).astype(np.int64)


def _right(scores: Floats, bits: Floats, sizes: Ints, half: int, seed: int) -> dict[Side, Ints]:
    """How many guesses are right, of each side and size. One order serves both sides, so no bit is guessed twice."""
    each = len(scores) // 2

    def counted(right: Floats) -> Ints:
        whole = np.concatenate([right[:each], np.zeros(half - each)])
        return np.cumsum(whole).astype(np.int64)[sizes - 1]

    orders = surest_first(scores, bits == 1, seed)
    high, low = (
        np.array([counted(right) for right in rows])
        for rows in ([bits[order] for order in orders], [1.0 - bits[order[::-1]] for order in orders])
    )
    return {"high": high.min(axis=0), "low": low.min(axis=0), "both": (high + low).min(axis=0)}


def _guesses(side: Side, sizes: Ints) -> Ints:
    return 2 * sizes if side == "both" else sizes


def _limit(right: Ints, n: Ints, z: float) -> Floats:
    """Wilson's lower limit of the share of right guesses: the p with right = n p + z √(n p (1 − p)). It grows with
    `right`.
    """
    out: Floats = (right + z * z / 2 - z * np.sqrt(right * (n - right) / n + z * z / 4)) / (n + z * z)
    return out


def _goals(n: Ints, limit: float, z: float) -> Ints:
    """The fewest right guesses of n whose limit is at least this, or one less; n + 1 where even n are too few."""
    enough = np.ceil(n * limit + z * np.sqrt(n * limit * (1.0 - limit)) - SLACK)
    goals = np.where(limit * (n + z * z) > n + SLACK, n + 1.0, np.minimum(enough, n))
    return goals.astype(np.int64)
