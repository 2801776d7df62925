"""Pooled: a bound from all guesses about all models, however those about one model depend on each other."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from epsgauge.bounds.guesses import Guesses, guesses_of
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.methods.counted import OfCounts
from epsgauge.methods.evidence import Evidence, Tallied
from epsgauge.methods.facts import DELTA_FIXED, FAIR_BITS, NUMBER_FIXED, RULE_FIXED
from epsgauge.methods.method import WHEN_STOPPED, Asked, Found, Method
from epsgauge.methods.power import POWER, needed, tally_at_power_of_posterior
from epsgauge.numbers import count
from epsgauge.stats import special
from epsgauge.stats.arrays import Floats
from epsgauge.stats.counts import Counts
from epsgauge.stats.sizing import MAX_SAMPLES
from epsgauge.stats.tally import Tally


class OfGuesses(OfCounts):
    """A bound that knows how many guesses of fair bits count and how many of them are right; it has no upper end."""

    promise = "guaranteed"
    assumptions: ClassVar[tuple[str, ...]] = (FAIR_BITS, RULE_FIXED, NUMBER_FIXED)
    instead = WHEN_STOPPED

    def bound(self, guesses: Guesses, *, delta: float, level: float) -> float:
        raise NotImplementedError

    def rests_on(self, evidence: Evidence) -> Tallied:
        return evidence.all_pairs

    def guesses(self, evidence: Evidence) -> Guesses:
        return evidence.guesses

    def lower_bound(self, evidence: Evidence, *, delta: float, level: float) -> float:
        return self.bound(evidence.guesses, delta=delta, level=level)

    def lower_bounds(self, counts: Counts, *, delta: float, level: float) -> Floats:
        """If all guesses count."""
        right = np.stack([counts.tp + counts.tn, counts.fp + counts.fn], axis=1)
        once, back = np.unique(right, axis=0, return_inverse=True)
        each = [Guesses(int(r), int(r + w), int(r + w)) for r, w in once]
        return np.array([self.bound(g, delta=delta, level=level) for g in each])[back.ravel()]

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float:
        return self.bound(at_power(evidence.guesses), delta=delta, level=level)

    def bounds_mechanism(self, *, pairs: int) -> bool:
        """Guesses about one model may depend on each other in any way that the mechanism's ε allows.

        Of dependent guesses, the mean rates can show less than the guesses together.
        """
        return pairs > 1

    def counts(self, evidence: Evidence, *, several: bool) -> str:
        said = super().counts(evidence, several=several)
        return f"{said}, or as none where only the surest count" if evidence.one_each.n_failed else said

    def failures(self, evidence: Evidence) -> str | None:
        n = evidence.all_pairs.n_failed
        one = n == 1
        counted = f"count{'s' if one else ''} as {'a wrong guess' if one else 'wrong guesses'}"
        how = counted if evidence.which.tallied else f"{'is' if one else 'are'} not guessed"
        return f"{count(n, 'pair')} of failed models {how}" if n else None


class Pooled(OfGuesses):
    """It judges several pairs of each model where guesses are not weighed."""

    name = "pooled"
    label = "Pooled"
    colour = "purple"
    meaning = "covers with at least the level, however the guesses about one model depend on each other"
    remark = "Pooled may count only the surest guesses."

    def bound(self, guesses: Guesses, *, delta: float, level: float) -> float:
        return pooled_bound(guesses, delta=delta, level=level).eps

    def form(self, evidence: Evidence, *, by_mu: bool) -> Method:
        return self if evidence.guesses.number == "fixed" else PooledForOneDelta()

    def called_for(self, asked: Asked) -> bool:
        return asked.several

    def judges(self, asked: Asked) -> bool:
        return asked.judges_several and not (asked.weighs or asked.by_mu or asked.by_curve or asked.same_data)

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        bound = pooled_bound(evidence.guesses, delta=delta, level=(1 + level) / 2)
        costs = None
        if bound.delta_costs > 0.05 * bound.eps_without_delta:
            costs = f"δ for each of {bound.guesses.n_bits} bits costs {bound.delta_costs:.2g} of it"
        return Found(bound.eps, before=f"of {evidence.which.said(evidence.guesses)}", after=costs)

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float:
        if not evidence.which.tallied:
            return super().detectable(evidence, delta=delta, level=level)
        at = tally_at_power_of_posterior(evidence.all_pairs.tally, delta=delta, level=level)
        return self.bound(guesses_of(at, evidence.which.guessed), delta=delta, level=level)

    def needed(self, evidence: Evidence, eps: float, *, delta: float, level: float) -> float | None:
        if not evidence.which.tallied:
            return None

        def enough(n: int) -> bool:
            perfect = Tally(tp=n // 2, tn=n // 2, fp=0, fn=0)
            return self.bound(guesses_of(perfect, evidence.which.guessed), delta=delta, level=level) > eps

        return needed(enough, MAX_SAMPLES)


class PooledForOneDelta(Pooled):
    """The form of Pooled where the scores decide how many guesses there are."""

    assumptions: ClassVar[tuple[str, ...]] = (*OfGuesses.assumptions, DELTA_FIXED)


def at_power(guesses: Guesses) -> Guesses:
    """The guesses with so few right ones that a repeat of the audit has fewer with a probability of 1 − POWER."""
    g = guesses
    if not g.n_guesses:
        return g
    reached = special.bdtr(np.arange(g.n_guesses + 1.0), g.n_guesses, g.n_right / g.n_guesses)
    return replace(g, n_right=int(np.searchsorted(reached, 1.0 - POWER)))
