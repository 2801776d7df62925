"""Attack R: the rank of a point's loss among its losses in models without the point.

Ye et al. 2022, "Enhanced membership inference attacks against machine learning models" (arXiv:2111.09679). The
threshold is a percentile for each point, where that of the attack `percentile` is one for each model. As there, with k
models without the point the score is 100 · #{loss in these > loss} / (k + 1), and equality speaks against a member.
"""

from __future__ import annotations

import numpy as np

from epsgauge.attacks.apart import OfPoints, members
from epsgauge.games.signals import Signals
from epsgauge.stats.arrays import Floats


class AttackR(OfPoints):
    name = "attack-r"
    meaning = "the rank of the losses of the pair's points among those of models set apart without them"
    axis = "score: rank of the loss among models without the point, in %"

    def of_point(self, signals: Signals, apart: Signals, side: int) -> Floats:
        seen, known, without = signals["loss"][..., side], apart["loss"][..., side], ~members(apart, side)
        above = np.zeros(seen.shape)
        for losses, which in zip(known, without, strict=True):
            above += which & (losses > seen)
        out: Floats = 100.0 * above / (without.sum(axis=0) + 1)
        return out
