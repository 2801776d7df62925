"""Learning a region on samples that are not judged: on a part set apart, or on the way on all samples before."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.mechanisms.curves import Curve
from epsgauge.sampling.outputs import Outputs
from epsgauge.sampling.regions import LARGEST, REGIONS, LogOdds
from epsgauge.scores.rules import SameData
from epsgauge.scores.search import search
from epsgauge.scores.table import Scores
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.tally import Tally

# Of the interval whose lower end a region and its threshold are to maximise: the best of many must not be luck.
STRICT = 0.999
# Standard errors by which a claim looks broken. From SURE on, which the best of some thousand places has by luck in at
# most 2 % of games, the place where it looks most so is chosen, and from CERTAIN on the one with the highest ε.
SURE, CERTAIN = 4.5, 10.0
MORE = 1.25  # a region with a remedy that shows no more than this times another shows nothing of its own
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
    """A region, with the threshold and the point of the claim that were chosen for it, and why."""

    name: str
    halves: tuple[LogOdds, LogOdds]
    threshold: float
    share: float  # of guesses of 1, where it was chosen
    point: int
    seen: tuple[int, float]  # higher is better
    also: str | None = None  # a region that breaks the claim too, but not in the same way

    @property
    def breaks(self) -> bool:
        """Whether the claim surely looked broken."""
        return self.seen[0] > 0

    @property
    def certain(self) -> bool:
        return self.seen[0] > 1 or (self.breaks and self.seen[1] >= CERTAIN)

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


def learn(one: Sample, other: Sample, names: Iterable[str], *, aim: Curve, adjacency: Adjacency, seed: int) -> Learned:
    """Each region learns on either half and is tried on the other; the best is the mean of what both halves say.

    Best is where the claim looks most surely broken. Where a claim of one point is broken for certain, or no claim
    looks broken, it is where the lower end of ε is highest; on a curve, where it comes nearest to what is claimed. A
    claim that is certainly broken in a way that no known remedy mends is judged there, and the other way is named.
    """
    found = []
    for name in names:
        first, second = (_learned(name, half[:MOST], seed, aim.middle) for half in (one, other))
        said = np.concatenate([clean(first(other.outputs)), clean(second(one.outputs))])
        scores = table(np.concatenate([other.bits, one.bits]), said, adjacency)
        for threshold, point, seen in _tried(scores, _thresholds(said), aim):
            found.append(Learned(name, (first, second), threshold, float(np.mean(said >= threshold)), point, seen))
    best = _first(found)
    both = np.concatenate([best.score(half.outputs) for half in (one, other)])
    return replace(best, threshold=_with_share(both, best.share))


def _first(found: list[Learned]) -> Learned:
    """The best; if that is one with a remedy, the best of the others comes first where it breaks the claim too."""
    best = max(found, key=lambda one: one.seen)
    of_others = [one for one in found if not REGIONS[one.name].remedy]
    other = max(of_others, key=lambda one: one.seen, default=best)
    if not (REGIONS[best.name].remedy and best.breaks and other.breaks):
        return best
    if not other.certain:
        return replace(best, also=other.name)
    same_kind = best.seen[0] == other.seen[0]
    return replace(other, also=None if same_kind and best.seen[1] <= MORE * other.seen[1] else best.name)


def broken_by(bits: Ints, log_odds: Floats, eps: float, delta: float, adjacency: Adjacency) -> bool:
    """Whether a claim surely looks broken by these log-odds, none of which was learned from its own sample."""
    scores = table(bits, log_odds, adjacency)
    return any(seen[0] > 0 for _, _, seen in _tried(scores, _thresholds(log_odds), Curve.point(eps, delta)))


def _with_share(score: Floats, share: float) -> float:
    """The threshold above which this share is, as nearly as can be: a mean of two scores is spread less than either."""
    once, n = np.unique(score, return_counts=True)
    above = np.cumsum(n[::-1])[::-1] / len(score)
    at = int(np.abs(above - share).argmin())
    return float(once[at]) if above[-1] / 2 <= share else float(np.nextafter(once[-1], np.inf))


def _tried(scores: Scores, cuts: Floats, aim: Curve) -> Iterator[tuple[float, int, tuple[int, float]]]:
    """Thresholds with a point of the claim each, and how good they are."""
    for at, (eps, delta) in enumerate(zip(aim.eps, aim.delta, strict=True)):
        tried = search(scores, delta=float(delta), level=STRICT, method=SameData().search, candidates=cuts)
        low = float(np.nan_to_num(tried.lower[tried.best]))
        errors = _surely(tried.tallies, eps, delta) if np.isfinite(eps) else np.zeros(len(tried.thresholds))
        best, certain = int(errors.argmax()), errors[tried.best] >= CERTAIN
        if len(aim) == 1:
            yield tried.threshold, at, (2 if certain else 0, low)
        else:
            yield tried.threshold, at, (0, low / eps if eps > 0 else 0.0)
        if errors[best] >= SURE:
            yield float(tried.thresholds[best]), at, (1, float(errors[best]))


def _surely(tally: Tally, eps: float, delta: float) -> Floats:
    """By how many standard errors rates are outside of R(ε, δ), on the side on which they are further out."""
    n1, n0, shrunk = tally.n_positive, tally.n_negative, np.exp(-eps)  # e^ε itself may be beyond all floats
    sides = []
    for right, n_right, wrong, n_wrong in ((tally.tp, n1, tally.fp, n0), (tally.tn, n0, tally.fn, n1)):
        p, q = (right + 1) / (n_right + 2), (wrong + 1) / (n_wrong + 2)
        spread = np.sqrt(shrunk**2 * p * (1 - p) / n_right + q * (1 - q) / n_wrong)
        sides.append((shrunk * (right / n_right - delta) - wrong / n_wrong) / spread)
    out: Floats = np.maximum(*sides)
    return out


class OnTheWay:
    """Log-odds by all regions together, learned anew as samples come; each weighs as much as it foretold so far.

    No sample is scored by what was learned from it.
    """

    def __init__(self, first: Sample, names: Iterable[str], seed: int, eps: float = 0.0) -> None:
        self._names, self._seed, self._eps = tuple(names), seed, eps
        self._parts, self._n = [first], len(first)
        self._told = dict.fromkeys(self._names, 0.0)  # log-likelihood of the bits so far
        self._learn()

    @property
    def weights(self) -> Floats:
        """Of the forecasts: half for all regions together, which is the first, and half for each by itself."""
        return np.array([0.5, *[0.5 / len(self._names)] * len(self._names)])

    def foretell(self, new: Sample) -> Floats:
        """Log-odds of new samples by all regions together, and by each; after that, they are learned from."""
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
            together = clean(np.log(chance) - np.log1p(-chance))
        return np.column_stack([together, *each.values()])

    @property
    def best(self) -> str:
        """The region that foretold most."""
        return max(self._told, key=lambda name: self._told[name])

    def _learn(self) -> None:
        self._parts = [Sample.joined(self._parts)]
        self._learned_at = self._n
        self._regions = {name: _learned(name, self._parts[0][-MOST:], self._seed, self._eps) for name in self._names}


def _learned(name: str, apart: Sample, seed: int, eps: float) -> LogOdds:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # of columns without any number
        return REGIONS[name].learn(apart.outputs, apart.bits, np.random.default_rng(seed), eps)


def _thresholds(score: Floats) -> Floats:
    """Quantiles of all scores, closer to each other at both ends."""
    once = np.unique(score)
    if len(once) <= THRESHOLDS:
        return once
    near = np.geomspace(1.0 / len(score), 0.5, THRESHOLDS // 2)
    return np.unique(np.quantile(score, np.concatenate([near, 1.0 - near]), method="lower"))
