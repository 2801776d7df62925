"""Whether a mechanism remembers: outputs that are always near to few values, or that follow ones before."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsgauge.processes import safe_path
from epsgauge.references import load, reference_of
from epsgauge.sampling.calls import Call
from epsgauge.sampling.neighbours import Pair
from epsgauge.sampling.outputs import Keys, Outputs
from epsgauge.stats import special
from epsgauge.stats.arrays import Floats, Ints

UNLIKELY = 1e-4  # independent outputs are doubted in one game of ten thousand at most
SPREADS = 6.0  # by which the agreement of outputs with the ones before may be off in any case
ENOUGH = 400  # outputs; of a game that ends with fewer, more are drawn
FEWEST, SHARE = 25, 0.1  # outputs of either data set, and of all those on either side of their middle
MOST, PLACES = 100_000, 16  # outputs and numbers of each that are kept
EACH, FAR = 20, 10.0  # outputs for each heap at least, and how much wider gaps between heaps are than those within
LAGS = 16  # calls after which an output may come again
ANEW = np.array([1, 0] * 10)  # calls of a new process, in another order than those before a game
SECONDS = 60.0
INSTEAD = "Let it draw new noise in every call"


class Series:
    """Outputs in the order in which they were made."""

    def __init__(self) -> None:
        self._numbers = list[Floats]()
        self._keys = list[Keys]()
        self._bits = list[Ints]()

    def __len__(self) -> int:
        return sum(map(len, self._bits))

    def add(self, outputs: Outputs, bits: Ints) -> None:
        if len(self) < MOST:
            order = np.arange(len(bits)) if outputs.order is None else outputs.order
            self._numbers.append(outputs.with_width(PLACES).numbers[order])
            self._keys.append(outputs.whole[order])
            self._bits.append(bits[order])

    def dependent(self, function: Any, pair: Pair) -> str | None:
        """Why outputs are hardly independent of each other; None where they may be."""
        keys, bits, numbers = np.concatenate(self._keys), np.concatenate(self._bits), np.concatenate(self._numbers)
        names, whole = np.unique(keys, return_inverse=True)
        columns = [whole.ravel().astype(np.float64), *(column for column in numbers.T if np.isfinite(column).all())]
        heaps = [_heaps(column, bits) for column in columns]
        if any(heaps) and not _as_anew(function, pair, names, numbers, heaps):
            n = max(len(each.bit) for each in heaps if each)
            many = "all outputs on the same data set are equal"
            if not n == len(names) == 2:
                many = f"all outputs are at one of {n} values, or near it, and each value is that of one data set alone"
            return (
                f"it needs independent outputs, but {many}: the mechanism remembers its first answer"
                f"{'s' * (n > 2)}, or has {'no' if n == len(names) else 'hardly any'} noise. {INSTEAD}. If it has that "
                "little on purpose, put it into a module, where another process can call it"
            )
        tried = [one for column in numbers.T if (one := _follows(column, bits)) is not None]
        follows = tried and max(tried) >= max(SPREADS, -float(special.ndtri(UNLIKELY / 4 / len(tried))))
        own = [column[bits == bit] for column in numbers.T for bit in (0, 1)]
        if not follows and min(map(_returns, own)) * len(own) >= UNLIKELY / 2:
            return None
        return (
            "it needs independent outputs, but outputs depend on the ones before: the mechanism keeps a state between "
            f"calls. {INSTEAD}, or start it anew"
        )


@dataclass(frozen=True)
class Heaps:
    """Few values with nothing near them, each of one data set."""

    low: Floats
    high: Floats
    bit: Ints
    within: float  # the widest gap between neighbours

    def has(self, values: Floats, bit: int) -> Any:
        own = self.bit == bit
        near = (values[:, None] >= self.low[own] - self.within) & (values[:, None] <= self.high[own] + self.within)
        return near.any(axis=1)


def _heaps(column: Floats, bits: Ints) -> Heaps | None:
    """How outputs fall apart into few heaps of one data set each, which continuous noise does not do.

    Discrete noise does, and is left alone: more than two heaps count if they are not evenly spaced.

    Under (ε, 0)-DP the bits of outputs are independent given these, and each is guessed rightly with at most
    p = e^ε/(1 + e^ε). So one grouping into k heaps has probability 2^k p^n at most: 2e-8 for n = 400 and ε = 2.5.
    """
    order = np.argsort(column, kind="stable")
    values, bits = column[order], bits[order]
    gaps = np.diff(values)
    widest = np.sort(gaps)[::-1][: len(values) // EACH]
    for k in np.flatnonzero(widest[:-1] > FAR * widest[1:]):
        starts = np.append(0, np.flatnonzero(gaps >= widest[k]) + 1)
        sizes, ones = np.diff(starts, append=len(values)), np.add.reduceat(bits, starts)
        if np.all((ones == 0) | (ones == sizes)) and (k == 0 or not _evenly(values[starts])):
            return Heaps(values[starts], values[starts + sizes - 1], bits[starts], float(widest[k + 1]))
    return None


def _evenly(values: Floats) -> bool:
    """Whether values are multiples of a number, as those of discrete noise are."""
    steps = np.diff(values) / np.diff(values).min()
    return bool(np.all(np.abs(steps - np.round(steps)) < 1e-6 * steps))


def _as_anew(function: Any, pair: Pair, names: Keys, numbers: Floats, heaps: list[Heaps | None]) -> bool:
    """Whether a new process gives outputs in the same heaps."""
    found = _anew(function, pair)
    if found is None:
        return False
    keys, new = found
    known = np.searchsorted(names, keys)
    whole = np.where(names[np.minimum(known, len(names) - 1)] == keys, known, -1.0)
    columns = [whole, *(column for old, column in zip(numbers.T, new.T, strict=True) if np.isfinite(old).all())]
    pairs = [(column, each) for column, each in zip(columns, heaps, strict=True) if each is not None]
    return all(each.has(column[bit == ANEW], bit).mean() >= 0.5 for column, each in pairs for bit in (0, 1))


def _returns(own: Floats) -> float:
    """The chance, times the lags tried, that so many outputs are on the same side as one some calls before.

    Given how many of 2 m outputs are above, b of m pairs are mixed with m!/(a! b! c!) 2^b / C(2m, above), where a and c
    pairs are above and below: outputs that are independent may come in any order.
    """
    middle = np.median(own[np.isfinite(own)]) if np.isfinite(own).any() else 0.0
    above = max((own > middle, own >= middle), key=lambda x: -abs(float(np.mean(x)) - 0.5))
    chances = [1.0]
    for lag in range(1, min(LAGS, len(own) // 2) + 1):
        first = np.flatnonzero(np.arange(len(own) - lag) % (2 * lag) < lag)
        chances.append(few_mixed(above[first], above[first + lag]))
    return min(chances) * LAGS


def few_mixed(one: Any, other: Any) -> float:
    """The probability of so few mixed pairs, or fewer."""
    m, n = len(one), int(one.sum() + other.sum())
    if (mixed := int((one != other).sum())) * 2 * m >= n * (2 * m - n):  # as many as are expected
        return 1.0
    b = np.arange(n % 2, mixed + 1, 2)
    a = (n - b) / 2
    logs = b * math.log(2) - sum(special.gammaln(x + 1) for x in (a, b, m - a - b, 2.0 * m))
    logs = logs + special.gammaln(m + 1.0) + special.gammaln(n + 1.0) + special.gammaln(2.0 * m - n + 1)
    return float(np.exp(logs[a + b <= m]).sum())


def _follows(column: Floats, bits: Ints) -> float | None:
    """By how many spreads outputs are on the same side as the one before, or on the other, too often.

    A side is that of a cut near the middle of what has the same bit. None if none is near it.
    """
    side = np.zeros(len(column))
    for bit in (0, 1):
        own = column[bits == bit]
        finite = own[np.isfinite(own)]
        if len(finite) < FEWEST:
            return None
        middle = np.median(finite)
        above = max((own > middle, own >= middle), key=lambda x: -abs(float(np.mean(x)) - 0.5))
        side[bits == bit] = above - above.mean()
    if (variance := float(np.mean(side**2))) < SHARE * (1 - SHARE):
        return None
    n = len(side) - 1
    return abs(float(side[1:] @ side[:-1]) + variance) / (variance * math.sqrt(n))


def _anew(function: Any, pair: Pair) -> tuple[Keys, Floats] | None:
    """What the function answers in a new process, as keys and numbers; None if it cannot be called there."""
    try:
        sent = pickle.dumps((sys.path, reference_of(function), pair))
        command = [sys.executable, "-c", f"from {__name__} import answer; answer()"]
        with safe_path():
            done = subprocess.run(command, input=sent, capture_output=True, timeout=SECONDS, check=True)
        found: tuple[Keys, Floats] = pickle.loads(bytes.fromhex(done.stdout.split()[-1].decode()))
        return found
    except Exception:  # whatever the user's code does there
        return None


def answer() -> None:
    """In the new process."""
    sys.path, reference, pair = pickle.loads(sys.stdin.buffer.read())
    found = Call.of(load(reference, "mechanism")).draw(pair, ANEW, np.random.SeedSequence())
    sys.stdout.write(f"\n{pickle.dumps((found.whole, found.with_width(PLACES).numbers)).hex()}\n")
