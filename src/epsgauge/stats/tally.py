"""Tally: the four counts of an attack's right and wrong guesses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.display import Displayed
from epsgauge.errors import InvalidInput
from epsgauge.stats import checks
from epsgauge.stats.arrays import Floats, Ints

CELLS = ("tp", "tn", "fp", "fn")


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Tally(Displayed):
    """Counts of guesses; a positive is b = 1. Arrays broadcast, and give a posterior of arrays.

    >>> Tally(tp=31, tn=996, fp=5, fn=968)
    Tally(tp=31, tn=996, fp=5, fn=968)
    """

    tp: Ints
    tn: Ints
    fp: Ints
    fn: Ints

    def __init__(self, *, tp: ArrayLike, tn: ArrayLike, fp: ArrayLike, fn: ArrayLike) -> None:
        cells = {name: checks.counts(name, value) for name, value in (("tp", tp), ("tn", tn), ("fp", fp), ("fn", fn))}
        shape = checks.broadcast(**cells)
        for name, cell in cells.items():
            full = cell if cell.shape == shape else np.array(np.broadcast_to(cell, shape))
            full.flags.writeable = False
            object.__setattr__(self, name, full)

    @classmethod
    def from_guesses(cls, bits: ArrayLike, guesses: ArrayLike) -> Tally:
        """Count bits (what was true) against guesses (what the attack said), both 0 or 1.

        >>> Tally.from_guesses([1, 1, 0, 0], [1, 0, 0, 0])
        Tally(tp=1, tn=2, fp=0, fn=1)
        """
        b, g = checks.numbers("bits", bits), checks.numbers("guesses", guesses)
        if b.shape != g.shape or b.ndim != 1:
            raise InvalidInput(
                f"bits and guesses must be two lists of the same length, but got shapes {b.shape} and {g.shape}."
            )
        checks.within("bits", bits, "0 or 1", (b == 0) | (b == 1))
        checks.within("guesses", guesses, "0 or 1", (g == 0) | (g == 1))
        said = {(i, j): int(np.sum((b == i) & (g == j))) for i in (0, 1) for j in (0, 1)}
        return cls(tp=said[1, 1], tn=said[0, 0], fp=said[0, 1], fn=said[1, 0])

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tp.shape

    @property
    def n_positive(self) -> Ints:
        """How many samples had b = 1."""
        return self.tp + self.fn

    @property
    def n_negative(self) -> Ints:
        return self.tn + self.fp

    @property
    def n_samples(self) -> Ints:
        return self.n_positive + self.n_negative

    @property
    def fnr(self) -> Floats:
        """Share of wrong guesses among b = 1; NaN without any."""
        return _share(self.fn, self.n_positive)

    @property
    def fpr(self) -> Floats:
        return _share(self.fp, self.n_negative)

    def flipped(self) -> Tally:
        """The tally of the attack that says the opposite."""
        return Tally(tp=self.fn, tn=self.fp, fp=self.tn, fn=self.tp)

    def __getitem__(self, index: Any) -> Tally:
        return Tally(tp=self.tp[index], tn=self.tn[index], fp=self.fp[index], fn=self.fn[index])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tally):
            return NotImplemented
        return all(np.array_equal(getattr(self, c), getattr(other, c)) for c in CELLS)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, c).tobytes() for c in CELLS))

    def __repr__(self) -> str:
        if self.shape:
            return f"Tally(<{' × '.join(map(str, self.shape))} tallies>)"
        return f"Tally(tp={self.tp}, tn={self.tn}, fp={self.fp}, fn={self.fn})"


def _share(part: Ints, whole: Ints) -> Floats:
    with np.errstate(invalid="ignore"):
        return np.true_divide(part, whole)
