"""Counts: the four cells of many tallies, flat; expected counts, which planning uses, need not be whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsgauge.stats.arrays import Floats
from epsgauge.stats.tally import CELLS, Tally


@dataclass(frozen=True)
class Counts:
    """One entry for each tally."""

    tp: Floats
    tn: Floats
    fp: Floats
    fn: Floats

    @classmethod
    def of(cls, tally: Tally) -> Counts:
        """Of one tally, or of an array of them."""
        return cls(*(np.atleast_1d(getattr(tally, c)).ravel().astype(np.float64) for c in CELLS))

    def __len__(self) -> int:
        return len(self.tp)

    @property
    def fnr(self) -> tuple[Floats, Floats]:
        """Misses and trials with b = 1."""
        return self.fn, self.fn + self.tp

    @property
    def fpr(self) -> tuple[Floats, Floats]:
        """False alarms and trials with b = 0."""
        return self.fp, self.fp + self.tn

    def whole(self) -> Tally:
        return Tally(**{c: getattr(self, c).astype(np.int64) for c in CELLS})

    def tallies(self) -> list[Tally]:
        return [Tally(**{c: int(getattr(self, c)[i]) for c in CELLS}) for i in range(len(self))]
