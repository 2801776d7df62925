"""How many samples a method needs, and the largest ε that a number of samples can show."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.stats import checks
from epsgauge.stats.arrays import Bools, Floats
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.posterior import JEFFREYS, Prior
from epsgauge.stats.quick import quick

# Beyond this nobody trains models.
MAX_SAMPLES = 10**8


def sample_size(
    *,
    delta: float,
    level: float = 0.90,
    half_width: float | None = None,
    lower_bound: float | None = None,
    accuracy: float | None = None,
    fnr: float | None = None,
    fpr: float | None = None,
    method: str = "bayes",
    prior: Prior = JEFFREYS,
) -> int | None:
    """N, in total and half of it with b = 1, from which the method reaches what is wanted; None if none up to 1e8 does.

    Wanted is either an interval of ± `half_width` at `level`, or a one-sided lower bound of `lower_bound` at
    `level`. The attack is given by its balanced `accuracy` (FNR = FPR) or by both rates. The counts are the
    expected ones, not rounded, and N is rounded to the nearest whole number: it is for planning.

    >>> wanted = dict(accuracy=0.6, half_width=0.15, delta=1e-5)
    >>> [sample_size(**wanted, method=m) for m in ("bayes", "jeffreys", "clopper-pearson")]
    [544, 1423, 1478]
    """
    x, y = assumed_rates(accuracy, fnr, fpr)
    chosen, prior = quick(method), checks.prior(prior)
    alpha, family = 1.0 - checks.level(level), _family(delta)
    name, value = ("lower_bound", lower_bound) if half_width is None else ("half_width", half_width)
    if value is None or (half_width is not None and lower_bound is not None):
        raise InvalidInput("exactly one of half_width and lower_bound must be given.")
    wanted = checks.positive(name, value)

    def reached(n: Floats) -> Bools:
        counts, each = _expected(n, x, y), family.pick(np.zeros(len(n), np.int64))
        if half_width is None:
            return np.greater_equal(chosen.lower_bound(each, counts, alpha, prior), wanted)
        low, high = chosen.ends(each, counts, alpha, prior)
        return np.less_equal(high - low, 2 * wanted)

    crossing = _crossing(reached)
    return None if crossing is None else max(1, round(crossing))


def largest_eps(
    n_samples: int, *, delta: float, level: float = 0.95, method: str = "bayes", prior: Prior = JEFFREYS
) -> float:
    """The lower bound that a perfect attack on `n_samples`, half of them with b = 1, would get.

    A claim above it cannot be refuted with so many samples in equal halves, whatever the attack.

    >>> [round(largest_eps(2000, delta=1e-5, level=0.90, method=m), 2) for m in ("jeffreys", "clopper-pearson")]
    [6.25, 5.81]
    """
    n = checks.one("n_samples", checks.counts("n_samples", n_samples))
    counts = _expected(np.array([n]), 0.0, 0.0)
    return float(quick(method).lower_bound(_family(delta), counts, 1.0 - checks.level(level), checks.prior(prior))[0])


def _family(delta: float) -> EpsAtDelta:
    return EpsAtDelta(np.array([checks.one("delta", checks.delta(delta))]))


def _expected(n: Floats, x: float, y: float) -> Counts:
    half = n / 2
    return Counts(tp=half * (1 - x), tn=half * (1 - y), fp=half * y, fn=half * x)


def assumed_rates(accuracy: float | None, fnr: float | None, fpr: float | None) -> tuple[float, float]:
    """FNR and FPR, of either way to say them."""
    if accuracy is not None and fnr is None and fpr is None:
        right = checks.one("accuracy", checks.rate("accuracy", accuracy))
        checks.within(
            "accuracy", accuracy, "at least 0.5, as below it the opposite guess is better", np.asarray(right >= 0.5)
        )
        return 1.0 - right, 1.0 - right
    if accuracy is None and fnr is not None and fpr is not None:
        x, y = checks.one("fnr", checks.rate("fnr", fnr)), checks.one("fpr", checks.rate("fpr", fpr))
        checks.within("fnr + fpr", x + y, "at most 1, as above it the opposite guess is better", np.asarray(x + y <= 1))
        return x, y
    raise InvalidInput("the attack must be given by accuracy alone, or by fnr and fpr together.")


def _crossing(reached: Callable[[Floats], Bools]) -> float | None:
    """The n from which on `reached` holds; None if it does not at MAX_SAMPLES.

    With few samples the prior alone may reach what is wanted, so the last n that does not reach it is looked for.
    """
    grid = np.geomspace(1.0, MAX_SAMPLES, 200)
    while True:
        missed = np.flatnonzero(~reached(grid))
        if not missed.size:
            return float(grid[0])
        last = int(missed[-1])
        if last == len(grid) - 1:
            return None
        low, high = float(grid[last]), float(grid[last + 1])
        if high - low < 1e-3:
            return high
        grid = np.linspace(low, high, 50)
