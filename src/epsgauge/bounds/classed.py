"""Guesses of fair bits in classes of how sure they are, which shapes are likely, and classes that are read to say so.

The bits of a class may be read before the guesses of others are judged: what was read says how sure these are
(docs/guarantees.md has the proof). So classes that are hardly surer than ε, which say nothing against it, still tell
which shapes are likely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from epsgauge.bounds.shapes import EDGES, HIGHEST, LOWEST, beforehand, classes, of_both_sides, of_one_side, places
from epsgauge.stats.arrays import Floats, Ints

UNLIKELY = 9.0  # shapes that are so much less likely than the best, in log, are left out
# So many guesses of a side are never read, nor this times the square root of all that it has.
FEWEST, ROOT = 20, 1.5
HEDGE = 0.05  # the weight of what was likely before any class was read
T = TypeVar("T", float, Floats)

_BETWEEN = 1.0 / (1.0 + np.exp([-LOWEST, -HIGHEST]))  # no guess of a shape is surer

UP, DOWN, BOTH = slice(0, len(EDGES)), slice(len(EDGES), 2 * len(EDGES)), slice(0, 2 * len(EDGES))


@dataclass(frozen=True, eq=False)
class Prior:
    """Shapes of some of the classes, and how likely each is by the bits that are known."""

    columns: slice
    right: Floats  # how likely a guess is right: shape by class
    log_weight: Floats  # the weights sum to 1
    log_total: float  # how likely those bits are by all shapes

    @classmethod
    def of(cls, columns: slice, right: Floats, weight: Floats, fit_right: Ints, fit_wrong: Ints) -> Prior:
        """From weights that sum to 1, and so many right and wrong guesses about rows that are set apart."""
        found = cls(columns, right, np.log(weight), 0.0).after(fit_right, fit_wrong)
        kept = found.log_weight > found.log_weight.max() - UNLIKELY
        log_weight = found.log_weight[kept]
        return replace(found, right=right[kept], log_weight=log_weight - np.logaddexp.reduce(log_weight))

    def after(self, right: Ints, wrong: Ints) -> Prior:
        """The same once so many more right and wrong guesses of each class are known."""
        found = np.log(self.right) @ right[self.columns] + np.log1p(-self.right) @ wrong[self.columns] + self.log_weight
        total = float(np.logaddexp.reduce(found))
        return replace(self, log_weight=found - total, log_total=self.log_total + total)

    @cached_property
    def chances(self) -> Floats:
        """How likely a guess of each class is right."""
        out: Floats = np.exp(self.log_weight) @ self.right
        return out


@dataclass(frozen=True, eq=False)
class Classed:
    """How many guesses of each class there are, how many of them are wrong, and which shapes are likely beforehand."""

    n: Ints
    wrong: Ints
    together: Prior
    each: tuple[Prior, Prior]

    @classmethod
    def of(cls, n: Ints, wrong: Ints, fit_right: Ints, fit_wrong: Ints) -> Classed:
        even = np.full(len(of_one_side()), 1.0 / len(of_one_side()))
        up, down = (Prior.of(side, of_one_side(), even, fit_right, fit_wrong) for side in (UP, DOWN))
        return cls(n, wrong, Prior.of(BOTH, of_both_sides(), beforehand(), fit_right, fit_wrong), (up, down))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Classed) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @cached_property
    def _content(self) -> tuple[bytes, ...]:
        """What a bound rests on: that of a run that is judged again is known."""
        priors = [x for prior in (self.together, *self.each) for x in (prior.right, prior.log_weight)]
        return tuple(x.tobytes() for x in (self.n, self.wrong, np.array(self.log_weights), *priors))

    @cached_property
    def log_weights(self) -> tuple[float, float]:
        """How likely it is that both sides belong together, and that each is by itself."""
        both, apart = self.together.log_total, sum(prior.log_total for prior in self.each)
        total = float(np.logaddexp(both, apart))
        return both - total, apart - total

    @cached_property
    def chances(self) -> Floats:
        """How likely a guess of each class is right, by all shapes."""
        together, apart = np.exp(self.log_weights)
        out: Floats = together * self.together.chances + apart * np.concatenate([prior.chances for prior in self.each])
        return out

    def read(self, at: int) -> Classed:
        """What is left once the bits of a class are known."""
        known = np.arange(len(self.n)) == at
        right, wrong = known * (self.n - self.wrong), known * self.wrong
        up, down = (prior.after(right, wrong) for prior in self.each)
        return Classed(self.n - right - wrong, self.wrong - wrong, self.together.after(right, wrong), (up, down))

    def without(self, k: int) -> Classed:
        """What is left if k guesses of each side are set aside as right, the surest first.

        A class keeps no more wrong guesses than it keeps guesses; the others count in the next class inwards.
        """
        if not k:
            return self
        left = self.n.copy()
        for side in (UP, DOWN):
            outwards = np.cumsum(self.n[side][::-1])[::-1]  # guesses of each class and those beyond it
            left[side] -= np.clip(k - (outwards - self.n[side]), 0, self.n[side])
        wrong = _kept(self.wrong, left)
        together, up, down = (self._thinned(prior, left) for prior in (self.together, *self.each))
        return replace(self, n=left, wrong=wrong.astype(np.int64), together=together, each=(up, down))

    def _thinned(self, prior: Prior, left: Ints) -> Prior:
        """Shapes of what is left: as many wrong guesses as before, among fewer."""
        n, fewer = self.n[prior.columns], left[prior.columns]
        wrong = _kept((1.0 - prior.right) * n, fewer)
        with np.errstate(divide="ignore", invalid="ignore"):
            right = np.where((fewer > 0) & (fewer < n), 1.0 - wrong / fewer, prior.right)
        sides = np.clip(right, *_BETWEEN).reshape(len(right), -1, len(EDGES))
        for shape, number in zip(np.moveaxis(sides, 1, 0), fewer.reshape(-1, len(EDGES)), strict=True):
            _in_order(shape, number)
        return replace(prior, right=sides.reshape(right.shape))

    @cached_property
    def stages(self) -> Sequence[tuple[float, Classed]]:
        """What is left as classes are read from the middle of each side outwards, the least sure first; and before it
        how likely guesses of the class that comes next are right, or 1 where none is read any more.
        """
        kept = [(side, max(FEWEST, ROOT * math.sqrt(self.n[side].sum()))) for side in (UP, DOWN)]
        left, out = self, list[tuple[float, Classed]]()
        while True:
            inner = [(side.start + int(np.argmax(left.n[side] > 0)), side, fewest) for side, fewest in kept]
            may_be_read = [at for at, side, fewest in inner if left.n[side].sum() - left.n[at] >= fewest]
            if not may_be_read:
                return [*out, (1.0, left._hedged(self))]
            least, at = min((float(left.chances[at]), at) for at in may_be_read)
            out.append((least, left._hedged(self)))
            left = left.read(at)

    def _hedged(self, first: Classed) -> Classed:
        """The same guesses with some weight for what was likely at first: classes far out may be unlike those read."""
        both, apart = map(_mixed, self.log_weights, first.log_weights)
        together, up, down = (
            replace(now, log_weight=_mixed(now.log_weight, before.log_weight), log_total=total)
            for now, before, total in zip(
                (self.together, *self.each), (first.together, *first.each), (both, apart, 0.0), strict=True
            )
        )
        return replace(self, together=together, each=(up, down))

    def judged_at(self, chance: float) -> int:
        """The stage from which guesses are judged, if classes are read whose guesses are right with less than this."""
        return next(i for i, (least, _) in enumerate(self.stages) if least >= chance)


def _kept(wrong: Floats | Ints, n: Ints) -> Floats:
    """So many wrong guesses in classes that have become smaller, one side after another along the last axis."""
    out = np.array(wrong, np.float64)
    for start in range(0, len(n), len(EDGES)):
        over: Floats = np.zeros(out.shape[:-1])
        for j in range(start + len(EDGES) - 1, start - 1, -1):
            all_wrong = out[..., j] + over
            out[..., j] = np.minimum(all_wrong, n[j])
            over = all_wrong - out[..., j]
    return out


def _in_order(right: Floats, n: Ints) -> None:
    """Let no class of a side be surer than those outwards: the last that has guesses shares with those inwards."""
    if n.any():
        last = int(np.flatnonzero(n)[-1])
        inwards = slice(last, None, -1)
        share = np.cumsum((right * n)[:, inwards], axis=1) / np.cumsum(n[inwards])
        right[:, last] = share.max(axis=1)
        right[:] = np.minimum.accumulate(right[:, ::-1], axis=1)[:, ::-1]


def _mixed(now: T, before: T) -> T:
    """Both as logs."""
    out: T = np.logaddexp(math.log1p(-HEDGE) + now, math.log(HEDGE) + before)
    return out


def classed(scores: Floats, bits: Ints, fit_scores: Floats, fit_bits: Ints) -> Classed:
    """The guesses about judged rows; the rows that are set apart say which shapes are likely."""
    of = classes(places(np.concatenate([scores, fit_scores])))
    wrong = np.concatenate([bits, fit_bits]) != (of < len(EDGES))
    judged = np.arange(len(of)) < len(scores)
    return Classed.of(
        *(
            np.bincount(of[rows], minlength=2 * len(EDGES))
            for rows in (judged, judged & wrong, ~judged & ~wrong, ~judged & wrong)
        )
    )
