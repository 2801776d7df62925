"""Evidence: what was guessed about which model. It is the one input of every method."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.bounds.classed import Classed, classed
from epsgauge.bounds.foretold import Foretold
from epsgauge.bounds.guesses import Guesses, guesses_of
from epsgauge.bounds.ranked import Ranked
from epsgauge.bounds.watched import MOST_PAIRS, Watched, watched
from epsgauge.bounds.weighed import Weighed
from epsgauge.mechanisms.privacy import Privacy
from epsgauge.methods.coins import unfair
from epsgauge.methods.counting import Counting, Which, right_guesses
from epsgauge.methods.repeats import copied
from epsgauge.scores.rules import Given, Judged, Split, firsts, judge
from epsgauge.scores.search import tally_at
from epsgauge.scores.table import Scores
from epsgauge.stats import special
from epsgauge.stats.arrays import Bools, Floats, Ints
from epsgauge.stats.tally import Tally


@dataclass(frozen=True)
class Tallied:
    """A tally of guesses, and how many more there would be of models that failed: these count as wrong."""

    guesses: Tally
    failed_ones: int = 0
    failed_zeros: int = 0

    @property
    def tally(self) -> Tally:
        t = self.guesses
        return Tally(tp=t.tp, tn=t.tn, fp=t.fp + self.failed_zeros, fn=t.fn + self.failed_ones)

    @property
    def n_failed(self) -> int:
        return self.failed_ones + self.failed_zeros


@dataclass(frozen=True, eq=False)
class Failed:
    """A model that failed: its number, and the bits of the pairs that were to be judged."""

    index: int
    bits: Ints


@dataclass(frozen=True, eq=False)
class InOrder:
    """The judged models in the order of their numbers, of each over all its pairs; those that failed stand last."""

    first: Tallied  # the first pair of each
    fn: Ints
    fp: Ints
    ones: Ints  # pairs with b = 1
    pairs: Ints

    @property
    def failed(self) -> Bools:
        return np.arange(len(self.pairs)) >= len(self.pairs) - self.first.n_failed

    @property
    def all_pairs(self) -> Tallied:
        ones, zeros = int(self.ones[self.failed].sum()), int((self.pairs - self.ones)[self.failed].sum())
        fn, fp, n1, n = (int(x.sum()) for x in (self.fn, self.fp, self.ones, self.pairs))
        return Tallied(Tally(tp=n1 - fn, tn=n - n1 - fp, fp=fp - zeros, fn=fn - ones), ones, zeros)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The judged rows at a threshold, the models that failed among them, and which guesses count where not all do."""

    judged: Judged
    failed: Sequence[Failed] = ()
    failed_apart: Sequence[Failed] = ()  # those that were to choose the rule, and those of them that came too late
    complete_below: float = math.inf  # models from this number on do not count in order: one before them is missing
    privacy: Privacy | None = None  # what the trainer promises
    counting: Counting = field(default_factory=Counting)
    chosen: Which | None = None  # which guesses count, where that has been decided
    chosen_by: Evidence | None = None  # or the evidence that decides it
    foretold: Foretold | None = None  # of a game that goes on until a violation
    of_directions: bool = False  # whether pairs are gradient canaries, each in a direction of its own
    dependent: str | None = None  # why outputs of a mechanism are hardly independent of each other

    @classmethod
    def of_scores(cls, scores: Scores, threshold: float) -> Evidence:
        """All rows, at a threshold that was fixed beforehand."""
        return cls(judge(scores, Given(threshold), delta=0.0))

    @classmethod
    def of_tally(cls, tally: Tally) -> Evidence:
        """Of an attack that says yes or no, about one pair per model; bits are coins."""
        times = [int(cell) for cell in (tally.tp, tally.fn, tally.fp, tally.tn)]
        bit, said = np.repeat([1, 1, 0, 0], times), np.repeat([1.0, 0.0, 1.0, 0.0], times)
        scores = Scores(np.arange(len(bit)), np.zeros_like(bit), bit, said, "substitute", bits="coins")
        return cls.of_scores(scores, 0.5)

    @classmethod
    def ideal(cls, n_models: int, pairs_per_model: int, counting: Counting, adjacency: Adjacency) -> Evidence:
        """What a perfect attack would have on so many models, with each bit in half of the guesses."""
        model, pair = (index.ravel() for index in np.indices((n_models, pairs_per_model)))
        bit = (model + pair + 1) % 2
        which = Which(counting.guessed or "all", number=counting.number)
        if not which.tallied and which.number is None:  # the rows that choose the rule would say how many
            which = Which()
        whole = cls.of_scores(Scores(model, pair, bit, bit.astype(np.float64), adjacency, bits="coins"), 0.5)
        return replace(whole, counting=counting, chosen=which)

    @property
    def scores(self) -> Scores:
        return self.judged.judged

    @property
    def coins(self) -> bool:
        """Whether each bit is said to be a fair coin of its own."""
        return self.scores.bits == "coins"

    @property
    def threshold(self) -> float:
        return self.judged.threshold

    @property
    def tally(self) -> Tally:
        """Of all judged pairs; models that failed are left out."""
        return self.judged.tally

    @cached_property
    def one_each(self) -> Tallied:
        """The first judged pair of each model."""
        ones = sum(int(f.bits[0]) for f in self.failed)
        return Tallied(self.judged.one_per_model, ones, len(self.failed) - ones)

    @cached_property
    def all_pairs(self) -> Tallied:
        ones = sum(int(f.bits.sum()) for f in self.failed)
        return Tallied(self.judged.tally, ones, sum(len(f.bits) for f in self.failed) - ones)

    @cached_property
    def sides(self) -> tuple[Floats, Floats]:
        """The scores of the first pair of each model with b = 1 and with b = 0, ascending; failures worst of all."""
        first, wrong = firsts(self.scores), self.one_each
        ins, outs = first.score[first.bit == 1], first.score[first.bit == 0]
        worst, best = np.min(first.score) - 1.0, np.max(first.score) + 1.0
        return (
            np.sort(np.concatenate([ins, np.full(wrong.failed_ones, worst)])),
            np.sort(np.concatenate([outs, np.full(wrong.failed_zeros, best)])),
        )

    @cached_property
    def whole(self) -> Evidence:
        """With the rows that chose the rule: for methods that need none, and so may judge these too."""
        if not len(self.judged.fit) or self.judged.same_data:
            return self
        apart = {f.index: f.bits for f in self.failed_apart}
        rows = self.judged.whole[~np.isin(self.judged.whole.model, list(apart))] if apart else self.judged.whole
        bits = {f.index: np.concatenate([apart.pop(f.index, f.bits[:0]), f.bits]) for f in self.failed} | apart
        failed = tuple(Failed(index, bits[index]) for index in sorted(bits))
        return replace(self, judged=judge(rows, Given(self.threshold), delta=0.0), failed=failed, failed_apart=())

    @cached_property
    def first_pairs(self) -> Evidence:
        """The first pair of each model alone."""
        if len(self.scores) == len(self.scores.models):
            return self
        failed = tuple(replace(f, bits=f.bits[:1]) for f in self.failed)
        return replace(self, judged=judge(firsts(self.scores), Given(self.threshold), delta=0.0), failed=failed)

    @cached_property
    def classed(self) -> Classed:
        """The guesses by the middle of the scores, in classes of how sure they are."""
        none = self.scores[:0]
        return classed(self.scores.score, self.scores.bit, none.score, none.bit)

    @cached_property
    def ranked(self) -> Ranked:
        """The guesses by the middle of the scores, from the surest on; failures last.

        They are about the first pair of each model, or all pairs if each has an output of its own.
        """
        first, tallied = (self.scores, self.all_pairs) if self.orthogonal else (firsts(self.scores), self.one_each)
        wrong = np.diff(right_guesses(first, "both")) == 0
        return Ranked.of(np.append(wrong, np.ones(tallied.n_failed, bool)))

    @property
    def orthogonal(self) -> bool:
        """Whether rows are gradient canaries of one model or several, each in a direction of its own."""
        return self.of_directions or self.scores.taken_as == "orthogonal"

    @property
    def n_bits(self) -> int:
        """Of all pairs that were to be judged, those of models that failed among them."""
        return len(self.scores) + self.all_pairs.n_failed

    @cached_property
    def which(self) -> Which:
        """The guesses that count where all are pooled."""
        if self.chosen is not None:
            return self.chosen
        if self.chosen_by is not None:
            other = self.chosen_by
            return replace(other.which, number=None if other.which.tallied else other.guesses.n_guesses)
        return self.counting.which(self.judged, int(self.all_pairs.tally.n_samples))

    @cached_property
    def guesses(self) -> Guesses:
        """How many of those are right."""
        if self.which.tallied:
            return guesses_of(self.all_pairs.tally, self.which.guessed)
        return self.which.surest(self._right, self.n_bits)

    @cached_property
    def weighed(self) -> Weighed:
        """What the wrong ones of those weigh, where the surest count."""
        return Weighed.of(self.guesses, self._right)

    @cached_property
    def _right(self) -> Ints:
        return right_guesses(self.scores, self.which.sides)

    @cached_property
    def in_order(self) -> InOrder:
        """Up to the first model that is missing."""
        scores, failed = self._counted_in_order()
        one, wrong = scores.bit == 1, scores.bit != (scores.score >= self.threshold)
        ones, sizes = [int(f.bits.sum()) for f in failed], [len(f.bits) for f in failed]
        zeros = [n - k for n, k in zip(sizes, ones, strict=True)]
        of_done = (scores.per_model(wrong & one), scores.per_model(wrong & ~one), scores.per_model(one), scores.pairs)
        columns = zip(of_done, (ones, zeros, ones, sizes), strict=True)
        fn, fp, n1, pairs = (np.concatenate([done, extra]).astype(np.int64) for done, extra in columns)
        first = sum(int(f.bits[0]) for f in failed)
        tally = tally_at(firsts(scores), np.asarray(self.threshold))
        return InOrder(Tallied(tally, first, len(failed) - first), fn, fp, n1, pairs)

    @property
    def can_be_watched(self) -> bool:
        """Whether guesses about models in order can be weighed: bits are coins, and models before them say how.

        Those of a run have an order; that of a table, whose models are split at random, may follow their bits.
        """
        few, choice = int(self.in_order.pairs.max(initial=0)) <= MOST_PAIRS, self.judged.choice
        return self.coins and few and isinstance(choice, Split) and choice.seed is None

    @cached_property
    def watched(self) -> Watched:
        """Guesses by the middle of the rows that chose, about models in order up to the first that is missing."""
        other = self.chosen_by
        if other is not None and other.scores is self.scores:  # the threshold does not matter
            return other.watched
        scores, failed = self._counted_in_order()
        numbers = np.concatenate([scores.models, np.array([f.index for f in failed], np.int64)])
        n_bits = np.concatenate([scores.pairs, np.array([len(f.bits) for f in failed], np.int64)])
        order = np.argsort(numbers)
        at, fit = np.searchsorted(numbers[order], scores.model), self.judged.fit
        return watched(scores.score, scores.bit, at, n_bits[order], fit.score, fit.bit)

    def _counted_in_order(self) -> tuple[Scores, list[Failed]]:
        below = self.complete_below
        whole = self.scores if math.isinf(below) else self.scores[self.scores.model < below]
        return whole, [f for f in self.failed if f.index < below]

    @property
    def n_models(self) -> int:
        """How many are to be judged, those that failed among them."""
        return len(self.scores.models) + len(self.failed)

    @property
    def several(self) -> bool:
        """Whether a model has more than one judged pair."""
        return bool(np.any(self.in_order.pairs > 1))

    @cached_property
    def unfair(self) -> str | None:
        """Why the bits are hardly those of fair coins."""
        scores, all_pairs = self.whole.scores, self.whole.all_pairs
        return unfair(scores.model, scores.pair, scores.bit, all_pairs.failed_ones, all_pairs.failed_zeros)

    @property
    def uneven(self) -> str | None:
        """Why gradient canaries are not worth models of their own, where the noise of updates was seen."""
        return None if self.scores.origin is None else self.scores.origin.uneven

    @cached_property
    def copied(self) -> str | None:
        """Why the rows are hardly independent of each other."""
        scores = self.whole.scores
        return copied(scores.model, scores.score, scores.bit)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Why rows are no samples of their own."""
        return tuple(reason for reason in (self.copied, self.uneven, self.dependent) if reason)

    def at(self, threshold: float) -> Evidence:
        """The same rows at another threshold; which guesses count stays as it was chosen."""
        at = np.asarray(threshold)
        tally, first = tally_at(self.scores, at), tally_at(firsts(self.scores), at)
        return self._with(replace(self.judged, threshold=threshold, tally=tally, one_per_model=first))

    @cached_property
    def perfect(self) -> Evidence:
        """The same with every guess right, but of models that failed."""
        return self._scored(lambda scores: scores.bit.astype(np.float64), 0.5)

    def as_sharp_as(self, right_order: float) -> Evidence:
        """The same rows by an attack that puts such a share of pairs of rows, one with each bit, in the right order.

        Scores are quantiles of two Gaussians, so that nothing is drawn.
        """
        if right_order >= 1.0:
            return self.perfect
        apart = math.sqrt(2.0) * float(special.ndtri(max(right_order, 0.5)))

        def gaussian(scores: Scores) -> Floats:
            out = np.empty(len(scores))
            for bit in (0, 1):
                rows = scores.bit == bit
                n = int(rows.sum())
                out[rows] = bit * apart + special.ndtri((np.argsort(np.argsort(scores.score[rows])) + 0.5) / max(n, 1))
            return out

        return self._scored(gaussian, apart / 2.0)

    def _scored(self, score: Callable[[Scores], Floats], threshold: float) -> Evidence:
        """The same rows with other scores; which guesses count stays as it was chosen."""
        judged, fit, whole = (x.with_score(score(x)) for x in (self.judged.judged, self.judged.fit, self.judged.whole))
        at = np.asarray(threshold)
        tally, first = tally_at(judged, at), tally_at(firsts(judged), at)
        return self._with(
            replace(
                self.judged, judged=judged, fit=fit, whole=whole, threshold=threshold, tally=tally, one_per_model=first
            )
        )

    def _with(self, judged: Judged) -> Evidence:
        return replace(self, judged=judged, chosen_by=self)
