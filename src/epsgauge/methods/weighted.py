"""Weighted: a bound from all guesses about all models, each weighed by how sure it is; for bits that are coins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from epsgauge.bounds.classed import Classed
from epsgauge.bounds.given_away import Way, surest_that_count, way
from epsgauge.bounds.guesses import Guesses
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.bounds.weighted import again_at, weighted_lower_bound
from epsgauge.methods.counting import Which, right_guesses
from epsgauge.methods.evidence import Evidence, Tallied
from epsgauge.methods.facts import DELTA_FIXED, FAIR_BITS, MODELS_INDEPENDENT, NUMBER_FIXED
from epsgauge.methods.method import WHEN_STOPPED, Asked, Found, Method
from epsgauge.methods.pooled import Pooled, at_power
from epsgauge.methods.power import POWER
from epsgauge.numbers import count


class Weighted(Method):
    """The sharpest where bits are coins, and the one that judges there.

    It looks at scores, not at the rule, and so judges rows that chose it too; it has no upper end.
    """

    name = "weighted"
    label = "Weighted"
    colour = "orange"
    promise = "guaranteed"
    meaning = "covers with at least the level, however guesses depend on each other; surer guesses weigh more"
    assumptions = (FAIR_BITS, MODELS_INDEPENDENT, NUMBER_FIXED, DELTA_FIXED)
    remark = "Weighted looks at all scores, whatever the rule."
    guessed_by = "the middle of the scores"
    needs_rule = False
    instead: ClassVar[Mapping[str, str]] = {**WHEN_STOPPED, DELTA_FIXED: "clopper-pearson"}

    def lower_bound(self, evidence: Evidence, *, delta: float, level: float) -> float:
        seen, how = _judged(evidence, delta, level)
        if how == "count":
            return pooled_bound(_counted(seen, delta, level), delta=delta, level=level).eps
        return _weighed(seen, seen.classed, how, delta=delta, level=level)

    def rests_on(self, evidence: Evidence) -> Tallied:
        return evidence.whole.all_pairs

    def guesses(self, evidence: Evidence) -> Guesses:
        """By the middle of the scores."""
        seen = evidence.whole.classed
        n, wrong = int(seen.n.sum()), int(seen.wrong.sum())
        return Guesses(n - wrong, n, evidence.whole.n_bits)

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        one_sided = (1 + level) / 2
        seen, how = _judged(evidence, delta, one_sided)
        said = "of all guesses, those from the surest scores weigh most"
        if how == "count":
            said = f"of the {surest_that_count(seen.n_bits, delta=delta, level=one_sided)} surest guesses"
        elif seen is not evidence.whole:
            said = "of the guesses about the first pair of each model, those from the surest scores weigh most"
        return Found(self.lower_bound(evidence, delta=delta, level=one_sided), before=said)

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float:
        """Of guesses drawn again, those that are as telling as the 1 − POWER quantile of all such draws."""
        seen, how = _judged(evidence, delta, level)
        if how == "count":
            return pooled_bound(at_power(_counted(seen, delta, level)), delta=delta, level=level).eps
        again = again_at(seen.classed, self.lower_bound(evidence, delta=delta, level=level), 1.0 - POWER)
        return _weighed(seen, again, how, delta=delta, level=level)

    def needed(self, evidence: Evidence, eps: float, *, delta: float, level: float) -> float | None:
        """As many as all guesses need that weigh the same: those of a perfect attack are equally sure."""
        return Pooled().needed(replace(evidence, chosen=Which()), eps, delta=delta, level=level)

    def called_for(self, asked: Asked) -> bool:
        return asked.weighs and not asked.by_mu

    def judges(self, asked: Asked) -> bool:
        return asked.weighs and not (asked.by_mu or asked.by_curve)

    def bounds_mechanism(self, *, pairs: int) -> bool:
        """Each class of scores shows rates of its own, which together show more than one rule."""
        return True

    def counts(self, evidence: Evidence, *, several: bool) -> str:
        n, pairs = evidence.whole.one_each.n_failed, self.pairs(evidence, several=several)
        return f"{pairs}, except those of {count(n, 'failed model')}" if n else pairs

    def failures(self, evidence: Evidence) -> str | None:
        n = evidence.whole.all_pairs.n_failed
        return f"{count(n, 'pair')} of failed models {'is' if n == 1 else 'are'} not guessed" if n else None


def _judged(evidence: Evidence, delta: float, level: float) -> tuple[Evidence, Way]:
    """The rows, and what becomes of the guesses about them; decided by numbers that no score changes."""
    whole = evidence.whole
    how = way(whole.n_bits, len(whole.scores.models) + len(whole.failed), delta=delta, level=level)
    return (whole.first_pairs if how == "first" else whole), how


def _weighed(seen: Evidence, guesses: Classed, how: Way, *, delta: float, level: float) -> float:
    return weighted_lower_bound(guesses, n_bits=seen.n_bits, delta=delta, level=level, independent=how == "first")


def _counted(seen: Evidence, delta: float, level: float) -> Guesses:
    """The surest guesses, from the middle of the scores on; those that failures leave out count as wrong."""
    right = right_guesses(seen.scores, "both")
    n = surest_that_count(seen.n_bits, delta=delta, level=level)
    return Guesses(int(right[min(n, len(right) - 1)]), n, seen.n_bits)
