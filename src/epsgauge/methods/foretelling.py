"""Anytime, of a game: a bound that holds at every moment, from what was foretold of each sample."""

from __future__ import annotations

from epsgauge.bounds.foretold import foretold_at_best, foretold_lower_bound
from epsgauge.methods.anytime import AnytimeOfCoins
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.facts import DELTA_FIXED, FAIR_BITS, MODELS_INDEPENDENT
from epsgauge.methods.method import Found


class Foretelling(AnytimeOfCoins):
    """The form for samples whose bits were foretold by what was learned on the way. It has no upper end."""

    meaning = (
        "covers with at least the level at every moment, however often you look; each sample is a bet by the odds that "
        "were learned on the samples before it"
    )
    assumptions = (MODELS_INDEPENDENT, FAIR_BITS, DELTA_FIXED)
    remark = "Anytime looks at all odds, whatever the rule."
    guessed_by = "the odds that were learned"
    needs_rule = False

    def counts(self, evidence: Evidence, *, several: bool) -> str:
        return "all judged pairs"

    def lower_bound(self, evidence: Evidence, *, delta: float, level: float) -> float:
        assert evidence.foretold is not None
        return foretold_lower_bound(evidence.foretold, delta=delta, level=level)

    def at_best(self, evidence: Evidence, *, delta: float, level: float) -> float:
        assert evidence.foretold is not None
        return foretold_at_best(len(evidence.foretold.bits), delta=delta, level=level)

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        low = self.lower_bound(evidence, delta=delta, level=(1 + level) / 2)
        return Found(low, before="samples with the surest odds weigh most")

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float | None:
        return None
