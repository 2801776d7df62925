"""Mechanisms with a known ε as trainers, so that the path from game to verdict is tested against the truth.

The data is that of `epsgauge.data.zeros`: ids and values. Training releases the sum of the values, and the loss of a
point is the negative log-likelihood that the sum is the point's value. With the attack "difference" a score is the
log-likelihood ratio of the two worlds: the best that any adversary can have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.adjacency import checked as checked_adjacency
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.gaussian import Gaussian
from epsgauge.mechanisms.laplace import Laplace
from epsgauge.mechanisms.mechanism import Mechanism
from epsgauge.mechanisms.privacy import KnownPrivacy
from epsgauge.mechanisms.randomised_response import RandomisedResponse
from epsgauge.stats import checks
from epsgauge.stats.arrays import Floats
from epsgauge.stats.checks import positive
from epsgauge.trainers.points import arrays


class MechanismTrainer(ABC):
    """What the three share."""

    @property
    @abstractmethod
    def mechanism(self) -> Mechanism: ...

    def train(self, data: Any, *, seed: int, size: int | None = None) -> float:
        """The release. `size` is taken, and not used: no constant depends on the number of points."""
        return self.mechanism.sample(float(_values(data).sum()), np.random.default_rng(seed))

    def losses(self, model: float, points: Any) -> Floats:
        return -self.mechanism.log_density(model, _values(points))


@dataclass(frozen=True)
class PureTrainer(MechanismTrainer):
    """What those with a pure ε share."""

    eps: float
    adjacency: Adjacency = "substitute"  # for which ε is stated

    def __post_init__(self) -> None:
        checked_adjacency(self.adjacency)
        _ = self.mechanism  # checks ε

    def privacy(self, n: int) -> KnownPrivacy:
        """Both adjacencies change the sum by 1 here, so it is ε for either; `adjacency` says which is stated."""
        return self.mechanism.known(adjacency=self.adjacency)


@dataclass(frozen=True)
class RandomisedResponseTrainer(PureTrainer):
    @property
    def mechanism(self) -> RandomisedResponse:
        return RandomisedResponse(self.eps)

    def without_noise(self) -> Self:
        """The lie has probability e^−700: never told, and the losses stay finite."""
        return replace(self, eps=700.0)


@dataclass(frozen=True)
class LaplaceTrainer(PureTrainer):
    @property
    def mechanism(self) -> Laplace:
        return Laplace(self.eps)

    def without_noise(self) -> Self:
        """Noise of scale 1e-6: the sum for all purposes, and the losses stay finite."""
        return replace(self, eps=1e6)


@dataclass(frozen=True)
class GaussianTrainer(MechanismTrainer):
    noise_multiplier: float  # σ: one point changes the sum by 1
    delta: float = 1e-5  # at which ε is stated
    adjacency: Adjacency = "substitute"  # for which ε is stated

    def __post_init__(self) -> None:
        checked_adjacency(self.adjacency)
        positive("noise_multiplier", self.noise_multiplier)
        delta = checks.delta(self.delta)
        checks.within("delta", self.delta, "above 0 for the Gaussian mechanism", np.asarray(delta > 0))

    @property
    def mechanism(self) -> Gaussian:
        return Gaussian(self.noise_multiplier)

    def privacy(self, n: int) -> KnownPrivacy:
        """ε at `delta` by the exact curve, for either adjacency: both change the sum by 1 here.

        DPSGD(sample_rate=1, steps=1) would be wrong for substitution: its accountant lets a point that is replaced
        move the sum by twice the clipping norm.
        """
        return self.mechanism.known(self.delta, adjacency=self.adjacency)

    def without_noise(self) -> Self:
        """Noise of scale 1e-6: the sum for all purposes, and the losses stay finite."""
        return replace(self, noise_multiplier=1e-6)


def _values(data: Any) -> Floats:
    columns = arrays(data)
    if len(columns) != 2 or columns[1].ndim != 1 or columns[1].dtype.kind not in "fiub":
        raise InvalidInput(
            'a mechanism trains on the data "zeros", ids and values as two arrays, but got arrays of shape '
            f"{', '.join(str(c.shape) for c in columns)}."
        )
    return columns[1].astype(np.float64)
