"""The trajectory attack: how the pair's losses go from iterate to iterate, for who sees the model after each step.

Losses along the training tell more than the last one: Liu et al. 2022, "Membership inference attacks by exploiting loss
trajectory" (arXiv:2208.14933). There a network learns from the trajectories of other models. Here one of three
statistics is chosen, as few models are set apart.
"""

from __future__ import annotations

import numpy as np

from epsgauge.attacks.attack import Attack
from epsgauge.attacks.rehearsed import Statistic, learned
from epsgauge.errors import InvalidInput
from epsgauge.games.signals import Signals
from epsgauge.stats.arrays import Floats

# Of fewer iterates none has a step before and a step after it.
FEWEST = 4


def _pair(signals: Signals) -> Floats:
    """Loss of z0 minus loss of z1 at each iterate; that of one of them where there is no other, or it is not seen."""
    path = signals["trajectory"]
    if signals.sees == "z0":
        return path[..., 0, :]
    return -path[..., 1, :] if signals.adjacency == "add-remove" else path[..., 0, :] - path[..., 1, :]


def _mean(signals: Signals) -> Floats:
    out: Floats = _pair(signals).mean(axis=-1)
    return out


def _last(signals: Signals) -> Floats:
    return _pair(signals)[..., -1]


def _jumps(signals: Signals) -> Floats:
    """Noise that all steps share moves losses evenly, a record only in the steps that it is in: what a step adds beyond
    its neighbours. The sign of a jump counts, and large ones count most.
    """
    moved = np.diff(_pair(signals), axis=-1)
    jumps = moved[..., 1:-1] - (moved[..., :-2] + moved[..., 2:]) / 2
    out: Floats = np.cbrt((jumps**3).sum(axis=-1))
    return out


STATISTICS: dict[str, Statistic] = {
    "their mean over all iterates": _mean,
    "those of the last iterate": _last,
    "their jumps from step to step": _jumps,
}


class Trajectory(Attack):
    """The statistic that told most in the rehearsal; without one, the mean over all iterates."""

    name = "trajectory"
    meaning = "the pair's losses at each iterate, by the statistic that told most in the rehearsal"
    needs = ("trajectory",)
    axis = "score: losses of all iterates"

    def score(self, signals: Signals) -> Floats:
        shape = signals["trajectory"].shape
        if len(shape) != 4 or shape[-1] < FEWEST:
            raise InvalidInput(
                f"the attack trajectory needs losses of each point at {FEWEST} iterates or more, but its channel has "
                f"the shape {shape}. Let the trainer give a row for each point, with a column for each iterate."
            )
        statistic, sign = learned(signals.rehearsal, STATISTICS)
        return sign * STATISTICS[statistic](signals)

    def sees(self, signals: Signals) -> str:
        statistic, sign = learned(signals.rehearsal, STATISTICS)
        turned = " (lower speaks for b = 1)" if sign < 0 else ""
        return f"the model after each step: the losses of the pair, {statistic}{turned}"
