"""The hidden-state attack: how far the last model has moved along the canary.

The updates stay hidden, and the adversary inserts gradients that add up in one direction until the last step: Cebere et
al. 2024, "Tighter privacy auditing of DP-SGD in the hidden state threat model" (arXiv:2405.14457).
"""

from __future__ import annotations

from epsgauge.attacks.attack import Attack
from epsgauge.attacks.updates import canary
from epsgauge.games.signals import Signals
from epsgauge.stats.arrays import Floats


class Displacement(Attack):
    """First minus last value of the canary's parameter: gradients are subtracted."""

    name = "displacement"
    meaning = "how far the last model has moved along the canary"
    needs = ("displacement",)
    axis = "score: displacement along the canary"

    def score(self, signals: Signals) -> Floats:
        return signals["displacement"]

    def sees(self, signals: Signals) -> str:
        return f"hidden state: the first and the last model, and {canary(signals)}"
