"""The loss attack: one threshold on the loss for all models (Yeom et al., 2018)."""

from __future__ import annotations

from epsgauge.attacks.attack import Attack
from epsgauge.games.signals import Signals
from epsgauge.stats.arrays import Floats


class Loss(Attack):
    """−loss of z1; an adversary who sees z0 only guesses 0 where its loss is low, so the sign is the other."""

    name = "loss"
    meaning = "the point's loss, with one threshold for all models"
    axis = "score: −loss"

    def score(self, signals: Signals) -> Floats:
        loss = signals["loss"]
        return loss[..., 0] if signals.sees == "z0" else -loss[..., 1]

    def sees(self, signals: Signals) -> str:
        return f"black box: the loss of {'z0 only' if signals.sees == 'z0' else 'z1'}"
