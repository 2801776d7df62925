"""Intervals that four counts give at once: for many tallies, for counts that are not whole, and for every quantity."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.stats import rates
from epsgauge.stats.arrays import Floats
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import Family
from epsgauge.stats.law import Law
from epsgauge.stats.posterior import Prior


@dataclass(frozen=True)
class Quick:
    """Both ends of an interval that misses with `alpha`, and a lower bound, one-sided at level 1 − alpha."""

    ends: Callable[[Family, Counts, float, Prior], tuple[Floats, Floats]]
    lower_bound: Callable[[Family, Counts, float, Prior], Floats]
    falls: bool  # whether the lower end falls wherever a count of wrong guesses rises


def _law(family: Family, counts: Counts, prior: Prior) -> Law:
    a, b = prior
    return Law(family, (counts.fn + a, counts.tp + b), (counts.fp + a, counts.tn + b))


def _quantile(family: Family, counts: Counts, alpha: float, prior: Prior) -> Floats:
    n = len(counts)
    return _law(family, counts, prior).quantile(np.full(n, alpha), np.full(n, 1 - alpha), np.arange(n))


def _rectangle(limits: rates.Limits) -> Quick:
    return Quick(
        lambda family, c, alpha, prior: rates.rectangle_interval(limits, family, c.fnr, c.fpr, alpha),
        lambda family, c, alpha, prior: rates.rectangle_lower_bound(limits, family, c.fnr, c.fpr, alpha),
        falls=True,
    )


POSTERIOR = Quick(
    lambda family, counts, alpha, prior: _law(family, counts, prior).ends(alpha),
    _quantile,
    falls=False,  # it reads an attack that is worse than chance as its opposite
)
JEFFREYS_RECTANGLE = _rectangle(rates.jeffreys_limits)
CLOPPER_PEARSON = _rectangle(rates.clopper_pearson_limits)
QUICK = {"bayes": POSTERIOR, "jeffreys": JEFFREYS_RECTANGLE, "clopper-pearson": CLOPPER_PEARSON}


def quick(name: str, argument: str = "method") -> Quick:
    """By its name, which `argument` gave."""
    if name not in QUICK:
        raise InvalidInput(f"{argument} must be one of {', '.join(QUICK)}, but got {name!r}.")
    return QUICK[name]
