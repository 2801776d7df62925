"""How many samples a method needs, and the largest ε that a number of samples can show."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.stats import checks
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.methods import METHODS, Counts, Method
from epsgauge.stats.posterior import JEFFREYS, Prior

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
    """N, in total and half of it with b = 1, at which the method reaches what is wanted; None if no N does.

    Wanted is either an interval of ± `half_width` at `level`, or a one-sided lower bound of `lower_bound` at
    `level`. The attack is given by its balanced `accuracy` (FNR = FPR) or by both rates. The counts are the
    expected ones, not rounded, and N is rounded to the nearest whole number: it is for planning.

    >>> [sample_size(accuracy=0.6, half_width=0.15, delta=1e-5, method=m) for m in METHODS]
    [544, 1423, 1478]
    """
    x, y = _assumed_rates(accuracy, fnr, fpr)
    chosen = _method(method)
    alpha, family = 1.0 - checks.level(level), _family(delta)
    if (half_width is None) == (lower_bound is None):
        raise InvalidInput("exactly one of half_width and lower_bound must be given.")
    if half_width is not None:
        wanted = float(checks.numbers("half_width", half_width))
        checks.within("half_width", half_width, "above 0", np.asarray(wanted > 0))
    else:
        wanted = float(checks.eps(lower_bound, "lower_bound"))  # type: ignore[arg-type]

    def reached(n: float) -> bool:
        counts = _expected(n, x, y)
        if half_width is not None:
            low, high = chosen.ends(family, counts, alpha, prior)
            return bool((high - low)[0] <= 2 * wanted)
        return bool(chosen.lower_bound(family, counts, alpha, prior)[0] >= wanted)

    crossing = _crossing(reached)
    return None if crossing is None else max(1, round(crossing))


def largest_eps(
    n_samples: int, *, delta: float, level: float = 0.95, method: str = "bayes", prior: Prior = JEFFREYS
) -> float:
    """The lower bound that a perfect attack on `n_samples`, half of them with b = 1, would get.

    A claim above it cannot be refuted with so few samples, whatever the attack.

    >>> [round(largest_eps(2000, delta=1e-5, level=0.90, method=m), 2) for m in ("jeffreys", "clopper-pearson")]
    [6.25, 5.81]
    """
    n = int(checks.counts("n_samples", n_samples))
    counts = _expected(float(n), 0.0, 0.0)
    return float(_method(method).lower_bound(_family(delta), counts, 1.0 - checks.level(level), checks.prior(prior))[0])


def _family(delta: float) -> EpsAtDelta:
    return EpsAtDelta(checks.delta(delta).reshape(1))


def _method(name: str) -> Method:
    if name not in METHODS:
        raise InvalidInput(f"method must be one of {', '.join(METHODS)}, but got {name!r}.")
    return METHODS[name]


def _expected(n: float, x: float, y: float) -> Counts:
    half = np.array([n / 2])
    return Counts(tp=half * (1 - x), tn=half * (1 - y), fp=half * y, fn=half * x)


def _assumed_rates(accuracy: float | None, fnr: float | None, fpr: float | None) -> tuple[float, float]:
    if accuracy is not None and fnr is None and fpr is None:
        checks.rate("accuracy", accuracy)
        return 1.0 - accuracy, 1.0 - accuracy
    if accuracy is None and fnr is not None and fpr is not None:
        return float(checks.rate("fnr", fnr)), float(checks.rate("fpr", fpr))
    raise InvalidInput("the attack must be given by accuracy alone, or by fnr and fpr together.")


def _crossing(reached: Callable[[float], bool]) -> float | None:
    """The n from which `reached` holds, by bisection; None if it does not by MAX_SAMPLES."""
    high = 2.0
    while not reached(high):
        high *= 2.0
        if high > MAX_SAMPLES:
            return None
    low = high / 2.0
    while high - low > 1e-3:
        mid = 0.5 * (low + high)
        low, high = (low, mid) if reached(mid) else (mid, high)
    return high
