"""MechanismGame: a fair coin says on which of two data sets the mechanism runs, and a learned region guesses it back.

Each output is a model of its own, so that all that is proven for audits of models with one pair holds as it stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from epsgauge.adjacency import Adjacency, checked
from epsgauge.bounds.foretold import Foretold
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.curves import Curve
from epsgauge.references import nearest
from epsgauge.sampling.calls import Call
from epsgauge.sampling.learning import Learned, OnTheWay, Sample, learn, table
from epsgauge.sampling.memory import Series
from epsgauge.sampling.neighbours import Pair, lengths, pairs_of
from epsgauge.sampling.outputs import Outputs
from epsgauge.sampling.regions import REGIONS
from epsgauge.scores.table import Scores
from epsgauge.stats import checks
from epsgauge.stats.arrays import Ints

Until = Literal["violation"]
FEWEST = 200  # samples
MOST_APART = 30_000  # samples that a region learns on
MOST_CHOOSING = 100_000  # samples that choose one, with its threshold
AT_ONCE = 250_000
FIRST = 64  # samples that the first region learns on, of a game that goes on until a violation
BATCH, SHARE = 16, 0.1  # samples between two looks, and at least this share of those so far
STREAM = 0x3EC4


@dataclass(frozen=True)
class Sampled:
    """How the samples of an audit came about, in words and numbers."""

    mechanism: str
    region: str  # that was learned, or that foretold most
    pair: str  # in words
    drawn: int  # samples in all
    apart: int  # of these, not judged
    raised: int  # outputs that were errors
    seed: int
    seeded: str
    command: str  # that plays it again
    sensitivity: str | None = None  # what replayed noise shows of it, in words
    cautions: tuple[str, ...] = ()  # of the pair, and of how the mechanism had to be called
    also: str | None = None  # another region that breaks the claim, where one of both can be mended by its remedy

    @property
    def sentences(self) -> tuple[str, ...]:
        apart = f"{self.drawn} samples drawn, {self.apart} of them only to learn from"
        replayed = () if self.sensitivity is None else (f"sensitivity: {self.sensitivity}",)
        return (apart, self.pair, *replayed, f"seed {self.seed}: {self.seeded}")

    @property
    def warnings(self) -> tuple[str, ...]:
        also = () if self.also is None else (self._also,)
        if not self.raised:
            return (*also, *self.cautions)
        return (
            *also,
            *self.cautions,
            f"The mechanism raised an error instead of returning in {self.raised} of {self.drawn} samples. That "
            "counts as an output, because whoever uses the mechanism sees it.",
        )

    @property
    def _also(self) -> str:
        region = REGIONS[str(self.also)]
        return (
            f"The claim is broken in two ways: by region {self.region}, and by region {region.name} ({region.meaning})."
        )


@dataclass(frozen=True, eq=False)
class Played:
    """What came of a game: scores of samples that nothing was learned on before they were scored."""

    scores: Scores
    threshold: float  # chosen on samples set apart, or the claim
    region: str  # that was learned, or that foretold most
    pair: int  # of those that were searched
    point: int  # of the claim, if it has several
    n_drawn: int  # samples in all
    n_raised: int  # outputs that were errors
    foretold: Foretold | None = None  # of a game that goes on until a violation
    also: str | None = None  # another region that breaks the claim, on samples that are not judged
    series: Series = field(default_factory=Series)  # all outputs of the pair, as they were made


@dataclass(frozen=True, eq=False, repr=False)
class MechanismGame:
    """Any randomised function of a data set, and two neighbouring data sets to tell apart by its outputs.

    `mechanism(data)` returns numbers, arrays, lists, texts or None. If it takes `rng`, it is given a generator; if it
    takes `size`, it must return as many independent outputs at once. Without `d0` and `d1`, `pairs` is searched on
    samples set apart: a list of (d0, d1), or "answers:N" or "records:N". With `until="violation"` samples are drawn
    until the claim is refuted, at most `n_samples`. With a stated `sensitivity`, in this `norm`, a mechanism that takes
    `rng` also runs on both data sets with the same noise, which shows exactly how far these are apart.

    >>> import numpy as np
    >>> def noisy(data, rng, size):
    ...     return sum(data) + rng.laplace(0, 1, size)
    >>> MechanismGame(noisy, [0, 0], [0, 1])
    <MechanismGame: noisy, 100000 samples, adjacency substitute>
    """

    mechanism: Callable[..., Any]
    d0: Any = None
    d1: Any = None
    pairs: str | Sequence[Pair] | None = None
    n_samples: int = 100_000
    until: Until | None = None
    adjacency: Adjacency = "substitute"
    seed: int = 0
    sensitivity: float | None = None
    norm: Literal[1, 2] = 1
    regions: tuple[str, ...] = tuple(REGIONS)
    name: str | None = None

    def __post_init__(self) -> None:
        checked(self.adjacency)
        checks.whole("n_samples", self.n_samples, FEWEST)
        checks.whole("seed", self.seed, 0)
        if self.until is not None and self.until not in get_args(Until):
            raise InvalidInput(f'until must be "violation" or left out, but got {self.until!r}.')
        for region in self.regions:
            if region not in REGIONS:
                raise InvalidInput(
                    f"regions must be some of {', '.join(REGIONS)}, but got {region!r}.{nearest(region, REGIONS)}"
                )
        if not self.regions:
            raise InvalidInput(f"regions must be some of {', '.join(REGIONS)}, but got none.")
        if self.sensitivity is not None:
            checks.positive("sensitivity", self.sensitivity)
        if self.norm not in (1, 2):
            raise InvalidInput(f"norm must be 1 or 2, but got {self.norm!r}.")
        given = [self.d0 is not None, self.d1 is not None]
        if self.pairs is None and not all(given):
            raise InvalidInput(
                'a game needs two neighbouring data sets d0 and d1, or pairs to search, such as pairs="answers:5".'
            )
        if self.pairs is not None and any(given):
            raise InvalidInput("d0 and d1 are given, and pairs to search too. Leave out one of both.")
        if not (self.call.takes_rng and self.call.repeats) and self.sensitivity is not None:
            does = "returns other outputs with the same rng" if self.call.takes_rng else "does not"
            raise InvalidInput(
                "a stated sensitivity is tested by replaying noise, which needs a mechanism that takes rng, but "
                f"{self.title} {does}. Let it draw from rng, or leave out sensitivity."
            )

    @cached_property
    def call(self) -> Call:
        """How the mechanism is called, after it was tried on all data sets."""
        return Call.of(self.mechanism).tried(self.all_pairs, self._seed(0))

    @cached_property
    def all_pairs(self) -> list[Pair]:
        """The pair, or all that are searched."""
        if self.pairs is None:
            return [(self.d0, self.d1)]
        found = pairs_of(self.pairs) if isinstance(self.pairs, str) else list(self.pairs)
        if not found or any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in found):
            raise InvalidInput(f"pairs must be a list of pairs (d0, d1), but got {self.pairs!r}.")
        return [(d0, d1) for d0, d1 in found]

    @property
    def title(self) -> str:
        """The name that a report shows."""
        return self.name or str(getattr(self.mechanism, "__name__", type(self.mechanism).__name__))

    def cautions(self, pair: int) -> tuple[str, ...]:
        """What must be said of a pair, and of how the mechanism had to be called."""
        answers = isinstance(self.pairs, str) and self.pairs.startswith("answers:")
        return (*(() if answers else lengths(self.all_pairs[pair], self.adjacency)), *self.call.cautions)

    def draw(self, n: int, *, part: Sequence[int], pair: int = 0) -> Sample:
        """So many samples, each with a coin of its own; `part` says which, so that parts are independent."""
        bits: Ints = np.random.default_rng(self._seed(1, *part)).integers(0, 2, n)
        outputs = self.call.draw(self.all_pairs[pair], bits, self._seed(2, *part))
        return Sample(outputs, bits)

    def frozen(self, data: Any, n: int) -> Outputs:
        """Outputs of one data set with the noise that every other one gets too."""
        return self.call.draw((data, data), np.zeros(n, np.int64), self._seed(4))

    def play(self, aim: Curve) -> Played:
        """Learn on one part of the samples what breaks the claim most, and score the other."""
        pair, n_searched, n_raised = self._best_pair(aim)
        n_apart, n_choosing = min(self.n_samples // 4, MOST_APART), min(self.n_samples // 4, MOST_CHOOSING)
        apart, choosing = (self.draw(n, part=(part,), pair=pair) for part, n in ((1, n_apart), (2, n_choosing)))
        learned = self._learned(apart, choosing, aim)
        n, bits, score, series = self.n_samples - n_apart - n_choosing, list[Any](), list[Any](), Series()
        for sample in (apart, choosing):
            series.add(sample.outputs, sample.bits)
        n_raised += apart.outputs.n_raised + choosing.outputs.n_raised
        for at, start in enumerate(range(0, n, AT_ONCE)):
            judged = self.draw(min(AT_ONCE, n - start), part=(3, at), pair=pair)
            series.add(judged.outputs, judged.bits)
            bits.append(judged.bits)
            score.append(learned.score(judged.outputs))
            n_raised += judged.outputs.n_raised
        scores = table(np.concatenate(bits), np.concatenate(score), self.adjacency)
        n_drawn = self.n_samples + n_searched
        return Played(
            scores, learned.threshold, learned.name, pair, learned.point, n_drawn, n_raised, None, learned.also, series
        )

    def watch(self, aim: Curve) -> Iterator[Played]:
        """The game after each batch; what is learned on the way never sees a sample before it is scored.

        Of a claim with several points, more samples are drawn first, and choose one.
        """
        pair, n_searched, n_raised = self._best_pair(aim)
        several = len(aim) > 1
        n = int(np.clip(self.n_samples // 10, FIRST, MOST_APART)) if several else FIRST
        first = self.draw(n, part=(1,), pair=pair)
        point = self._learned(first[: n // 2], first[n // 2 :], aim).point if several else 0
        claimed = float(aim.eps[point]) if several else aim.middle
        way = OnTheWay(first, self.regions, self.seed, claimed)
        bits, odds, batch, series = list[Any](), list[Any](), 0, Series()
        series.add(first.outputs, first.bits)
        n_raised += first.outputs.n_raised
        while n < self.n_samples:
            wanted = max(BATCH, int(SHARE * n))
            new = self.draw(min(wanted, self.n_samples - n), part=(3, batch), pair=pair)
            series.add(new.outputs, new.bits)
            bits.append(new.bits)
            odds.append(way.foretell(new))
            n, batch, n_raised = n + len(new), batch + 1, n_raised + new.outputs.n_raised
            ends = np.cumsum([len(part) for part in bits])
            foretold = Foretold(np.concatenate(odds), np.concatenate(bits), way.weights, ends, claimed)
            scores = table(foretold.bits, foretold.log_odds[:, 0], self.adjacency)
            yield Played(scores, claimed, way.best, pair, point, n + n_searched, n_raised, foretold, series=series)

    def _best_pair(self, aim: Curve) -> tuple[int, int, int]:
        """The pair that shows most on samples set apart for it, how many these were, and how many were errors."""
        if len(self.all_pairs) == 1:
            return 0, 0, 0
        n = int(np.clip(self.n_samples // (4 * len(self.all_pairs)), 500, 10_000))
        seen, n_raised = [], 0
        for at in range(len(self.all_pairs)):
            apart, choosing = (self.draw(n, part=(0, at, half), pair=at) for half in (0, 1))
            seen.append(self._learned(apart, choosing, aim).seen)
            n_raised += apart.outputs.n_raised + choosing.outputs.n_raised
        return max(range(len(seen)), key=seen.__getitem__), 2 * n * len(seen), n_raised

    def _learned(self, apart: Sample, choosing: Sample, aim: Curve) -> Learned:
        return learn(apart, choosing, self.regions, aim=aim, adjacency=self.adjacency, seed=self.seed)

    def _seed(self, *part: int) -> np.random.SeedSequence:
        return np.random.SeedSequence([self.seed, STREAM, *part])

    def __repr__(self) -> str:
        until = " at most, until a violation" if self.until else ""
        return f"<MechanismGame: {self.title}, {self.n_samples} samples{until}, adjacency {self.adjacency}>"
