"""Anytime: a bound that holds at every moment of a run, by a likelihood ratio, of one pair of each model in order."""

from __future__ import annotations

import numpy as np

from epsgauge.bounds.anytime import anytime_interval, anytime_lower_bound
from epsgauge.methods.betting import Betting
from epsgauge.methods.evidence import Evidence, Tallied
from epsgauge.methods.facts import INDEPENDENT, RULE_FIXED
from epsgauge.methods.method import Asked, Counted, Found, Method
from epsgauge.stats.arrays import Floats
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import Family
from epsgauge.stats.posterior import Prior


class Anytime(Counted):
    """Of several pairs of each model it takes the form of bets."""

    name = "anytime"
    label = "Anytime"
    colour = "sky"
    promise = "guaranteed"
    meaning = "covers with at least the level at every moment, however often one looks"
    assumptions = (INDEPENDENT, RULE_FIXED)
    proven = True
    vectorised = True
    sliders = True

    def form(self, evidence: Evidence, *, by_mu: bool) -> Method:
        return Betting() if evidence.several else self

    def rests_on(self, evidence: Evidence) -> Tallied:
        return evidence.in_order.first

    def called_for(self, asked: Asked) -> bool:
        return asked.stopped

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        found = super().found(evidence, delta=delta, level=level)
        n = len(evidence.in_order.pairs)
        return Found(
            found.low, found.high, f"of {n} models in the order of their numbers, up to the first that is missing"
        )

    def ends(self, family: Family, counts: Counts, alpha: float, prior: Prior) -> tuple[Floats, Floats]:
        found = anytime_interval(counts.whole(), delta=family.parameter, level=1.0 - alpha)
        return np.asarray(found.low), np.asarray(found.high)

    def lower_bounds(self, counts: Counts, *, delta: float, level: float) -> Floats:
        """The bound folds; one that judges has a direction."""
        found = np.asarray(anytime_lower_bound(counts.whole(), delta=np.full(len(counts), delta), level=level))
        chance = counts.tp * (counts.fp + counts.tn) <= counts.fp * (counts.tp + counts.fn)
        return np.where(chance, 0.0, found)
