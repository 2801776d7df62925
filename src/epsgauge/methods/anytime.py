"""Anytime: a bound that holds at every moment of a run, from the models in the order of their numbers."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from epsgauge.bounds.anytime import anytime_interval, anytime_lower_bound
from epsgauge.bounds.betting import betting_lower_bound
from epsgauge.bounds.guesses import Guesses
from epsgauge.bounds.watched import watched_lower_bound
from epsgauge.methods.counted import Counted
from epsgauge.methods.evidence import Evidence, Tallied
from epsgauge.methods.facts import DELTA_FIXED, FAIR_BITS, INDEPENDENT, MODELS_INDEPENDENT, RULE_FIXED
from epsgauge.methods.method import Asked, Found, Method
from epsgauge.methods.power import redrawn
from epsgauge.numbers import count
from epsgauge.stats.arrays import Floats
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import Family
from epsgauge.stats.posterior import Prior

REDRAWN = 10_000  # models; to draw more again and again takes minutes


class InOrder(Method):
    """What all forms share: models count up to the first that is missing."""

    name = "anytime"
    label = "Anytime"
    colour = "sky"
    promise = "guaranteed"
    meaning = "covers with at least the level at every moment, however often you look"

    def counts(self, evidence: Evidence, *, several: bool) -> str:
        n, failed = len(evidence.in_order.pairs), evidence.in_order.first.n_failed
        if n == evidence.n_models:
            return super().counts(evidence, several=several)
        pairs = f"the first {count(n, 'judged model')} in order"
        return f"{pairs}, with {count(failed, 'failed model')} as wrong guesses" if failed else pairs

    def said(self, evidence: Evidence) -> str:
        n = len(evidence.in_order.pairs)
        return f"of {n} models in the order of their numbers, up to the first that is missing"


class Anytime(InOrder, Counted):
    """The form for one pair of each model, with bits from anywhere: a likelihood ratio."""

    assumptions = (INDEPENDENT, RULE_FIXED)
    vectorised = True
    sliders = True

    def form(self, evidence: Evidence, *, by_mu: bool) -> Method:
        if evidence.can_be_watched:
            return AnytimeOfCoins()
        return Betting() if evidence.several else self

    def rests_on(self, evidence: Evidence) -> Tallied:
        return evidence.in_order.first

    def called_for(self, asked: Asked) -> bool:
        return asked.stopped

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        found = super().found(evidence, delta=delta, level=level)
        return Found(found.low, found.high, self.said(evidence))

    def bounded(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        return Found(self.lower_bound(evidence, delta=delta, level=level), before=self.said(evidence))

    def ends(self, family: Family, counts: Counts, alpha: float, prior: Prior) -> tuple[Floats, Floats]:
        found = anytime_interval(counts.whole(), delta=family.parameter, level=1.0 - alpha)
        return np.asarray(found.low), np.asarray(found.high)

    def lower_bounds(self, counts: Counts, *, delta: float, level: float) -> Floats:
        """The bound folds; one that judges has a direction."""
        found = np.asarray(anytime_lower_bound(counts.whole(), delta=np.full(len(counts), delta), level=level))
        chance = counts.tp * (counts.fp + counts.tn) <= counts.fp * (counts.tp + counts.fn)
        return np.where(chance, 0.0, found)


class Betting(InOrder):
    """The form for several pairs of each model, which all count: a bet on each model. It has no upper end."""

    assumptions = (MODELS_INDEPENDENT, FAIR_BITS, RULE_FIXED, DELTA_FIXED)

    def rests_on(self, evidence: Evidence) -> Tallied:
        return evidence.in_order.all_pairs

    def failures(self, evidence: Evidence) -> str | None:
        n = evidence.in_order.first.n_failed
        return f"{count(n, 'failed model')} {'counts' if n == 1 else 'count'} as wrong guesses" if n else None

    def lower_bound(self, evidence: Evidence, *, delta: float, level: float) -> float:
        seen = evidence.in_order
        return betting_lower_bound(seen.fn, seen.fp, seen.pairs, delta=delta, level=level)

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        low = self.lower_bound(evidence, delta=delta, level=(1 + level) / 2)
        return Found(low, before=self.said(evidence))

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float:
        seen = evidence.in_order
        n = len(seen.pairs)
        if not n:
            return 0.0

        def again(rng: np.random.Generator) -> float:
            i = rng.integers(0, n, n)
            return betting_lower_bound(seen.fn[i], seen.fp[i], seen.pairs[i], delta=delta, level=level)

        return redrawn(again)


class AnytimeOfCoins(InOrder):
    """The form for bits that are coins, where models before the judged ones chose the rule: far sharper.

    It looks at scores, not at the rule; it has no upper end.
    """

    meaning = (
        "covers with at least the level at every moment, however often you look; surer guesses weigh more, and the "
        "weights are learned along the way"
    )
    assumptions: ClassVar[tuple[str, ...]] = (MODELS_INDEPENDENT, FAIR_BITS, RULE_FIXED, DELTA_FIXED)
    remark = "Anytime looks at all scores, whatever the rule."

    def rests_on(self, evidence: Evidence) -> Tallied:
        return evidence.in_order.all_pairs

    def counts(self, evidence: Evidence, *, several: bool) -> str:
        n = len(evidence.watched)
        return "all judged pairs" if n == evidence.n_models else f"the first {count(n, 'judged model')} in order"

    def failures(self, evidence: Evidence) -> str | None:
        n = evidence.in_order.first.n_failed
        return f"{count(n, 'failed model')} {'is' if n == 1 else 'are'} not guessed" if n else None

    def guesses(self, evidence: Evidence) -> Guesses:
        """By the middle of the scores."""
        seen = evidence.watched
        n, wrong = int(seen.end.n.sum()), int(seen.end.wrong.sum())
        return Guesses(n - wrong, n, int(seen.bits.sum()))

    def bounds_mechanism(self, *, pairs: int) -> bool:
        return True

    def lower_bound(self, evidence: Evidence, *, delta: float, level: float) -> float:
        return watched_lower_bound(evidence.watched, delta=delta, level=level)

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        low = self.lower_bound(evidence, delta=delta, level=(1 + level) / 2)
        return Found(low, before=f"{self.said(evidence)}; those from the surest scores weigh most")

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float | None:
        seen = evidence.watched
        n = len(seen)
        if not n or n > REDRAWN:
            return None if n else 0.0

        def again(rng: np.random.Generator) -> float:
            return watched_lower_bound(seen.again(rng.integers(0, n, n)), delta=delta, level=level)

        return redrawn(again)
