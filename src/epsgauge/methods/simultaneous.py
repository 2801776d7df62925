"""Simultaneous: a bound for one pair of each model that holds after the best of all thresholds was picked."""

from __future__ import annotations

import numpy as np

from epsgauge.bounds.simultaneous import simultaneous_lower_bound
from epsgauge.methods.evidence import Evidence, Tallied
from epsgauge.methods.facts import INDEPENDENT, NUMBER_FIXED
from epsgauge.methods.method import WHEN_STOPPED, Asked, Method
from epsgauge.methods.power import redrawn
from epsgauge.stats.arrays import Floats

# Of more scores what the bound would detect is not computed.
MOST = 4_000


class Simultaneous(Method):
    """It judges rules that were chosen on the judged data; it has no upper end."""

    name = "simultaneous"
    label = "Simultaneous"
    colour = "black"
    promise = "guaranteed"
    meaning = "covers with at least the level after the best threshold was picked on the same samples"
    assumptions = (INDEPENDENT, NUMBER_FIXED)
    remark = "Simultaneous looks at every threshold, the others at the rule."
    one_pair = True
    instead = WHEN_STOPPED

    def rests_on(self, evidence: Evidence) -> Tallied:
        return evidence.one_each

    def called_for(self, asked: Asked) -> bool:
        return asked.same_data

    def judges(self, asked: Asked) -> bool:
        return asked.same_data

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


def _bound(ins: Floats, outs: Floats, *, delta: float, level: float) -> float:
    if not len(ins) or not len(outs):
        return 0.0
    return simultaneous_lower_bound(ins, outs, delta=delta, level=level, directions="high").low
