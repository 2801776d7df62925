"""How many canaries of one training a verdict needs, for an attack that is assumed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from epsgauge.methods.counting import Counting
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.method import Asked, Method
from epsgauge.methods.needs import Judged, Need
from epsgauge.methods.power import needed
from epsgauge.methods.table import default_method
from epsgauge.scores.rules import SplitPairs, default_fit_pairs, judge
from epsgauge.scores.said import Models
from epsgauge.scores.table import Scores
from epsgauge.stats import special
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.sizing import assumed_rates

FEWEST, MOST = 40, 100_000  # canaries that are tried
STEP = 1.1  # from one number that is tried to the next
DRAWS, ENOUGH = 5, 4  # of so many tables as many must show the bound: a power of about 80 %
STREAM = 0x0C01


def needs_of_one_run(
    *,
    delta: float,
    level: float,
    lower_bound: float,
    accuracy: float | None = None,
    fnr: float | None = None,
    fpr: float | None = None,
) -> list[Need]:
    """Of claims of ε, of claims of μ, and of gradient canaries; scores are normal, with deviation 1 and
    means that are as far apart as the rates say.

    The first number of a grid, in steps of a tenth, at which four of five tables that are drawn show the bound.
    """
    of = assumed_rates(accuracy, fnr, fpr)
    mu = -float(special.ndtri(of[0]) + special.ndtri(of[1]))
    forms: tuple[tuple[Judged, bool, Models], ...] = (
        ("claims of ε", False, "one"),
        ("claims of μ", True, "one"),
        ("gradients", True, "orthogonal"),
    )
    return [
        _need(judges, mu, lower_bound, by_mu=by_mu, rows=rows, delta=delta, level=level)
        for judges, by_mu, rows in forms
        if not by_mu or delta > 0
    ]


def largest_of_one_run(n: int, *, delta: float, level: float, by_mu: bool = False) -> float:
    """The bound of a perfect attack on so many canaries, some of which choose the threshold."""
    return _bound(*_typical(n, math.inf), by_mu=by_mu, rows="one", delta=delta, level=level) if n >= FEWEST else 0.0


def fewest_of_one_run(eps: float, *, delta: float, level: float, by_mu: bool = False) -> int | None:
    """About how many canaries a perfect attack needs to refute ε; None where MOST are too few."""
    n = needed(lambda n: largest_of_one_run(n, delta=delta, level=level, by_mu=by_mu) > eps, MOST)
    return None if math.isinf(n) else int(n)


def _method(n: int, *, by_mu: bool, rows: Models) -> Method:
    return default_method(Asked("split-pairs", n, by_mu, orthogonal=rows == "orthogonal"))


def _bound(bit: Ints, score: Floats, *, by_mu: bool, rows: Models, delta: float, level: float) -> float:
    n = len(bit)
    table = Scores(np.zeros(n, np.int64), np.arange(n), bit, score, "add-remove", bits="coins", taken_as=rows)
    counting = Counting(delta=delta, level=level, fixed=by_mu, by_mu=by_mu)
    seen = Evidence(judge(table, SplitPairs(default_fit_pairs(n), seed=0), delta=delta), counting=counting)
    method = _method(n, by_mu=by_mu, rows=rows)
    return method.form(seen, by_mu=by_mu).lower_bound(seen, delta=delta, level=level)


def _need(judges: Judged, mu: float, wanted: float, *, by_mu: bool, rows: Models, delta: float, level: float) -> Need:
    def bound(bit: Ints, score: Floats) -> float:
        return _bound(bit, score, by_mu=by_mu, rows=rows, delta=delta, level=level)

    def typical(n: int) -> float:
        return bound(*_typical(n, mu))

    def often(n: int) -> bool:
        shown = missed = 0
        for draw in range(DRAWS):
            if bound(*_drawn(n, mu, draw)) > wanted:
                shown += 1
            else:
                missed += 1
            if shown == ENOUGH or missed > DRAWS - ENOUGH:
                break
        return shown == ENOUGH

    n = math.inf if mu <= 0 else _about(lambda n: typical(n) > wanted)
    while n <= MOST and not often(math.ceil(n)):
        n *= STEP
    found = math.ceil(n) if n <= MOST else None
    best = None if found is None else bound(*_typical(found, math.inf))
    return Need(_method(found or MOST, by_mu=by_mu, rows=rows), found, best, judges)


def _about(shows: Callable[[int], bool]) -> float:
    """The least number, to about a tenth, that shows the bound; infinite where none does."""
    high = float(FEWEST)
    while not shows(math.ceil(high)):
        high *= 2.0
        if high > MOST:
            return math.inf
    low = high / 2.0
    while high > STEP * low and high > FEWEST:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if shows(math.ceil(middle)) else (middle, high)
    return high


def _typical(n: int, mu: float) -> tuple[Ints, Floats]:
    """Half of the bits are 1, and the scores of each are quantiles; a perfect attack has an infinite μ."""
    half = n - n // 2
    bit = np.arange(n) % 2
    quantiles = special.ndtri((np.arange(half) + 0.5) / half)[np.arange(n) // 2]
    return bit, bit.astype(np.float64) if math.isinf(mu) else quantiles + mu * bit


def _drawn(n: int, mu: float, draw: int) -> tuple[Ints, Floats]:
    rng = np.random.default_rng([STREAM, draw])
    bit = rng.integers(0, 2, n)
    return bit, rng.normal(mu * bit, 1.0)
