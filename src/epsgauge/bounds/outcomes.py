"""Sets of outcomes (fn, fp) that have, with an outcome, all with no more errors; and how probable they are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Floats, Ints

# The probability of each of the outcomes that a window leaves out, on either side.
LEFT_OUT = 1e-17
# Points at once, so that the temporaries stay small.
CHUNK = 256


def window(n: int, low: float, high: float) -> Ints:
    """Counts of n trials outside of which there is at most LEFT_OUT on either side, for each rate from low to high.

    Bernstein: a count exceeds its mean by u with at most exp(−u²/(2 variance + 2u/3)).
    """
    exponent = -np.log(LEFT_OUT)

    def reach(rate: float) -> float:
        third = exponent / 3.0
        return float(third + np.sqrt(third * third + 2.0 * exponent * n * rate * (1.0 - rate)))

    # The variance can be larger inside; but a smaller rate has a smaller count, so the ends are enough.
    first, last = int(np.floor(n * low - reach(low))), int(np.ceil(n * high + reach(high)))
    return np.arange(max(0, first), min(n, last) + 1)


@dataclass(frozen=True)
class DownSet:
    """All (fn, fp) with fn in `rows` and fp ≤ ends; `ends` falls, and is cols[0] − 1 where there is none.

    What lies outside the windows has at most 4 LEFT_OUT and is not counted here.
    """

    n1: int
    n0: int
    rows: Ints
    cols: Ints
    ends: Ints

    @property
    def empty(self) -> bool:
        return bool(self.ends[0] < self.cols[0])

    def probability(self, fnr: Floats, fpr: Floats) -> Floats:
        """Of fn ~ Binomial(n1, fnr) and fp ~ Binomial(n0, fpr) to be in the set, at each of many points."""
        out = np.zeros(len(fnr))
        if self.empty:
            return out
        for start in range(0, len(fnr), CHUNK):
            part = slice(start, start + CHUNK)
            below = np.cumsum(self._cols.mass(fpr[part]), axis=1)
            out[part] = np.einsum("ij,ij->i", self._rows.mass(fnr[part]), below[:, self._last])
        return out

    def slopes(self, fnr: Floats, fpr: Floats) -> Floats:
        """The probability and its derivatives in fnr and in fpr, as three rows; 0 < fnr, fpr < 1."""
        out = np.zeros((3, len(fnr)))
        if self.empty:
            return out
        for start in range(0, len(fnr), CHUNK):
            part = slice(start, start + CHUNK)
            x, y = fnr[part, None], fpr[part, None]
            rows, cols = self._rows.mass(fnr[part]), self._cols.mass(fpr[part])
            below = np.cumsum(cols, axis=1)[:, self._last]
            turned = np.cumsum(cols * ((self._cols.k - self.n0 * y) / (y * (1.0 - y))), axis=1)[:, self._last]
            out[0, part] = np.einsum("ij,ij->i", rows, below)
            out[1, part] = np.einsum("ij,ij->i", rows * ((self._rows.k - self.n1 * x) / (x * (1.0 - x))), below)
            out[2, part] = np.einsum("ij,ij->i", rows, turned)
        return out

    @cached_property
    def _used(self) -> int:
        return int(np.count_nonzero(self.ends >= self.cols[0]))

    @cached_property
    def _last(self) -> Ints:
        out: Ints = self.ends[: self._used] - self.cols[0]
        return out

    @cached_property
    def _rows(self) -> _Counts:
        return _Counts.of(self.n1, self.rows[: self._used])

    @cached_property
    def _cols(self) -> _Counts:
        return _Counts.of(self.n0, self.cols[: self._last[0] + 1])


@dataclass(frozen=True)
class _Counts:
    """Some counts of n trials, with the logarithms of their binomial coefficients."""

    n: int
    k: Floats
    log_ways: Floats

    @classmethod
    def of(cls, n: int, counts: Ints) -> _Counts:
        k = counts.astype(np.float64)
        ways = special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0)
        return cls(n, k, ways)

    def mass(self, rate: Floats) -> Floats:
        """Probability of each count, one row for each rate; a rate of 0 or 1 is moved by less than it is worth."""
        rate = np.clip(rate, 1e-300, 1.0 - 2.0**-53)[:, None]
        none = np.log1p(-rate)
        out: Floats = np.exp(self.log_ways + self.k * (np.log(rate) - none) + self.n * none)
        return out
