"""The difference attack: which of the pair's two points has the lower loss, and by how much."""

from __future__ import annotations

from epsgauge.errors import InvalidInput
from epsgauge.games.signals import Signals
from epsgauge.stats.arrays import Floats


def score(signals: Signals) -> Floats:
    """Loss of z0 minus loss of z1."""
    if signals.adjacency == "add-remove":
        raise InvalidInput(
            "the difference attack needs both points of a pair, but an add-remove game has no z0. Use the attack "
            "percentile or loss."
        )
    if signals.sees == "z0":
        raise InvalidInput(
            "the difference attack needs both points of a pair, but this game's adversary sees z0 only. Use the attack "
            "percentile or loss."
        )
    return signals.loss0 - signals.loss1
