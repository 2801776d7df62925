"""Randomised response of K labels: the label with probability e^ε/(e^ε + K − 1), else one of the others, all alike."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from epsgauge.mechanisms.privacy import KnownPrivacy
from epsgauge.stats import checks
from epsgauge.stats.arrays import Ints


@dataclass(frozen=True)
class LabelRandomisedResponse:
    """What is trained on such labels is ε-label-DP, and no more than that: features are not hidden.

    It is LP-1ST of Ghazi et al. 2021, "Deep Learning with Label Differential Privacy": all labels alike beforehand.

    >>> LabelRandomisedResponse(eps=1.0, n_classes=10).known()
    KnownPrivacy(eps=1.0, adjacency='label-only', delta=0.0)
    """

    eps: float
    n_classes: int

    def __post_init__(self) -> None:
        checks.one("eps", checks.eps(self.eps))
        checks.whole("n_classes", self.n_classes, 2)

    @property
    def keeps(self) -> float:
        """The probability that a label stays."""
        return 1.0 / (1.0 + (self.n_classes - 1) * math.exp(-self.eps))

    def sample(self, labels: Ints, rng: np.random.Generator) -> Ints:
        """Each label drawn by itself; labels are 0, …, K − 1."""
        array = checks.counts("labels", labels)
        checks.within("labels", labels, f"below n_classes = {self.n_classes}", array < self.n_classes)
        moves = rng.random(len(array)) >= self.keeps
        further = rng.integers(1, self.n_classes, len(array))
        return np.where(moves, (array + further) % self.n_classes, array)

    def known(self) -> KnownPrivacy:
        return KnownPrivacy(eps=self.eps, adjacency="label-only")
