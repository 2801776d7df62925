"""PATE (Papernot et al. 2017 and 2018): teachers on disjoint parts vote with noise, a student learns what they say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, Self

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.adjacency import checked as checked_adjacency
from epsgauge.data.content import row_keys
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms import pate
from epsgauge.mechanisms.privacy import KnownPrivacy
from epsgauge.references import load
from epsgauge.stats import checks
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.trainers.classifier import Classifier
from epsgauge.trainers.points import Column, labelled

QUIET = 1e-6  # noise that decides ties alone


@dataclass(frozen=True, kw_only=True)
class Pate(Classifier):
    """`estimator` and `settings` are those of teachers and student; labels are 0, …, n_classes − 1.

    `adjacency` says which claim is made, and how records go to teachers. "substitute": in turns, so that a record that
    is replaced leaves its place to the other. "add-remove": by their content, so that no other record moves.
    """

    n_classes: int
    n_teachers: int = 20
    n_queries: int = 100
    noise: Literal["gaussian", "laplace"] = "gaussian"
    scale: float = 10.0  # standard deviation of Gaussian noise on a count; of Laplace noise, its scale 1/γ
    public: str = "epsgauge.data.digits:public_digits"  # a function without arguments: features that are not private
    adjacency: Adjacency = "substitute"
    delta: float = 1e-5  # at which ε is stated

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.whole("n_classes", self.n_classes, 2)
        checks.whole("n_teachers", self.n_teachers, 1)
        checks.whole("n_queries", self.n_queries, 1)
        checks.positive("scale", self.scale)
        if self.noise not in ("gaussian", "laplace"):
            raise InvalidInput(f'noise must be "gaussian" or "laplace", but got {self.noise!r}.')
        delta = checks.delta(self.delta)
        if self.noise == "gaussian":
            checks.within("delta", self.delta, "above 0 for Gaussian noise", np.asarray(delta > 0))
        self._check_adjacency()

    def _check_adjacency(self) -> None:
        if checked_adjacency(self.adjacency) == "label-only":
            raise InvalidInput(
                'adjacency must be "substitute" or "add-remove", but got "label-only". Use the trainer label-pate, '
                "which has the features in the clear."
            )

    def train(self, data: Any, *, seed: int) -> Any:
        """The student. It has seen public features and the noisy answers, and nothing else."""
        queries = self.queries(data)
        answers = self.answers(self.votes(data, seed=seed), seed=seed)
        return self._fitted(queries, answers, seed, data)

    def votes(self, data: Any, *, seed: int) -> Floats:
        """How many teachers say each class, [queries, classes], before noise: private data."""
        x, y = labelled(data)
        checks.within("labels", y, f"below n_classes = {self.n_classes}", (y >= 0) & (y < self.n_classes))
        queries = self.queries(data)
        counts = np.zeros((len(queries), self.n_classes))
        for number, part in enumerate(self.parts(x, y)):
            said = self._fitted(x[part], y[part], _child(seed, number), data).predict(_rows(queries))
            counts[np.arange(len(queries)), np.asarray(said, dtype=np.int64)] += 1.0
        return counts

    def answers(self, votes: Floats, *, seed: int) -> Ints:
        """The class with most votes, after noise."""
        rng = np.random.default_rng([seed, 1])
        drawn = rng.normal if self.noise == "gaussian" else rng.laplace
        best: Ints = np.argmax(votes + drawn(0.0, self.scale, votes.shape), axis=1)
        return best

    def parts(self, x: Column, y: Column) -> Sequence[Ints]:
        """Which records each teacher has."""
        if self.adjacency == "add-remove":
            whose = np.array([int(key, 16) % self.n_teachers for key in row_keys((x, y)).tolist()], dtype=np.int64)
        else:
            whose = np.arange(len(x)) % self.n_teachers
        return [np.flatnonzero(whose == number) for number in range(self.n_teachers)]

    def queries(self, data: Any) -> Column:
        """The features that teachers are asked about; here, they have nothing to do with the data."""
        features = _public(self.public)
        if len(features) < self.n_queries:
            raise InvalidInput(
                f"public must have n_queries = {self.n_queries} points, but {self.public} has {len(features)}."
            )
        return features[: self.n_queries]

    def privacy(self, n: int) -> KnownPrivacy:
        """By the bound that does not depend on the votes."""
        if self.noise == "gaussian":
            eps = pate.gaussian_eps(self.scale, self.n_queries, delta=self.delta)
        else:
            eps = pate.laplace_eps(1.0 / self.scale, self.n_queries, delta=self.delta)
        return KnownPrivacy(eps=eps, delta=self.delta, adjacency=self.adjacency)

    def without_noise(self) -> Self:
        return replace(self, scale=QUIET)

    def _fitted(self, x: Column, y: Column, seed: int, data: Any) -> Any:
        """A classifier, or one answer for all where there are not two classes to learn."""
        found = np.unique(y)
        if len(found) < 2:
            return Constant(int(found[0]) if len(found) else 0)
        return Classifier.train(self, (x, y), seed=seed)


@dataclass(frozen=True)
class Constant:
    """Says the same of everything."""

    label: int

    @property
    def classes_(self) -> Ints:
        return np.array([self.label])

    def predict(self, x: Column) -> Ints:
        return np.full(len(x), self.label)

    def predict_proba(self, x: Column) -> Floats:
        return np.ones((len(x), 1))


@lru_cache(maxsize=1)
def _public(reference: str) -> Column:
    given = load(reference, "public")()
    return np.asarray(given[0] if isinstance(given, tuple) else given)


def _rows(x: Column) -> Column:
    return x.reshape(len(x), -1)


def _child(seed: int, number: int) -> int:
    """A seed for each teacher."""
    return int(np.random.SeedSequence([seed, 2, number]).generate_state(1)[0])
