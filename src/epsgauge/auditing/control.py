"""The control: whether the attack tells the bits of models that were trained without noise."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from epsgauge.attacks.attack import Attack
from epsgauge.games.signals import Signals
from epsgauge.stats import special
from epsgauge.stats.arrays import Floats, Ints

# Scores of an attack that sees nothing would be as far apart as this once in so many controls.
ONCE_IN = 20


@dataclass(frozen=True)
class Control:
    """Of so many models, the share of pairs of models, one with each bit, whose scores are in the right order."""

    n_models: int
    right_order: float
    by_chance: float  # how often an attack that sees nothing would have as many

    @property
    def sees(self) -> bool:
        """Whether the attack sees anything."""
        return self.by_chance <= 1 / ONCE_IN

    @property
    def share(self) -> str:
        return f"{100 * self.right_order:.0f} % of pairs in the right order"

    def __str__(self) -> str:
        return f"without noise it puts {self.share} ({self.n_models} models set apart)"


def control_of(attack: Attack, quiet: Signals) -> Control | None:
    """What an attack sees of models without noise; None where there are none of both bits."""
    bits = quiet.bits.ravel()
    if len(np.unique(bits)) < 2:
        return None
    scores = attack.scores(quiet).score
    return Control(len(quiet), *right_order(scores, bits))


def right_order(scores: Floats, bits: Ints) -> tuple[float, float]:
    """The share of pairs in the right order, equal ones as a half, and its chance if nothing is seen (Mann-Whitney)."""
    zeros, ones, n = np.sort(scores[bits == 0]), scores[bits == 1], len(bits)
    below, up_to = np.searchsorted(zeros, ones, side="left"), np.searchsorted(zeros, ones, side="right")
    pairs, right = len(zeros) * len(ones), float((below + up_to).sum()) / 2
    ties = np.unique(scores, return_counts=True)[1].astype(float)
    variance = pairs / 12 * (n + 1 - float((ties**3 - ties).sum()) / (n * (n - 1)))
    if variance <= 0:  # all scores are equal
        return 0.5, 1.0
    return right / pairs, float(special.ndtr((pairs / 2 + 0.5 - right) / math.sqrt(variance)))
