"""The offline form of LiRA: how unusual a point's margin is for models without the point.

Carlini et al. 2022 (arXiv:2112.03570). It needs no model that was trained on the point. The paper's score is the
chance that a model without the point has a lower margin; this is the number of standard deviations that it stands for,
which has the same order and does not saturate. In a game of pairs, models without z1 are those with z0.
"""

from __future__ import annotations

from epsgauge.attacks.apart import OfPoints, members
from epsgauge.attacks.lira import fitted, margins
from epsgauge.games.signals import Signals
from epsgauge.stats.arrays import Floats


class LiraOffline(OfPoints):
    name = "lira-offline"
    meaning = "how unusual the margins of the pair's points are for models set apart without them"
    axis = "score: standard deviations above models without the point (offline LiRA)"

    def of_point(self, signals: Signals, apart: Signals, side: int) -> Floats:
        without = fitted(margins(apart, apart, side), ~members(apart, side))
        return without.standardised(margins(signals, apart, side))
