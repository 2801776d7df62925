"""The margin attack: scaled logits, which do not saturate where probabilities do (LiRA, Carlini et al. 2022, §IV-A)."""

from __future__ import annotations

import numpy as np

from epsgauge.attacks.attack import Attack
from epsgauge.errors import InvalidInput
from epsgauge.games.signals import Signals
from epsgauge.stats.arrays import Floats


class Margin(Attack):
    """Margin of z1 minus margin of z0. In an add-remove game: that of z1; if z0 is all that is seen: minus that of z0.

    A margin is log p − log(1 − p), with p the probability of the label. It comes from the channel "margin" where the
    trainer gives one, else from the loss −log p.
    """

    name = "margin"
    meaning = "the margins (scaled logits) of the pair's points"
    axis = "score: margin"

    def score(self, signals: Signals) -> Floats:
        if signals.sees == "z0":
            return -_margins(signals, 0)
        one = _margins(signals, 1)
        return one if signals.adjacency == "add-remove" else one - _margins(signals, 0)

    def sees(self, signals: Signals) -> str:
        one = "z0 only" if signals.sees == "z0" else "z1"
        both = signals.sees == "pair" and signals.adjacency != "add-remove"
        return f"black box: the margin{'s of z0 and z1' if both else f' of {one}'}"


def _margins(signals: Signals, point: int) -> Floats:
    if "margin" in signals.channels:
        return signals["margin"][..., point]
    loss = signals["loss"][..., point]
    if (loss < 0).any():
        raise InvalidInput(
            "the margin attack needs losses that are −log of a probability, so 0 or more, but the smallest is "
            f'{loss.min():.3g}. Use the attack loss or difference, or let the trainer give the channel "margin".'
        )
    return scaled(loss, float(np.finfo(np.float64).tiny))


def scaled(loss: Floats, lowest: float) -> Floats:
    """The margin of a loss −log p, which counts as no lower than `lowest`: one of 0 has no finite margin."""
    some = np.maximum(loss, lowest)
    out: Floats = -some - np.log(-np.expm1(-some))
    return out
