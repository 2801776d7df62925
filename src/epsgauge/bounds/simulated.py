"""What is proven about the mean of a number by drawing it many times: how a simulated tail is rounded up."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Floats

ROUNDING = 1e-9  # of logarithms of a capital, with room
# Stakes of a wager: as shares of what is best for draws that spread as far as the mean that is held against them; and
# the largest one, as a share of the one that a draw could lose all of.
SHARES, LARGEST = (0.25, 0.5, 1.0), 0.99


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


@dataclass
class Wager:
    """Whether draws of a number between 0 and `most` have a mean below `allowed`.

    A capital of 1 is multiplied by 1 + λ (allowed − draw). If the mean is `allowed` or more, that has a mean of at most
    1, so that the capital ever reaches 1/`unsure` with a probability of at most `unsure` (Ville's inequality). It is
    shared out among stakes λ, which no draw changes; they suit `planned` draws.
    """

    allowed: float
    most: float
    unsure: float
    planned: int
    n: int = field(default=0, init=False)
    total: float = field(default=0.0, init=False)
    squares: float = field(default=0.0, init=False)
    logs: Floats = field(init=False)  # of the capital of each stake

    def __post_init__(self) -> None:
        self.logs = np.zeros(len(SHARES))

    def add(self, draws: Floats) -> None:
        self.n += len(draws)
        self.total += float(np.sum(draws))
        self.squares += float(np.sum(draws * draws))
        self.logs += np.log1p(self._stakes[:, None] * (self.allowed - draws)).sum(axis=1)

    @property
    def won(self) -> bool:
        """The mean is below, but for a chance of `unsure`, however often this is asked."""
        return float(special.logsumexp(self.logs)) - math.log(len(self.logs)) >= self._wanted * (1.0 + ROUNDING)

    @property
    def may_win(self) -> bool:
        """Whether the planned draws may well show it."""
        return self.limit(below=3.0) <= self.allowed

    def limit(self, *, below: float = 0.0) -> float:
        """About what the planned draws would show the mean to be below; or if it is so many standard errors lower."""
        mean = self.total / self.n
        variance = max(self.squares / self.n - mean * mean, 0.0)
        mean = max(mean - below * math.sqrt(variance / self.n), 0.0)
        wanted = (self._wanted + math.log(len(SHARES))) / self.planned
        stake = LARGEST / self.most if self.most > 0 else math.inf
        if variance > 0:
            stake = min(stake, math.sqrt(2.0 * wanted / variance))
        return mean + wanted / stake + 0.5 * stake * variance if stake < math.inf else mean

    @property
    def _wanted(self) -> float:
        return -math.log(self.unsure)

    @cached_property
    def _stakes(self) -> Floats:
        best = math.sqrt(2.0 * self._wanted / self.planned) / self.allowed
        return np.minimum(np.array(SHARES) * best, LARGEST / max(self.most, self.allowed))
