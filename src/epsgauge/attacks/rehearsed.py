"""The rehearsed attack: of a few simple statistics, the one that told most about the bit in the rehearsal.

Most leaks show in the two losses of the pair. Some do not: a canary that moves a preprocessing step changes what the
model says of every point, in a direction that depends on the pipeline. So statistic and sign are learned on models set
apart, as an adversary would (the shadow models of Shokri et al., 2017, of the same training).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from epsgauge.attacks.attack import Attack
from epsgauge.games.signals import Signals
from epsgauge.stats.arrays import Floats, Ints

# How much more another statistic must tell than the first, in standard deviations, to be taken instead.
CLEARLY = 0.5

Statistic = Callable[[Signals], Floats]  # a number for each pair, higher where b = 1 is more likely, or always lower


def _pair(signals: Signals) -> Floats:
    """Loss of z0 minus loss of z1, or −loss of z1 where there is no z0."""
    loss = signals["loss"]
    return -loss[..., 1] if signals.adjacency == "add-remove" else loss[..., 0] - loss[..., 1]


def _others(signals: Signals) -> Floats:
    """The mean loss on reference points, the same for each pair of a model."""
    mean = signals["reference"].mean(axis=1)
    return np.repeat(mean[:, None], signals.bits.shape[1], axis=1)


STATISTICS: dict[str, Statistic] = {
    "the losses of the pair": _pair,
    "the mean loss on reference points": _others,
}


class Rehearsed(Attack):
    """Without a rehearsal it is the difference of both losses."""

    name = "rehearsed"
    meaning = "the statistic that told most in the rehearsal: the pair's losses, or those on reference points"
    needs = ("loss", "reference")

    def score(self, signals: Signals) -> Floats:
        statistic, sign = learned(signals.rehearsal, STATISTICS)
        return sign * STATISTICS[statistic](signals)

    def sees(self, signals: Signals) -> str:
        statistic, sign = learned(signals.rehearsal, STATISTICS)
        return f"black box: {statistic}{' (lower speaks for b = 1)' if sign < 0 else ''}"


def learned(rehearsal: Signals | None, statistics: Mapping[str, Statistic]) -> tuple[str, float]:
    """The statistic and its sign; the first is taken unless another told clearly more."""
    first = next(iter(statistics))
    if rehearsal is None or not len(rehearsal):
        return first, 1.0
    told = {name: effect(of(rehearsal), rehearsal.bits) for name, of in statistics.items()}
    best = max(told, key=lambda name: abs(told[name]))
    if not abs(told[best]) > abs(told[first]) + CLEARLY:
        best = first
    reversed_ = told[best] < (-CLEARLY if best == first else 0.0)  # a pair's losses have a direction of their own
    return best, -1.0 if reversed_ else 1.0


def effect(scores: Floats, bits: Ints, spread: float | None = None) -> float:
    """How far apart both bits' mean scores are, in units of the spread, by default their own."""
    ones, zeros = scores[bits == 1], scores[bits == 0]
    if not len(ones) or not len(zeros):
        return 0.0
    apart = float(ones.mean() - zeros.mean())
    spread = spread_of(scores, bits) if spread is None else spread
    return 0.0 if apart == 0 else float(np.copysign(np.inf, apart)) if spread == 0 else apart / spread


def spread_of(scores: Floats, bits: Ints) -> float:
    """The standard deviation of scores of one bit."""
    rest = np.concatenate([scores[bits == b] - scores[bits == b].mean() for b in np.unique(bits)])
    return float(np.sqrt((rest**2).sum() / max(len(rest) - 2, 1)))
