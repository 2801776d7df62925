"""Simultaneous: a bound that holds after the best of all thresholds was picked on the same samples."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from epsgauge.bounds.simultaneous import simultaneous_lower_bound
from epsgauge.bounds.surest import Surest, surest_lower_bound
from epsgauge.methods.evidence import Evidence, Tallied
from epsgauge.methods.facts import DELTA_FIXED, FAIR_BITS, INDEPENDENT, NUMBER_FIXED
from epsgauge.methods.method import WHEN_STOPPED, Asked, Found, Method
from epsgauge.methods.power import redrawn
from epsgauge.numbers import count
from epsgauge.stats.arrays import Floats

# Of more scores what the bound would detect is not computed.
MOST = 4_000


class Simultaneous(Method):
    """It judges rules that were chosen on the judged data; it has no upper end. This form takes bits from anywhere."""

    name = "simultaneous"
    label = "Simultaneous"
    colour = "black"
    promise = "guaranteed"
    meaning = "covers with at least the level after the best threshold was picked on the same samples"
    assumptions: ClassVar[tuple[str, ...]] = (INDEPENDENT, NUMBER_FIXED)
    remark = "Simultaneous looks at every threshold, the others at the rule."
    one_pair = True
    instead = WHEN_STOPPED

    def rests_on(self, evidence: Evidence) -> Tallied:
        return evidence.one_each

    def form(self, evidence: Evidence, *, by_mu: bool) -> Method:
        return SimultaneousOfCoins() if evidence.coins else self

    def called_for(self, asked: Asked) -> bool:
        return asked.same_data

    def judges(self, asked: Asked) -> bool:
        by_another = asked.coins and asked.own_outputs if asked.by_mu else asked.weighs or asked.by_curve
        return asked.same_data and not by_another

    def plays(self, *, pairs: int, delta: float, by_split: bool) -> bool:
        return not by_split  # it needs no split

    def lower_bound(self, evidence: Evidence, *, delta: float, level: float) -> float:
        return _bound(*evidence.sides, delta=delta, level=level)

    def picks(self, evidence: Evidence, *, delta: float, level: float) -> float | None:
        ins, outs = evidence.sides
        return simultaneous_lower_bound(ins, outs, delta=delta, level=level, directions="high").threshold

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float | None:
        ins, outs = evidence.sides
        if len(ins) + len(outs) > MOST:
            return None

        def again(rng: np.random.Generator) -> float:
            return _bound(rng.choice(ins, len(ins)), rng.choice(outs, len(outs)), delta=delta, level=level)

        return redrawn(again)


class SimultaneousOfCoins(Simultaneous):
    """The form for bits that are coins: of all pairs of a model, however they depend on each other, and sharper."""

    meaning = (
        "covers with at least the level after the best number of the surest guesses was picked on the same samples"
    )
    assumptions: ClassVar[tuple[str, ...]] = (FAIR_BITS, NUMBER_FIXED, DELTA_FIXED)
    one_pair = False
    needs_rule = False
    guessed_by = "the order of the scores"

    def rests_on(self, evidence: Evidence) -> Tallied:
        return evidence.whole.all_pairs

    def failures(self, evidence: Evidence) -> str | None:
        n = evidence.whole.all_pairs.n_failed
        return f"{count(n, 'pair')} of failed models {'counts' if n == 1 else 'count'} as wrong guesses" if n else None

    def bounds_mechanism(self, *, pairs: int) -> bool:
        return True

    def lower_bound(self, evidence: Evidence, *, delta: float, level: float) -> float:
        return self._surest(evidence, delta=delta, level=level).low

    def found(self, evidence: Evidence, *, delta: float, level: float) -> Found:
        surest = self._surest(evidence, delta=delta, level=(1 + level) / 2)
        return Found(surest.low, before=_said(surest) if surest.low > 0 else None)

    def picks(self, evidence: Evidence, *, delta: float, level: float) -> None:
        return None

    def detectable(self, evidence: Evidence, *, delta: float, level: float) -> float | None:
        score, bit = evidence.whole.scores.score, evidence.whole.scores.bit
        n, unseen = len(score), evidence.whole.all_pairs.n_failed
        if n > MOST:
            return None

        def again(rng: np.random.Generator) -> float:
            i = rng.integers(0, n, n)
            return surest_lower_bound(score[i], bit[i], delta=delta, level=level, unseen=unseen).low

        return redrawn(again)

    def _surest(self, evidence: Evidence, *, delta: float, level: float) -> Surest:
        s, unseen = evidence.whole.scores, evidence.whole.all_pairs.n_failed
        return surest_lower_bound(s.score, s.bit, delta=delta, level=level, unseen=unseen)


def _said(surest: Surest) -> str:
    """The guesses that decided, in words."""
    n = surest.n_guesses
    return {
        "high": f"of the {n} highest scores, guessed b = 1",
        "low": f"of the {n} lowest scores, guessed b = 0",
        "both": f"of the {n // 2} highest scores, guessed b = 1, and as many of the lowest, guessed b = 0",
    }[surest.side]


def _bound(ins: Floats, outs: Floats, *, delta: float, level: float) -> float:
    if not len(ins) or not len(outs):
        return 0.0
    return simultaneous_lower_bound(ins, outs, delta=delta, level=level, directions="high").low
