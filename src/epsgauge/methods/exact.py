"""Exact: a lower bound of ε by inverting a test, of one pair of each model, for one δ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from epsgauge.bounds.exact import exact_lower_bound
from epsgauge.methods.counted import Counted
from epsgauge.methods.facts import DELTA_FIXED, INDEPENDENT, NUMBER_FIXED, RULE_FIXED
from epsgauge.methods.method import WHEN_STOPPED, Asked
from epsgauge.stats.arrays import Floats
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import Family
from epsgauge.stats.posterior import Prior
from epsgauge.stats.quick import CLOPPER_PEARSON


class Exact(Counted):
    """The sharpest of the bounds that four counts give; it judges one pair per model where none is weighed."""

    name = "exact"
    label = "Exact"
    colour = "green"
    promise = "guaranteed"
    meaning = "covers with at least the level, proven under its assumptions"
    assumptions = (INDEPENDENT, RULE_FIXED, NUMBER_FIXED, DELTA_FIXED)
    one_pair = True
    called_for_always = True
    sliders = True
    instead: ClassVar[Mapping[str, str]] = {**WHEN_STOPPED, DELTA_FIXED: "clopper-pearson"}

    def judges(self, asked: Asked) -> bool:
        return not (asked.weighs or asked.judges_several or asked.by_mu or asked.same_data or asked.by_curve)

    def ends(self, family: Family, counts: Counts, alpha: float, prior: Prior) -> tuple[Floats, Floats]:
        """The low end of the exact bound and the high end of Clopper-Pearson's rectangle, each missed with α/2."""
        high = CLOPPER_PEARSON.ends(family, counts, alpha, prior)[1]
        each = zip(counts.tallies(), family.parameter, strict=True)
        return np.array([exact_lower_bound(t, delta=float(d), level=1.0 - alpha / 2) for t, d in each]), high

    def lower_bounds(self, counts: Counts, *, delta: float, level: float) -> Floats:
        each = counts.tallies()
        return np.array([exact_lower_bound(t, delta=delta, level=level, direction="right") for t in each])
