"""Intervals for FNR and FPR one at a time, and the interval for ε that their rectangle implies (Appendix A)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.errors import InvalidInput
from epsgauge.stats import beta, checks
from epsgauge.stats.arrays import Floats
from epsgauge.stats.families import Family
from epsgauge.stats.interval import Interval, Kind

Sided = Literal["two", "lower", "upper"]
# limits(k, n, tail) -> lower and upper limit of the rate, each missed with probability `tail` or about so
Limits = Callable[[Floats, Floats, float], tuple[Floats, Floats]]


def clopper_pearson(k: ArrayLike, n: ArrayLike, *, level: float, sided: Sided = "two") -> Interval:
    """Confidence interval for a rate after k of n; never covers less than `level`.

    A one-sided interval has its whole error on one side: "upper" bounds the rate from above, its low end is 0.
    """
    return _rate_interval(clopper_pearson_limits, "guaranteed", k, n, level, sided)


def jeffreys(k: ArrayLike, n: ArrayLike, *, level: float, sided: Sided = "two") -> Interval:
    """Interval from the posterior Beta(½ + k, ½ + n − k); its coverage is near `level`, and can be below it."""
    return _rate_interval(jeffreys_limits, "estimate", k, n, level, sided)


def clopper_pearson_limits(k: Floats, n: Floats, tail: float) -> tuple[Floats, Floats]:
    """B(tail; k, n−k+1) and B(1−tail; k+1, n−k), Appendix A.1; k and n need not be whole."""
    low = beta.quantile(np.where(k > 0, k, 1.0), n - k + 1, tail)
    high = beta.quantile(k + 1, np.where(k < n, n - k, 1.0), tail, upper=True)
    return np.where(k > 0, low, 0.0), np.where(k < n, high, 1.0)


def jeffreys_limits(k: Floats, n: Floats, tail: float) -> tuple[Floats, Floats]:
    """Quantiles of Beta(½+k, ½+n−k), with 0 at k = 0 and 1 at k = n (footnote of §3.1)."""
    low = beta.quantile(k + 0.5, n - k + 0.5, tail)
    high = beta.quantile(k + 0.5, n - k + 0.5, tail, upper=True)
    return np.where(k > 0, low, 0.0), np.where(k < n, high, 1.0)


def rectangle_interval(
    limits: Limits, family: Family, fnr: tuple[Floats, Floats], fpr: tuple[Floats, Floats], alpha: float
) -> tuple[Floats, Floats]:
    """Smallest and largest θ over the rectangle of both rates' limits; fnr and fpr are (k, n).

    Each of the four limits may fail with probability α/4 (union bound), so the rectangle misses the true rates
    with at most α, whatever the direction of the attack.
    """
    (x_low, x_high), (y_low, y_high) = limits(*fnr, alpha / 4), limits(*fpr, alpha / 4)
    # {θ ≤ t} is convex and symmetric about the anti-diagonal x + y = 1. The largest value is at a corner. The
    # smallest is 0 if the rectangle meets the anti-diagonal, else at the corner nearest to it.
    corners = [_at(family, x, y) for x in (x_low, x_high) for y in (y_low, y_high)]
    high = np.maximum.reduce(corners)
    right = x_high + y_high < 1  # an attack that is better than chance on the whole rectangle
    wrong = x_low + y_low > 1
    low = np.where(right, corners[3], np.where(wrong, corners[0], 0.0))
    return low, high


def rectangle_lower_bound(
    limits: Limits, family: Family, fnr: tuple[Floats, Floats], fpr: tuple[Floats, Floats], alpha: float
) -> Floats:
    """One-sided: the value at both upper limits, each missed with α/2 (§3.1, the one-sided intervals).

    Only for an attack whose direction was fixed beforehand: it is 0 for one that is reliably wrong.
    """
    x, y = limits(*fnr, alpha / 2)[1], limits(*fpr, alpha / 2)[1]
    return np.where(x + y < 1, _at(family, x, y), 0.0)


def _at(family: Family, x: Floats, y: Floats) -> Floats:
    return family.of_rates(x, 1.0 - x, y, 1.0 - y)


def _rate_interval(limits: Limits, kind: Kind, k: ArrayLike, n: ArrayLike, level: float, sided: Sided) -> Interval:
    hits, trials = checks.counts("k", k).astype(np.float64), checks.counts("n", n).astype(np.float64)
    checks.broadcast(k=hits, n=trials)
    checks.within("k", np.broadcast_to(hits, np.broadcast(hits, trials).shape), "at most n", hits <= trials)
    if sided not in ("two", "lower", "upper"):
        raise InvalidInput(f"sided must be 'two', 'lower' or 'upper', but got {sided!r}.")
    alpha = 1.0 - checks.level(level)
    low, high = limits(hits, trials, alpha / 2 if sided == "two" else alpha)
    low, high = (np.zeros_like(low) if sided == "upper" else low), (np.ones_like(high) if sided == "lower" else high)
    return Interval(low[()], high[()], level, kind)
