"""The difference attack: which of the pair's two points has the lower loss, and by how much."""

from __future__ import annotations

from epsgauge.attacks.attack import Attack
from epsgauge.errors import InvalidInput
from epsgauge.games.signals import Signals
from epsgauge.stats.arrays import Floats


class Difference(Attack):
    """Loss of z0 minus loss of z1."""

    name = "difference"
    meaning = "the difference of both losses of the pair"
    axis = "score: difference of both losses"

    def score(self, signals: Signals) -> Floats:
        if signals.adjacency == "add-remove":
            raise InvalidInput(
                "the difference attack needs both points of a pair, but an add-remove game has no z0. Use the attack "
                "percentile or loss."
            )
        if signals.sees == "z0":
            raise InvalidInput(
                "the difference attack needs both points of a pair, but this game's adversary sees z0 only. Use the "
                "attack percentile or loss."
            )
        loss = signals["loss"]
        return loss[..., 0] - loss[..., 1]

    def sees(self, signals: Signals) -> str:
        return "black box: the losses of z0 and z1"
