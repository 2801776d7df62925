"""Which guesses count in the bounds that pool all of them, fixed beforehand or chosen with the rule."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from epsgauge.bounds.guesses import Guessed, Guesses, Sides, guesses_of, surest_right
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.errors import InvalidInput
from epsgauge.scores.rules import Judged
from epsgauge.scores.table import Scores
from epsgauge.stats.arrays import Ints

# Those that a tally knows.
TALLIED: tuple[Guessed, ...] = ("all", "positive", "negative")
# Where nothing else was said, so many of the surest guesses are tried, as shares of all bits.
SHARES = tuple(2.0**-k for k in range(1, 8))
FEWEST = 8


@dataclass(frozen=True)
class Which:
    """The guesses that count, fixed without the judged bits; `share` of all bits for those that are surest."""

    guessed: Guessed = "all"
    share: float | None = None
    number: int | None = None

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
        return Guesses(int(right[min(n, len(right) - 1)]), n, n_bits, sides=self.sides)


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

    def which(self, judged: Judged, n_bits: int) -> Which:
        if self.guessed is None and (judged.fit_tally is None or judged.same_data):
            return Which()
        if self.guessed is None:
            return self._best(judged, n_bits, None)
        if self.guessed in TALLIED or self.number is not None:
            return Which(self.guessed, number=self.number)
        if judged.fit_tally is None:
            raise InvalidInput(
                f'pooled_guesses = "{self.guessed}" needs pooled_number, how many guesses count, or rows that choose '
                "it: there are none where the rule was given."
            )
        return self._best(judged, n_bits, self.guessed)

    def _best(self, judged: Judged, n_bits: int, only: Guessed | None) -> Which:
        """Those with the highest bound if as many of them are right as of those on the rows that chose the rule.

        Of few guesses that were all right not all are taken to be right: one more right and one more wrong is added.
        """

        def promised(which: Which, on_fit: Guesses) -> float:
            share = (on_fit.n_right + 1) / (on_fit.n_guesses + 2)
            n = which.n_top(n_bits) if which.share else round(on_fit.n_guesses / max(on_fit.n_bits, 1) * n_bits)
            expected = Guesses(math.floor(share * n), n, n_bits, on_fit.number, on_fit.sides)
            return pooled_bound(expected, delta=self.delta, level=self.level).eps

        return max(self._candidates(judged, only), key=lambda pair: promised(*pair))[0]

    def _candidates(self, judged: Judged, only: Guessed | None) -> Iterator[tuple[Which, Guesses]]:
        """What can be chosen, with its guesses on the rows that choose; all guesses first, which win among equals."""
        if only is None and judged.fit_tally is not None:
            for guessed in TALLIED[:1] if self.fixed else TALLIED:
                yield Which(guessed), guesses_of(judged.fit_tally, guessed)
        surest: tuple[Guessed, ...] = ("top", "top-positive") if only is None else (only,)
        for guessed in surest:
            right = right_guesses(judged.fit, judged.threshold, Which(guessed).sides)
            for i, share in enumerate(SHARES):
                if share * len(judged.fit) >= FEWEST or (only is not None and i == 0):
                    which = Which(guessed, share=share)
                    yield which, which.surest(right, len(judged.fit))


def right_guesses(scores: Scores, threshold: float, sides: Sides) -> Ints:
    """How many of the r surest guesses are right, for every r from 0 on."""
    return surest_right(scores.score, scores.bit, threshold=threshold, sides=sides)
