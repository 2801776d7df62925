"""An upper limit for the mean of a number that is drawn many times: what a simulated tail is rounded up to."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from epsgauge.stats.arrays import Floats


@dataclass
class Simulated:
    """Draws of a number between 0 and `most`; its limits are too low with a chance of `unsure` at most, each."""

    most: float
    unsure: float
    n: int = field(default=0, init=False)
    total: float = field(default=0.0, init=False)
    squares: float = field(default=0.0, init=False)

    def add(self, draws: Floats) -> None:
        self.n += len(draws)
        self.total += float(np.sum(draws))
        self.squares += float(np.sum(draws * draws))

    @property
    def mean(self) -> float:
        return self.total / self.n

    @property
    def deviation(self) -> float:
        """The standard error of the mean."""
        return math.sqrt(max(self.squares / self.n - self.mean**2, 0.0) / self.n)

    @property
    def at_most(self) -> float:
        """The lower of two limits, each of which is too low with half the chance.

        Chernoff's, as the variance is at most `most` times the mean, and the empirical Bernstein limit of Maurer and
        Pontil (2009, Theorem 4).
        """
        return self._limit(self.mean, self.n)

    def may_be_below(self, allowed: float, n: int) -> bool:
        """Whether the limit after n draws in all, two or more, may well be at most this."""
        return self._limit(max(self.mean - 3.0 * self.deviation, 0.0), n) <= allowed

    def _limit(self, mean: float, n: int) -> float:
        room = self.most * math.log(2.0 / self.unsure) / n
        chernoff = mean + room + math.sqrt(room * room + 2.0 * mean * room)
        log = math.log(4.0 / self.unsure)
        spread = math.sqrt(2.0 * log / (n - 1) * self.n) * self.deviation
        return min(chernoff, mean + spread + 7.0 * self.most * log / (3.0 * (n - 1)))
