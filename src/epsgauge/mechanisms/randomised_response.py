"""Randomised response: the bit with probability e^ε/(1 + e^ε), else the other one (Warner 1965)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.mechanisms.mechanism import Mechanism
from epsgauge.stats import checks, region
from epsgauge.stats.arrays import Floats


@dataclass(frozen=True)
class RandomisedResponse(Mechanism):
    """
    >>> RandomisedResponse(eps=1.0).known()
    KnownPrivacy(eps=1.0, adjacency='substitute', delta=0.0)
    """

    eps: float

    def __post_init__(self) -> None:
        checks.one("eps", checks.eps(self.eps))

    def sample(self, value: float, rng: np.random.Generator) -> float:
        bit = float(_bits(value))
        lie = math.exp(-self.eps) / (1.0 + math.exp(-self.eps))
        return 1.0 - bit if rng.random() < lie else bit

    def log_density(self, output: ArrayLike, value: ArrayLike) -> Floats:
        true = -math.log1p(math.exp(-self.eps))
        out: Floats = np.where(_bits(value) == np.asarray(output), true, true - self.eps)
        return out

    def tradeoff(self, fpr: ArrayLike) -> Floats:
        """The boundary of the privacy region itself: no ε-DP mechanism is easier to attack (Kairouz et al. 2015)."""
        return region.lower_boundary(fpr, eps=self.eps, delta=0.0)

    def eps_at(self, delta: float) -> float:
        """From δ(ε') = p − e^ε' (1 − p) with p = e^ε/(1 + e^ε)."""
        d = checks.one("delta", checks.delta(delta))
        odds = 1.0 - d * (1.0 + math.exp(-self.eps))
        return max(0.0, self.eps + math.log(odds)) if odds > 0 else 0.0


def _bits(value: ArrayLike) -> Floats:
    array = checks.numbers("value", value)
    checks.within("value", value, "0 or 1 for randomised response", (array == 0) | (array == 1))
    return array
