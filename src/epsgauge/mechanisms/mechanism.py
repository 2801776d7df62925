"""What every mechanism with a known trade-off curve can do."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.adjacency import Adjacency
from epsgauge.mechanisms.privacy import KnownPrivacy
from epsgauge.stats.arrays import Floats

# Releases are multiples of this: exact in floating point up to 4096, also after 1 is taken off.
GRID = 2.0**-40


def on_grid(output: float) -> float:
    """The nearest multiple of GRID.

    In floating point the last digits of a sum betray its terms (Mironov 2012), and an attack that compares likelihoods
    does find them.
    """
    return float(np.round(output / GRID) * GRID)


class Mechanism(ABC):
    """Releases a number v, the sum of the data's values, with noise.

    A value is in [0, 1], so v changes by at most 1 both when a point is replaced and when one is added or removed:
    what is said of v = 0 against v = 1 holds for either adjacency.
    """

    @abstractmethod
    def sample(self, value: float, rng: np.random.Generator) -> float:
        """One release of `value`."""

    @abstractmethod
    def log_density(self, output: ArrayLike, value: ArrayLike) -> Floats:
        """Log of the density (or probability) of `output` when the value is `value`; both may be arrays."""

    @abstractmethod
    def tradeoff(self, fpr: ArrayLike) -> Floats:
        """The smallest FNR of a test of v = 0 against v = 1 with this FPR; a positive is v = 1."""

    @abstractmethod
    def eps_at(self, delta: float) -> float:
        """The smallest ε for which the mechanism is (ε, δ)-DP; infinite where there is none."""

    def known(self, delta: float = 0.0, *, adjacency: Adjacency = "substitute") -> KnownPrivacy:
        """The exact (ε, δ), stated for either adjacency: it holds for both."""
        return KnownPrivacy(eps=self.eps_at(delta), delta=delta, adjacency=adjacency)
