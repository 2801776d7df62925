"""A method that is one of the quick intervals of `stats.quick`."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from epsgauge.methods.counted import Counted
from epsgauge.stats.arrays import Floats
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import EpsAtDelta, Family
from epsgauge.stats.posterior import JEFFREYS, Prior
from epsgauge.stats.quick import Quick


class OfQuick(Counted):
    """An interval of `stats.quick` as a method, which every audit shows."""

    interval: ClassVar[Quick]
    quick = True
    vectorised = True
    called_for_always = True
    sliders = True

    def ends(self, family: Family, counts: Counts, alpha: float, prior: Prior) -> tuple[Floats, Floats]:
        return self.interval.ends(family, counts, alpha, prior)

    def lower_bounds(self, counts: Counts, *, delta: float, level: float) -> Floats:
        return self.interval.lower_bound(EpsAtDelta(np.full(len(counts), delta)), counts, 1.0 - level, JEFFREYS)
