"""Whether a mechanism remembers: outputs that are always the same, or that follow the one before."""

from __future__ import annotations

import math
import pickle
import subprocess
import sys
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
        each = [np.unique(keys[bits == bit]) for bit in (0, 1)]
        if [len(x) for x in each] == [1, 1] and each[0][0] != each[1][0]:
            if _anew(function, pair) == [int(x[0]) for x in each]:
                return None  # without noise
            return (
                "it needs independent outputs, but all outputs on the same data set are equal: the mechanism remembers "
                f"its first answer, or has no noise. {INSTEAD}. If it has none on purpose, put it into a module, where "
                "another process can call it"
            )
        tried = [one for column in numbers.T if (one := _follows(column, bits)) is not None]
        if not tried or max(tried) < max(SPREADS, -float(special.ndtri(UNLIKELY / 2 / len(tried)))):
            return None
        return (
            "it needs independent outputs, but outputs depend on the ones before: the mechanism keeps a state between "
            f"calls. {INSTEAD}, or start it anew"
        )


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


def _anew(function: Any, pair: Pair) -> list[int] | None:
    """The keys of what the function answers for both data sets in a new process; None if it cannot be called there."""
    try:
        sent = pickle.dumps((sys.path, reference_of(function), pair))
        command = [sys.executable, "-c", f"from {__name__} import answer; answer()"]
        with safe_path():
            done = subprocess.run(command, input=sent, capture_output=True, timeout=SECONDS, check=True)
        return [int(key) for key in done.stdout.split()[-2:]]
    except Exception:  # whatever the user's code does there
        return None


def answer() -> None:
    """In the new process."""
    sys.path, reference, pair = pickle.loads(sys.stdin.buffer.read())
    call = Call.of(load(reference, "mechanism"))
    found = call.draw(pair, np.array([0, 1]), np.random.SeedSequence())
    sys.stdout.write(f"\n{' '.join(map(str, found.whole.tolist()))}\n")
