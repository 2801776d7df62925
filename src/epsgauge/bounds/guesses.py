"""Guesses: how many of the fair bits were guessed, how many rightly, and whether their number was fixed beforehand."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.errors import InvalidInput
from epsgauge.stats import checks
from epsgauge.stats.arrays import Bools, Floats, Ints
from epsgauge.stats.tally import Tally

# "fixed": the number of guesses was known before the outputs were seen; "random": the outputs decided it.
Number = Literal["fixed", "random"]
# "both": guesses of 0 and of 1 count; "one": only guesses of one value count, the others abstain.
Sides = Literal["both", "one"]
# Which guesses count; the others abstain. The first three are known from a tally.
Guessed = Literal["all", "positive", "negative", "top", "top-positive"]


# Of the draws here: bits may have been drawn with a small seed too.
STREAM = 0x70105
ORDERS = 4  # in which equal scores are taken


@dataclass(frozen=True)
class Guesses:
    """`n_right` of `n_guesses` guesses are right; `n_bits` counts every fair bit of the game, guessed or not.

    >>> Guesses(n_right=31, n_guesses=36, n_bits=2000, number="random", sides="one")
    Guesses(n_right=31, n_guesses=36, n_bits=2000, number='random', sides='one', of_alpha=1.0)
    """

    n_right: int
    n_guesses: int
    n_bits: int
    number: Number = "fixed"
    sides: Sides = "both"
    of_alpha: float = 1.0  # what these have of 1 − level, where the outputs picked one of several fixed numbers

    def level(self, level: float) -> float:
        """The level that is left for these guesses."""
        return 1.0 - self.of_alpha * (1.0 - checks.level(level))

    def __post_init__(self) -> None:
        for name in ("n_right", "n_guesses", "n_bits"):
            value = checks.one(name, checks.counts(name, getattr(self, name)))
            object.__setattr__(self, name, int(value))
        for name, whole in (("n_right", "n_guesses"), ("n_guesses", "n_bits")):
            part, all_of_it = getattr(self, name), getattr(self, whole)
            checks.within(name, part, f"at most {whole} = {all_of_it}", np.asarray(part <= all_of_it))
        if self.number not in ("fixed", "random"):
            raise InvalidInput(f"number must be 'fixed' or 'random', but got {self.number!r}.")
        if self.sides not in ("both", "one"):
            raise InvalidInput(f"sides must be 'both' or 'one', but got {self.sides!r}.")
        checks.within("of_alpha", self.of_alpha, "in (0, 1]", np.asarray(0 < self.of_alpha <= 1))


def all_guesses(tally: Tally) -> Guesses:
    """Every bit is guessed."""
    tp, tn, fp, fn = _cells(tally)
    return Guesses(tp + tn, tp + tn + fp + fn, tp + tn + fp + fn)


def positive_guesses(tally: Tally) -> Guesses:
    """Only guesses of b = 1 count; how many there are is up to the outputs.

    >>> positive_guesses(Tally(tp=31, tn=996, fp=5, fn=968)).n_guesses
    36
    """
    tp, tn, fp, fn = _cells(tally)
    return Guesses(tp, tp + fp, tp + tn + fp + fn, number="random", sides="one")


def guesses_of(tally: Tally, guessed: Guessed) -> Guesses:
    """All of them, or only those of b = 1, or of b = 0; for the others see `top_guesses`.

    >>> guesses_of(Tally(tp=936, tn=93, fp=962, fn=9), "negative")
    Guesses(n_right=93, n_guesses=102, n_bits=2000, number='random', sides='one', of_alpha=1.0)
    """
    if guessed == "all":
        return all_guesses(tally)
    if guessed == "positive":
        return positive_guesses(tally)
    if guessed != "negative":
        raise InvalidInput(
            f"a tally knows of all, positive and negative guesses, but got {guessed!r}. Use top_guesses."
        )
    return positive_guesses(Tally(tp=tally.tn, tn=tally.tp, fp=tally.fn, fn=tally.fp))


def top_guesses(
    scores: ArrayLike, bits: ArrayLike, *, n_guesses: int, threshold: float, sides: Sides = "both", seed: int = 0
) -> Guesses:
    """The `n_guesses` bits of which the scores are surest; `n_guesses` and `threshold` fixed on other models.

    With both sides, those with the largest |score − threshold|, guessed 1 iff score ≥ threshold. With one side, those
    with the largest scores, all guessed 1. Equal scores are taken in several orders drawn from the seed, and the
    fewest right guesses count.
    """
    right = surest_right(scores, bits, threshold=threshold, sides=sides, seed=seed)
    r, most = int(checks.one("n_guesses", checks.counts("n_guesses", n_guesses))), len(right) - 1
    checks.within("n_guesses", r, f"at most the number of scores, {most}", np.asarray(r <= most))
    return Guesses(int(right[r]), r, most, sides=sides)


def surest_right(scores: ArrayLike, bits: ArrayLike, *, threshold: float, sides: Sides = "both", seed: int = 0) -> Ints:
    """How many of the r surest guesses are right, for every r from 0 on."""
    s, b = checked_pair(scores, bits)
    cut = checks.one("threshold", checks.numbers("threshold", threshold))
    return right_of_surest(s, b, cut, sides, seed)


def right_of_surest(scores: Floats, bits: Floats | Ints, threshold: float, sides: Sides, seed: int = 0) -> Ints:
    """The same for columns that have been checked: the fewest of all orders that equal guesses are taken in."""
    with np.errstate(invalid="ignore"):
        far = np.where(scores == threshold, 0.0, np.abs(scores - threshold))
    right = ((scores >= threshold) | (sides == "one")) == bits
    counted = [np.cumsum(right[order]) for order in surest_first(scores if sides == "one" else far, right, seed)]
    out: Ints = np.concatenate([[0], np.min(counted, axis=0)])
    return out


def surest_first(sure: Floats, right: Bools, seed: int) -> list[Ints]:
    """The rows by falling `sure`; if some are equal, in several orders, of which the least telling counts.

    The orders are drawn from the seed alone, of rows that were sorted before: the order in which rows are given may
    follow their bits, and changes nothing.
    """
    rows = np.lexsort((right, -sure))
    if not np.any(sure[rows[1:]] == sure[rows[:-1]]):
        return [rows]
    rng = np.random.default_rng([seed, STREAM])
    shuffled = [rows[rng.permutation(len(rows))] for _ in range(ORDERS)]
    return [each[np.argsort(-sure[each], kind="stable")] for each in shuffled]


def checked_pair(scores: ArrayLike, bits: ArrayLike) -> tuple[Floats, Floats]:
    """A score and a bit for each row."""
    s, b = checks.numbers("scores", scores), checks.numbers("bits", bits)
    if s.shape != b.shape or s.ndim != 1:
        raise InvalidInput(
            f"scores and bits must be two lists of the same length, but got shapes {s.shape} and {b.shape}."
        )
    checks.within("bits", bits, "0 or 1", (b == 0) | (b == 1))
    return s, b


def _cells(tally: Tally) -> tuple[int, int, int, int]:
    if tally.shape:
        raise InvalidInput(f"tally must be one tally, but got an array of shape {tally.shape}.")
    return int(tally.tp), int(tally.tn), int(tally.fp), int(tally.fn)
