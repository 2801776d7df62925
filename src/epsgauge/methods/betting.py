"""Betting: a bound that holds at every moment of a run with several pairs of each model, by a bet on each model."""

from __future__ import annotations

import numpy as np

from epsgauge.bounds.betting import betting_lower_bound
from epsgauge.methods.evidence import Evidence, Tallied
from epsgauge.methods.facts import DELTA_FIXED, FAIR_BITS, MODELS_INDEPENDENT, RULE_FIXED
from epsgauge.methods.method import Found, Method
from epsgauge.methods.power import redrawn


class Betting(Method):
    """The form of Anytime for several pairs of each model, which all count; it has no upper end."""

    name = "anytime"
    label = "Anytime"
    colour = "sky"
    promise = "guaranteed"
    meaning = "covers with at least the level at every moment, however often one looks"
    assumptions = (MODELS_INDEPENDENT, FAIR_BITS, RULE_FIXED, DELTA_FIXED)
    proven = True

    def rests_on(self, evidence: Evidence) -> Tallied:
        return evidence.in_order.all_pairs

    def failures(self, evidence: Evidence) -> str | None:
        n = evidence.in_order.first.n_failed
        return f"{n} failed models count as wrong guesses" if n else None

    def lower_bound(self, evidence: Evidence, *, delta: float, level: float) -> float:
        seen = evidence.in_order
        return betting_lower_bound(seen.fn, seen.fp, seen.pairs, delta=delta, level=level)

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        n = len(evidence.in_order.pairs)
        low = self.lower_bound(evidence, delta=delta, level=(1 + level) / 2)
        return Found(low, rests_on=f"of {n} models in the order of their numbers, up to the first that is missing")

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float:
        seen = evidence.in_order
        n = len(seen.pairs)
        if not n:
            return 0.0

        def again(rng: np.random.Generator) -> float:
            i = rng.integers(0, n, n)
            return betting_lower_bound(seen.fn[i], seen.fp[i], seen.pairs[i], delta=delta, level=level)

        return redrawn(again)
