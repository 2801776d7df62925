"""Which guesses count in the bounds that pool all of them, fixed beforehand or chosen with the rule."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from epsgauge.bounds.expected import chances_of_one
from epsgauge.bounds.guesses import Guessed, Guesses, Sides, right_of_surest
from epsgauge.bounds.one_run import published_mu
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.bounds.shapes import places
from epsgauge.scores.rules import Judged
from epsgauge.scores.table import Scores
from epsgauge.stats.arrays import Bools, Floats, Ints

# Those that a tally knows.
TALLIED: tuple[Guessed, ...] = ("all", "positive", "negative")
# The surest guesses that are tried are all of them, half of them and so on, down to so many of the rows that choose.
FEWEST = 4
# Where nothing can be tried, so many count: a factor and a power of the number of all bits. For a bound of μ more do.
USUAL, USUAL_BY_MU = (2.0, 0.5), (10.0, 0.4)
# Where pairs of the judged models choose, this number has such a share of what the bound may miss.
FIRST = 0.9


@dataclass(frozen=True)
class Which:
    """The guesses that count, fixed without the judged bits; `share` of all bits for those that are surest."""

    guessed: Guessed = "all"
    share: float | None = None
    number: int | None = None
    of_alpha: float = 1.0  # what this number has of 1 − level, where outputs pick one of several

    @property
    def tallied(self) -> bool:
        """Whether a tally says which guesses there are."""
        return self.guessed in TALLIED

    @property
    def sides(self) -> Sides:
        return "one" if self.guessed == "top-positive" else "both"

    def n_top(self, n_bits: int) -> int:
        """How many of the surest."""
        return min(self.number or max(1, round((self.share or 0.0) * n_bits)), n_bits)

    def said(self, guesses: Guesses) -> str:
        """In words."""
        return {
            "all": "all guesses",
            "positive": "guesses of b = 1",
            "negative": "guesses of b = 0",
            "top": f"the {guesses.n_guesses} surest guesses",
            "top-positive": f"the {guesses.n_guesses} highest scores, guessed b = 1",
        }[self.guessed]

    def surest(self, right: Ints, n_bits: int) -> Guesses:
        """Guesses that would need pairs of failed models, of which there is no score, are wrong."""
        n = self.n_top(n_bits)
        return Guesses(int(right[min(n, len(right) - 1)]), n, n_bits, sides=self.sides, of_alpha=self.of_alpha)


@dataclass(frozen=True)
class Counting:
    """How it is decided which guesses count: as fixed beforehand, else what promises most on the rows that chose the
    rule, for a bound at `delta` and `level`.
    """

    guessed: Guessed | None = None
    number: int | None = None
    delta: float = 1e-5
    level: float = 0.99
    fixed: bool = False  # whether the number of guesses must not be left to the scores
    by_mu: bool = False  # whether the bound is that of μ

    def which(self, judged: Judged, n_bits: int) -> Which:
        if self.guessed in TALLIED or self.number is not None:
            return Which(self.guessed or "all", number=self.number)
        if judged.fit_tally is None or judged.same_data:
            return Which() if self.guessed is None else Which(self.guessed, number=self._usual(n_bits))
        tried = self._numbers(n_bits) if judged.same_models else self._shares(len(judged.fit))
        one = chances_of_one(judged.fit.score, judged.fit.bit)
        return max(tried, key=lambda which: self._promised(_expected(which, judged, one, n_bits)))

    def _promised(self, expected: Guesses) -> float:
        if self.by_mu:
            return published_mu(expected, level=self.level)
        return pooled_bound(expected, delta=self.delta, level=self.level).eps

    def _shares(self, n_fit: int) -> list[Which]:
        """What other models choose from; all guesses first, which win among equals."""
        tallied = () if self.guessed else TALLIED[:1] if self.fixed else TALLIED
        halves = range(1 + max(0, math.floor(math.log2(n_fit / FEWEST))))
        return [
            *(Which(guessed) for guessed in tallied),
            *(Which(guessed, share=0.5**k) for guessed in self._surest for k in halves),
        ]

    def _numbers(self, n_bits: int) -> list[Which]:
        """What other pairs of the judged models choose from. Their scores are outputs of these models, so that each
        number has a share of what the bound may miss: the first most of it, the others equal shares of the rest.
        """
        numbers = dict.fromkeys(min(self._usual(n_bits) * 4**k, n_bits) for k in range(max(1, n_bits.bit_length())))
        first, *others = [Which(guessed, number=n) for n in numbers for guessed in self._surest]
        return [
            replace(first, of_alpha=FIRST if others else 1.0),
            *(replace(which, of_alpha=(1.0 - FIRST) / len(others)) for which in others),
        ]

    def _usual(self, n_bits: int) -> int:
        """How many of the surest guesses count where no other models can say it: it is known before any output is."""
        factor, power = USUAL_BY_MU if self.by_mu else USUAL
        return max(1, min(n_bits, round(float(factor * n_bits**power))))

    @property
    def _surest(self) -> tuple[Guessed, ...]:
        return ("top", "top-positive") if self.guessed is None else (self.guessed,)


def _expected(which: Which, judged: Judged, one: Floats, n_bits: int) -> Guesses:
    """The guesses about judged rows, if as many are right as the chances of b = 1 of the rows that chose let expect."""
    fit = judged.fit
    if which.tallied:
        said = fit.score >= judged.threshold
        counted = {"all": np.ones_like(said), "positive": said, "negative": ~said}[which.guessed]
        order, said, n = np.flatnonzero(counted), said[counted], round(float(counted.mean()) * n_bits)
    else:
        order, said = ranked(fit, which.sides)
        n = which.n_top(n_bits)
        rows = max(1, round(n / n_bits * len(fit)))
        order, said = order[:rows], said[:rows]
    right = np.where(said, one[order], 1.0 - one[order])
    random = which.guessed in ("positive", "negative")
    return Guesses(
        math.floor(n * float(right.mean())) if len(right) else 0,
        n,
        n_bits,
        "random" if random else "fixed",
        "one" if random else which.sides,
        which.of_alpha,
    )


def ranked(scores: Scores, sides: Sides) -> tuple[Ints, Bools]:
    """The rows from the surest guess on, by their distance from the middle of the scores, and which are guessed 1."""
    place = places(scores.score)
    order = np.lexsort((place, -(place if sides == "one" else np.abs(place))))
    return order, (place[order] >= 0) | (sides == "one")


def right_guesses(scores: Scores, sides: Sides) -> Ints:
    """How many of the r surest guesses are right, for every r from 0 on."""
    return right_of_surest(places(scores.score), scores.bit, 0.0, sides)
