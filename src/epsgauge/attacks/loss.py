"""The loss attack: one threshold on the loss for all models (Yeom et al., 2018)."""

from __future__ import annotations

from epsgauge.games.signals import Signals
from epsgauge.stats.arrays import Floats


def score(signals: Signals) -> Floats:
    """−loss of z1; an adversary who sees z0 only guesses 0 where its loss is low, so the sign is the other."""
    return signals.loss0 if signals.sees == "z0" else -signals.loss1
