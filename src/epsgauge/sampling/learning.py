"""Learning a region on samples that are not judged: on a part set apart, or on the way on all samples before."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.sampling.outputs import Outputs
from epsgauge.sampling.regions import LARGEST, REGIONS, LogOdds
from epsgauge.scores.rules import SameData
from epsgauge.scores.search import search
from epsgauge.scores.table import Scores
from epsgauge.stats.arrays import Floats, Ints

# Of the interval whose lower end a region and its threshold are to maximise: the best of many must not be luck.
STRICT = 0.999
THRESHOLDS = 400  # that are tried
GROWTH = 1.5  # what is learned on the way is learned anew once there are so many times more samples
MOST = 30_000  # samples that are learned from


@dataclass(frozen=True, eq=False)
class Sample:
    """Outputs with the bits that say on which data set the mechanism ran."""

    outputs: Outputs
    bits: Ints

    def __len__(self) -> int:
        return len(self.bits)

    def __getitem__(self, rows: slice) -> Sample:
        return Sample(self.outputs[rows], self.bits[rows])

    @classmethod
    def joined(cls, parts: Iterable[Sample]) -> Sample:
        parts = list(parts)
        return cls(Outputs.joined([part.outputs for part in parts]), np.concatenate([part.bits for part in parts]))


@dataclass(frozen=True, eq=False)
class Learned:
    """A region, with the threshold that was chosen for it and the lower end that it had there."""

    name: str
    halves: tuple[LogOdds, LogOdds]
    threshold: float
    seen: float

    def score(self, outputs: Outputs) -> Floats:
        one, other = (clean(log_odds(outputs)) for log_odds in self.halves)
        return 0.5 * (one + other)


def clean(log_odds: Floats) -> Floats:
    """Finite, as a score must be."""
    return np.clip(np.nan_to_num(log_odds, nan=0.0, posinf=LARGEST, neginf=-LARGEST), -LARGEST, LARGEST)


def table(bits: Ints, score: Floats, adjacency: Adjacency) -> Scores:
    """Each sample by itself, as a model of its own."""
    n = len(bits)
    return Scores(np.arange(n), np.zeros(n, np.int64), bits, score, adjacency, bits="coins")


def learn(
    one: Sample, other: Sample, names: Iterable[str], *, delta: float, adjacency: Adjacency, seed: int
) -> Learned:
    """Each region learns on either half and is tried on the other; the best is the mean of what both halves say."""
    found = []
    for name in names:
        first, second = (_learned(name, half[:MOST], seed) for half in (one, other))
        said = np.concatenate([clean(first(other.outputs)), clean(second(one.outputs))])
        scores = table(np.concatenate([other.bits, one.bits]), said, adjacency)
        cuts = _thresholds(said)
        tried = search(scores, delta=delta, level=STRICT, method=SameData().search, candidates=cuts)
        seen = float(np.nan_to_num(tried.lower[tried.best]))
        found.append(Learned(name, (first, second), tried.threshold, seen))
    return max(found, key=lambda one: one.seen)


class OnTheWay:
    """Log-odds by all regions together, learned anew as samples come; each weighs as much as it foretold so far.

    No sample is scored by what was learned from it.
    """

    def __init__(self, first: Sample, names: Iterable[str], seed: int) -> None:
        self._names, self._seed = tuple(names), seed
        self._parts, self._n = [first], len(first)
        self._told = dict.fromkeys(self._names, 0.0)  # log-likelihood of the bits so far
        self._learn()

    def score(self, new: Sample) -> Floats:
        """Log-odds of new samples; after that, they are learned from."""
        each = {name: clean(log_odds(new.outputs)) for name, log_odds in self._regions.items()}
        weight = np.array([self._told[name] for name in each])
        weight = np.exp(weight - weight.max())
        chance = np.stack([1.0 / (1.0 + np.exp(-x)) for x in each.values()], axis=1) @ (weight / weight.sum())
        for name, x in each.items():
            self._told[name] += float(np.sum(-np.logaddexp(0.0, np.where(new.bits == 1, -x, x))))
        self._parts.append(new)
        self._n += len(new)
        if self._n >= GROWTH * self._learned_at and self._learned_at < MOST:
            self._learn()
        with np.errstate(divide="ignore"):
            return clean(np.log(chance) - np.log1p(-chance))

    @property
    def best(self) -> str:
        """The region that foretold most."""
        return max(self._told, key=lambda name: self._told[name])

    def _learn(self) -> None:
        self._parts = [Sample.joined(self._parts)]
        self._learned_at = self._n
        self._regions = {name: _learned(name, self._parts[0][-MOST:], self._seed) for name in self._names}


def _learned(name: str, apart: Sample, seed: int) -> LogOdds:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # of columns without any number
        return REGIONS[name].learn(apart.outputs, apart.bits, np.random.default_rng(seed))


def _thresholds(score: Floats) -> Floats:
    """Quantiles of all scores, closer to each other at both ends."""
    once = np.unique(score)
    if len(once) <= THRESHOLDS:
        return once
    near = np.geomspace(1.0 / len(score), 0.5, THRESHOLDS // 2)
    return np.unique(np.quantile(score, np.concatenate([near, 1.0 - near]), method="lower"))
