"""Weighted: a bound from all guesses about all models, each weighed by how sure it is; for bits that are coins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar

from epsgauge.bounds import ways
from epsgauge.bounds.guesses import Guesses
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.bounds.weighted import again_at
from epsgauge.methods.counting import right_guesses
from epsgauge.methods.evidence import Evidence, Tallied
from epsgauge.methods.facts import DELTA_FIXED, FAIR_BITS, MODELS_INDEPENDENT, NUMBER_FIXED
from epsgauge.methods.method import WHEN_STOPPED, Asked, Found, Method
from epsgauge.methods.pooled import at_power
from epsgauge.methods.power import MANY, POWER, needed
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
        return ways.lower_bound(_seen(evidence), delta=delta, level=level)

    def rests_on(self, evidence: Evidence) -> Tallied:
        return evidence.whole.all_pairs

    def guesses(self, evidence: Evidence) -> Guesses:
        """By the middle of the scores."""
        seen = evidence.whole.classed
        n, wrong = int(seen.n.sum()), int(seen.wrong.sum())
        return Guesses(n - wrong, n, evidence.whole.n_bits)

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        one_sided = (1 + level) / 2
        seen, low = _seen(evidence), self.lower_bound(evidence, delta=delta, level=one_sided)
        said = "of all guesses, those from the surest scores weigh most"
        how = seen.way(low, delta=delta, alpha=1.0 - one_sided)
        if how == "count":
            said = f"of the {seen.counted(low, delta=delta, alpha=1.0 - one_sided).n_guesses} surest guesses"
        elif how == "first" and seen.n_models < seen.n_bits:
            said = "of the guesses about the first pair of each model, those from the surest scores weigh most"
        return Found(low, before=said)

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float:
        """Of guesses drawn again, those that are as telling as the 1 − POWER quantile of all such draws."""
        seen, low = _seen(evidence), self.lower_bound(evidence, delta=delta, level=level)
        if seen.way(low, delta=delta, alpha=1.0 - level) == "count":
            counted = seen.counted(low, delta=delta, alpha=1.0 - level)
            return min(low, pooled_bound(at_power(counted), delta=delta, level=level).eps)
        every, first = (again_at(each, low, 1.0 - POWER) for each in (seen.every, seen.first))
        return ways.lower_bound(replace(seen, every=every, first=first), delta=delta, level=level)

    def needed(self, evidence: Evidence, eps: float, *, delta: float, level: float) -> float | None:
        """By tables of models like these, or of so many pairs of one model."""
        m, one = int(evidence.whole.in_order.pairs.max()), evidence.n_models == 1

        def enough(n: int) -> bool:
            shape = (1, n) if one else (n, m)
            perfect = Evidence.ideal(*shape, evidence.counting, evidence.scores.adjacency)
            return self.shows(perfect, eps, delta=delta, level=level)

        each = 1 if one else m
        return each * needed(enough, MANY // each)

    def shows(self, evidence: Evidence, eps: float, *, delta: float, level: float) -> bool:
        return ways.refutes(_seen(evidence), eps, delta=delta, level=level)

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


def _seen(evidence: Evidence) -> ways.Seen:
    whole = evidence.whole
    right = right_guesses(whole.scores, "both")
    return ways.Seen(whole.classed, whole.n_bits, whole.first_pairs.classed, whole.first_pairs.n_bits, right)
