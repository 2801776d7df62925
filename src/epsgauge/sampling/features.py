"""What is seen of an output: its places, what they add up to, values that come again, and last digits of floats."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsgauge.sampling.outputs import NOTHING, Keys, Outputs
from epsgauge.stats.arrays import Bools, Floats, Ints

MOST = 16  # places that are looked at one by one
PAIRS = 5  # up to so many, differences of any two are looked at too
COMMON = 4  # a value that was seen so often is one that comes again
EXPONENT, FRACTION = 0x7FF, 52


@dataclass(frozen=True, eq=False)
class Places:
    """The places of an output that are looked at, and those that are looked at as floats."""

    width: int
    some: Ints
    ragged: bool

    @classmethod
    def of(cls, outputs: Outputs, bits: Ints) -> Places:
        """Of many places those whose numbers differ most between both data sets."""
        ragged = bool(np.any(outputs.keys == NOTHING))
        if outputs.width <= MOST:
            return cls(outputs.width, np.arange(outputs.width), ragged)
        most = np.sort(np.argsort(-_differences(outputs.numbers, bits))[:MOST])
        return cls(outputs.width, most, ragged)

    def values(self, outputs: Outputs) -> Floats:
        """The numbers of these places, and what all places add up to; no infinite ones."""
        wide = outputs.with_width(self.width)
        numbers = np.clip(wide.numbers, -1e300, 1e300)
        some = numbers[:, self.some]
        columns = [some]
        if self.ragged:
            columns.append(np.sum(wide.keys != NOTHING, axis=1)[:, None])
        if self.width > 1:
            columns += [np.isnan(numbers).sum(axis=1)[:, None], _repeats(wide.keys)[:, None], _extremes(numbers)]
        if 1 < self.width <= PAIRS:
            columns += [(some[:, i] - some[:, j])[:, None] for i in range(self.width) for j in range(i)]
        return np.concatenate(columns, axis=1)

    def keys(self, outputs: Outputs) -> Keys:
        """Of these places, and of the output as a whole."""
        wide = outputs.with_width(self.width)
        return np.concatenate([wide.keys[:, self.some], outputs.whole[:, None]], axis=1)

    def digits(self, outputs: Outputs) -> Floats:
        """How floats are stored: where their last digit stands, and what their last digits are."""
        return digits(outputs.with_width(self.width).numbers[:, self.some[:PAIRS]])


@dataclass(frozen=True, eq=False)
class Atoms:
    """Values that come again, each with its log-odds; those of a continuous output hardly do."""

    keys: list[Keys]  # of each column, ascending
    log_odds: list[Floats]

    @classmethod
    def of(cls, keys: Keys, bits: Ints) -> Atoms:
        found = [_counted(column, bits) for column in keys.T]
        return cls([one[0] for one in found], [one[1] for one in found])

    def values(self, keys: Keys) -> Floats:
        """0 for a value that is not known."""
        out = np.zeros(keys.shape)
        for c, (known, log_odds) in enumerate(zip(self.keys, self.log_odds, strict=True)):
            if len(known):
                at = np.minimum(np.searchsorted(known, keys[:, c]), len(known) - 1)
                out[:, c] = np.where(known[at] == keys[:, c], log_odds[at], 0.0)
        return out

    @classmethod
    def across(cls, keys: Keys, bits: Ints) -> Floats:
        """Log-odds of each row by the other half of the rows: a row does not say its own bit."""
        half: Bools = np.arange(len(bits)) % 2 == 0
        out = np.empty(keys.shape)
        for one, other in ((half, ~half), (~half, half)):
            out[one] = cls.of(keys[other], bits[other]).values(keys[one])
        return out


def digits(numbers: Floats) -> Floats:
    """Of each number: the exponent of its last bit that is set, its own exponent, its last eight bits, its sign.

    A sum has no finer last digit than its coarser term: the last bit tells which terms it cannot have had (Mironov
    2012). What is no number, and 0, has NaN.
    """
    stored = np.ascontiguousarray(numbers).view(np.uint64)
    exponent = ((stored >> np.uint64(FRACTION)) & np.uint64(EXPONENT)).astype(np.int64)
    fraction = (stored & np.uint64(2**FRACTION - 1)) | np.uint64(2**FRACTION)
    lowest = fraction & (~fraction + np.uint64(1))
    trailing = np.round(np.log2(lowest.astype(np.float64)))
    odd = ~np.isfinite(numbers) | (numbers == 0)
    last = (fraction & np.uint64(0xFF)).astype(np.float64)
    sign = (stored >> np.uint64(63)).astype(np.float64)
    own = (exponent - 1023).astype(np.float64)
    columns = [np.where(odd, np.nan, column) for column in (own - FRACTION + trailing, trailing, own, last)]
    return np.concatenate([*columns, sign], axis=1)


def _counted(column: Keys, bits: Ints) -> tuple[Keys, Floats]:
    known, back, n = np.unique(column, return_inverse=True, return_counts=True)
    ones = np.bincount(back.ravel(), weights=bits, minlength=len(known))
    again = n >= COMMON
    out: Floats = np.log((ones + 0.5) / (n - ones + 0.5))
    return known[again], out[again]


def _differences(numbers: Floats, bits: Ints) -> Floats:
    """How far apart both data sets are in each place: means and spreads, and how often there is no number."""
    none = np.isnan(numbers)
    clipped = np.where(none, 0.0, np.clip(numbers, -1e100, 1e100))
    one, zero = bits == 1, bits == 0
    spread = clipped.std(axis=0) + 1e-300
    means = np.abs(clipped[one].mean(axis=0) - clipped[zero].mean(axis=0)) / spread
    spreads = np.abs(clipped[one].std(axis=0) - clipped[zero].std(axis=0)) / spread
    missing = np.abs(none[one].mean(axis=0) - none[zero].mean(axis=0))
    out: Floats = means + spreads + missing
    return out


def _repeats(keys: Keys) -> Floats:
    """How many places hold what another one holds too."""
    ordered = np.sort(keys, axis=1)
    out: Floats = np.sum(ordered[:, 1:] == ordered[:, :-1], axis=1).astype(np.float64)
    return out


def _extremes(numbers: Floats) -> Floats:
    """Sum, least, largest, and where these are."""
    none = np.isnan(numbers)
    low, high = np.where(none, np.inf, numbers), np.where(none, -np.inf, numbers)
    total = np.where(none, 0.0, numbers).sum(axis=1)
    columns = [total, low.min(axis=1), high.max(axis=1), low.argmin(axis=1), high.argmax(axis=1)]
    out: Floats = np.clip(np.stack(columns, axis=1), -1e300, 1e300)
    return out
