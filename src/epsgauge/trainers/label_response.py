"""A classifier that is trained on labels after randomised response: label DP, and features in the clear."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from epsgauge.mechanisms.label_response import LabelRandomisedResponse
from epsgauge.mechanisms.privacy import KnownPrivacy
from epsgauge.trainers.classifier import Classifier
from epsgauge.trainers.points import labelled


@dataclass(frozen=True, kw_only=True)
class LabelResponse(Classifier):
    """LP-1ST of Ghazi et al. 2021. The number of classes is not private, and not read from the data."""

    eps: float
    n_classes: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.mechanism  # checks its numbers

    @property
    def mechanism(self) -> LabelRandomisedResponse:
        return LabelRandomisedResponse(self.eps, self.n_classes)

    def train(self, data: Any, *, seed: int) -> Any:
        x, y = labelled(data)
        return super().train((x, self.mechanism.sample(y, np.random.default_rng([seed, 1]))), seed=seed)

    def privacy(self, n: int) -> KnownPrivacy:
        return self.mechanism.known()

    def without_noise(self) -> Self:
        """A label that moves with probability (K − 1) e^−700: never."""
        return replace(self, eps=700.0)
