"""PATE for label DP, after PATE-FM (Malek et al. 2021): features are in the clear, and all models learn from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.adjacency import checked as checked_adjacency
from epsgauge.errors import InvalidInput
from epsgauge.trainers.classifier import Classifier
from epsgauge.trainers.pate import Constant, Pate
from epsgauge.trainers.points import Column, labelled


@dataclass(frozen=True, kw_only=True)
class LabelPate(Pate):
    """Teachers have the labels of their part and the features of all, and are asked about training points themselves.

    The paper's FixMatch is scikit-learn's self-training here: a model labels what it is sure of, and learns again.
    """

    adjacency: Adjacency = "label-only"
    public: str = ""  # not used
    sure: float = 0.9  # the probability from which on a model believes itself
    rounds: int = 3

    def _check_adjacency(self) -> None:
        if checked_adjacency(self.adjacency) != "label-only":
            raise InvalidInput(
                f'adjacency must be "label-only", but got "{self.adjacency}": this trainer shows the features of all '
                "records. Use the trainer pate."
            )

    def queries(self, data: Any) -> Column:
        """The first training points: features are not private here."""
        x, _ = labelled(data)
        if len(x) < self.n_queries:
            raise InvalidInput(f"n_queries must be at most the {len(x)} training points, but got {self.n_queries}.")
        return x[: self.n_queries]

    def _fitted(self, x: Column, y: Column, seed: int, data: Any) -> Any:
        first = super()._fitted(x, y, seed, data)
        if isinstance(first, Constant):
            return first
        everything, _ = labelled(data)
        for turn in range(self.rounds):
            odds = np.asarray(first.predict_proba(everything.reshape(len(everything), -1)))
            sure = np.flatnonzero(odds.max(axis=1) >= self.sure)
            said = np.asarray(first.classes_)[odds[sure].argmax(axis=1)]
            first = Classifier.train(
                self, (np.concatenate([x, everything[sure]]), np.concatenate([y, said])), seed=seed + turn
            )
        return first
