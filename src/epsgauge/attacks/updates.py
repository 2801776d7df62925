"""The white-box attack: how much likelier all noisy updates are with z1 than with z0.

Who sees every update can weigh each by its likelihood, as the accountant does: Nasr et al. 2021, "Adversary
instantiation" (arXiv:2101.04535), and Nasr et al. 2023, "Tight auditing of differentially private machine learning"
(arXiv:2302.07956).
"""

from __future__ import annotations

from epsgauge.attacks.attack import Attack
from epsgauge.games.signals import Signals
from epsgauge.stats.arrays import Floats


class Updates(Attack):
    """The log-likelihood ratio of all steps, which the watch adds up."""

    name = "updates"
    meaning = "how much likelier all noisy updates are with z1 than with z0"
    needs = ("llr",)
    axis = "score: log-likelihood ratio of all updates"

    def score(self, signals: Signals) -> Floats:
        return signals["llr"]

    def sees(self, signals: Signals) -> str:
        return f"white box: every noisy update, and {canary(signals)}"


def canary(signals: Signals) -> str:
    """What was inserted, in words."""
    if "chosen" in signals.channels:
        return "the gradients of records that it chooses anew at each step"
    if (signals.pairs >= 0).any():
        return "the gradients of the pair's records"
    return "a canary that is a gradient, which need not be that of any record"
