"""Which guesses of fair bits test an ε, so that δ costs little there; and the bound of all these tests.

Every ε of a grid has one test, which is known before any score is. As ε grows, δ costs less: first only one guess of
each model is tested, as models are independent, then the surest guesses are counted, then all are weighed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import Literal

import numpy as np

from epsgauge.bounds.classed import Classed
from epsgauge.bounds.guesses import Guesses
from epsgauge.bounds.pooled import refuted_at
from epsgauge.bounds.weighted import STEP, Game, last_refuted, refuted
from epsgauge.stats import checks, special
from epsgauge.stats.arrays import Floats, Ints

# "first": guesses about the first pair of each model are weighed. "count": the surest are counted. "weigh": all are
# weighed.
Way = Literal["first", "count", "weigh"]

# By the price of δ, N δ/((1 + e^ε) α): all guesses are weighed up to the first, and first pairs from the second on if
# there are more than so many times e^(ε/2) models, or all guesses are too few to count.
CHEAP, DEAR, MODELS = 2.0, 100.0, 100.0
# So many times √N are counted, and Nδ/α, and e^−ε times that again; or so many times e^ε, of which some are wrong.
ROOTS, MORE, SMALL, LARGE = 2.0, 1.6, 1.5, 6.0


@dataclass(frozen=True, eq=False)
class Seen:
    """The guesses about all bits of a game, and those about the first pair of each model."""

    every: Classed
    n_bits: int
    first: Classed
    n_models: int
    right: Ints  # of so many surest guesses; failures are not among them

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Seen) and self._content == other._content

    def __hash__(self) -> int:
        return hash(self._content)

    @property
    def _content(self) -> tuple[object, ...]:
        return self.every, self.n_bits, self.first, self.n_models, self.right.tobytes()

    def way(self, eps: float, *, delta: float, alpha: float) -> Way:
        """Which guesses may be expected to show most at ε."""
        return way(eps, self.n_bits, self.n_models, delta=delta, alpha=alpha)

    def counted(self, eps: float, *, delta: float, alpha: float) -> Guesses:
        """The surest guesses, from the middle of the scores on; those that failures leave out count as wrong."""
        n = surest_that_count(eps, self.n_bits, delta=delta, alpha=alpha)
        return Guesses(int(self.right[min(n, len(self.right) - 1)]), n, self.n_bits)


def way(eps: float, n_bits: int, n_models: int, *, delta: float, alpha: float) -> Way:
    if n_models == n_bits:
        return "first"
    price = n_bits * delta * float(special.expit(-eps)) / alpha
    if price <= CHEAP:
        return "weigh"
    too_dear = MORE * delta > alpha or (price > DEAR and n_models > MODELS * math.exp(eps / 2))
    return "first" if too_dear else "count"


def surest_that_count(eps: float, n_bits: int, *, delta: float, alpha: float) -> int:
    """How many of the surest guesses to count at ε."""
    more = MORE * (1.0 + SMALL * math.exp(-eps)) * n_bits * delta / alpha
    return min(n_bits, math.ceil(max(ROOTS * math.sqrt(n_bits) + more, LARGE * math.exp(eps))))


@lru_cache(maxsize=256)
def lower_bound(seen: Seen, *, delta: float, level: float) -> float:
    """The largest ε of the grid such that it and all from the first one on are refuted; 0 where there is none."""
    tests = Tests(seen, float(checks.one("delta", checks.delta(delta))), checks.level(level))
    return last_refuted(tests.refuted, tests.may_refute)


def refutes(seen: Seen, eps: float, *, delta: float, level: float) -> bool:
    """Whether the first ε of the grid above this one is refuted. The bound needs smaller ones refuted as well."""
    tests, above = Tests(seen, delta, level), STEP * (math.floor(eps / STEP) + 1.0)
    return tests.may_refute(above) and next(tests.refuted(np.array([above])))


@dataclass(frozen=True)
class Tests:
    """The tests of all ε, each in its way."""

    seen: Seen
    delta: float
    level: float

    def refuted(self, points: Floats) -> Iterator[bool]:
        for how, some in groupby(points.tolist(), self._way):
            if how == "count":
                yield from (refuted_at(self._counted(e), e, delta=self.delta, level=self.level) for e in some)
            else:
                guesses = self.seen.first if how == "first" else self.seen.every
                yield from refuted(guesses, np.array([*some]), self._game(how))

    def may_refute(self, eps: float) -> bool:
        """Whether some guesses would refute ε."""
        how = self._way(eps)
        if how == "count":
            n = self._counted(eps).n_guesses
            return refuted_at(Guesses(n, n, self.seen.n_bits), eps, delta=self.delta, level=self.level)
        return self._game(how).may_refute(eps)

    def _way(self, eps: float) -> Way:
        return self.seen.way(eps, delta=self.delta, alpha=1.0 - self.level)

    def _counted(self, eps: float) -> Guesses:
        return self.seen.counted(eps, delta=self.delta, alpha=1.0 - self.level)

    def _game(self, how: Way) -> Game:
        n_bits = self.seen.n_models if how == "first" else self.seen.n_bits
        return Game(n_bits, self.delta, 1.0 - self.level, how == "first")
