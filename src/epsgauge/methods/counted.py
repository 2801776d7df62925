"""Methods whose bound, or whose whole interval, four counts give."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from epsgauge.methods.evidence import Evidence, Tallied
from epsgauge.methods.method import Asked, Found, Method
from epsgauge.methods.power import needed, tally_at_power, tally_at_power_of_posterior
from epsgauge.stats.arrays import Floats
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import EpsAtDelta, Family
from epsgauge.stats.interval import Interval
from epsgauge.stats.posterior import JEFFREYS, Prior
from epsgauge.stats.sizing import MAX_SAMPLES
from epsgauge.stats.tally import Tally


class OfCounts(Method):
    """A method whose bound four counts give."""

    vectorised: ClassVar[bool] = False  # whether many tallies take little longer than one

    @abstractmethod
    def lower_bounds(self, counts: Counts, *, delta: float, level: float) -> Floats:
        """The bound of each tally."""

    def of(self, tally: Tally, *, delta: float, level: float) -> float:
        """The bound of one tally."""
        return float(self.lower_bounds(Counts.of(tally), delta=delta, level=level)[0])

    def lower_bound(self, evidence: Evidence, *, delta: float, level: float) -> float:
        return self.of(self.rests_on(evidence).tally, delta=delta, level=level)


class Counted(OfCounts):
    """A method whose interval four counts give, for one pair of each model or for all pairs."""

    quick: ClassVar[bool] = False  # for counts that are not whole, and for every quantity
    called_for_always: ClassVar[bool] = False
    of_one_rate: ClassVar[Callable[..., Interval] | None] = None  # where it is a rectangle of limits of each rate

    @abstractmethod
    def ends(self, family: Family, counts: Counts, alpha: float, prior: Prior) -> tuple[Floats, Floats]:
        """Both ends of an interval that misses with `alpha`, for each tally."""

    def rests_on(self, evidence: Evidence) -> Tallied:
        return Tallied(evidence.tally) if self.all_pairs else evidence.one_each

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        return Found(*covering(self, self.rests_on(evidence), level=level, delta=delta))

    def bounded(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        """A bound has a direction, which an interval may lack."""
        return Found(self.lower_bound(evidence, delta=delta, level=level))

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float | None:
        tally = self.rests_on(evidence).tally
        if self.quick:
            at = tally_at_power(tally, lambda counts: self.lower_bounds(counts, delta=delta, level=level))
        else:
            at = tally_at_power_of_posterior(tally, delta=delta, level=level)
        return self.of(at, delta=delta, level=level)

    def needed(self, evidence: Evidence, eps: float, *, delta: float, level: float) -> float | None:
        def enough(n: int) -> bool:
            return self.of(Tally(tp=n // 2, tn=n // 2, fp=0, fn=0), delta=delta, level=level) > eps

        return needed(enough, MAX_SAMPLES)

    def called_for(self, asked: Asked) -> bool:
        return self.called_for_always


def covering(
    method: Counted, tallied: Tallied, *, level: float, delta: float = 0.0, family: Family | None = None
) -> tuple[float, float]:
    """An interval, for ε at δ or another quantity, that covers whatever the failed models would have shown.

    The low end takes them as wrong guesses, and is 0 where that is no better than chance. For the high end each
    side's failures are taken as right and as wrong: every corner of the rectangle of rates is in one of the four.
    """
    corners = [(1, 1)] if not tallied.n_failed else [(0, 0), (0, 1), (1, 0), (1, 1)]
    f1, f0 = np.array(corners).T * np.array([[tallied.failed_ones], [tallied.failed_zeros]])
    t = tallied.guesses
    cells = (t.tp + tallied.failed_ones - f1, t.tn + tallied.failed_zeros - f0, t.fp + f0, t.fn + f1)
    counts = Counts(*(np.asarray(cell, np.float64) for cell in cells))
    of = EpsAtDelta(np.full(len(corners), delta)) if family is None else family
    low, high = method.ends(of, counts, 1.0 - level, JEFFREYS)
    if not tallied.n_failed:
        return float(low[0]), float(high[0])
    wrong = tallied.tally
    chance = wrong.tp * wrong.n_negative <= wrong.fp * wrong.n_positive
    return 0.0 if chance else float(low[-1]), float(high.max())
