"""Lower bounds for ε from guesses of fair bits, however many a model holds and however they depend on each other.

W, the number of right guesses of a randomised response, is Binomial(r, e^ε/(1 + e^ε)), and f(v) = Pr[W ≥ v]. Under
(ε, δ)-DP the number of right guesses reaches v with at most f(v) plus a term for δ (docs/guarantees.md has the proofs).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from epsgauge.bounds.guesses import Guesses
from epsgauge.errors import InvalidInput
from epsgauge.stats import beta, checks, special
from epsgauge.stats.arrays import Floats

# "tight": the smallest there is for a fixed number of guesses. "published": that of Steinke, Nasr and Jagielski 2023,
# or "tight" where that is larger, which it is at no level above one half: theirs alone fails for some counts.
Term = Literal["published", "tight"]

# Where the outputs decide how many guesses there are, this share of 1 − level is set aside for δ.
SHARE = 1 / 20
# Relative rounding errors of f and of the δ term stay below this, and below UNIT a guess for large counts.
ROUNDING = 1e-9
UNIT = 4e-16


@dataclass(frozen=True)
class PooledBound:
    """A one-sided lower bound for ε at `delta`, guaranteed at `level`, and what it would be at δ = 0."""

    eps: float
    eps_without_delta: float
    guesses: Guesses
    delta: float
    level: float
    term: Term

    @property
    def delta_costs(self) -> float:
        """How much of ε the δ term takes: it grows with the number of bits, guessed or not."""
        return self.eps_without_delta - self.eps


def pooled_bound(guesses: Guesses, *, delta: float, level: float, term: Term = "tight") -> PooledBound:
    """The largest ε at `delta` that the guesses refute, one-sided at `level`; rounded down, 0 if they refute none.

    All fair bits count for δ, also those that were not guessed: the guesses may have been picked for bits on which the
    mechanism failed, and each bit fails with δ.

    >>> round(pooled_bound(Guesses(1200, 2000, 2000), delta=1e-5, level=0.95).eps, 3)
    0.329
    >>> bound = pooled_bound(Guesses(31, 36, 2000, "random", "one"), delta=1e-5, level=0.95)
    >>> round(bound.eps, 3), round(bound.delta_costs, 3)
    (0.984, 0.01)
    """
    d, left = checks.one("delta", checks.delta(delta)), guesses.level(level)
    if term not in ("published", "tight"):
        raise InvalidInput(f"term must be 'published' or 'tight', but got {term!r}.")
    with_delta = _largest_refuted(
        lambda eps: p_value(guesses, eps=eps, delta=d, level=left, term=term), guesses, 1.0 - left
    )
    without = with_delta if d == 0 else _largest_refuted(lambda eps: _Tail(guesses, eps).f, guesses, 1.0 - left)
    return PooledBound(with_delta, without, guesses, d, level, term)


def refuted_at(guesses: Guesses, eps: float, *, delta: float, level: float) -> bool:
    """Whether (ε, δ)-DP is refuted, one-sided at `level`, with rounding included."""
    if 2 * guesses.n_right <= guesses.n_guesses:
        return False
    left = guesses.level(level)
    return p_value(guesses, eps=eps, delta=delta, level=left) <= _limit(guesses, 1.0 - left)


def p_value(guesses: Guesses, *, eps: float, delta: float, level: float, term: Term = "tight") -> float:
    """At most so likely are so many right guesses under (eps, delta)-DP; for a random number of guesses, at `level`.

    For these it is below 1 − level with at most that chance, which is all that a bound at the level needs.
    """
    if guesses.n_right == 0:
        return 1.0
    tail = _Tail(guesses, eps)
    if delta == 0:
        return tail.f
    # how much of δ all bits together may use: each bit half of it for each value that is guessed
    budget = guesses.n_bits * delta * (1.0 if guesses.sides == "both" else 0.5)
    if guesses.number == "fixed":
        cost = budget * tail.tight()
    else:  # the mechanism may fail where guesses are few, so one price holds for all numbers, and few are not enough
        price = min(0.5, SHARE * (1.0 - level) / budget)
        if price < 0.5 and tail.hazard() > price:
            return 1.0
        cost = budget * price
    if term == "published":
        cost = max(cost, 2.0 * guesses.n_bits * delta * tail.steepest())
    return min(1.0, tail.f + cost)


class _Tail:
    """f(v) = Pr[W ≥ v] at one ε for v = n_right, and what can be added to it for each unit of failing mass."""

    def __init__(self, guesses: Guesses, eps: float) -> None:
        self.right, self.number, self.eps = float(guesses.n_right), float(guesses.n_guesses), eps
        self.f = float(self.at_least(self.right))

    def at_least(self, v: Floats | float) -> Floats:
        """Pr[W ≥ v], from the chance of a wrong guess, which keeps its digits at large ε."""
        inside = np.maximum(v, 1.0)
        tail = special.betaincc(self.number - inside + 1.0, inside, special.expit(-self.eps))
        out: Floats = np.where(v > 0, tail, 1.0)
        return out

    def steepest(self) -> float:
        """max over i of (f(v − i) − f(v))/i, i from 1 to v.

        f(v − i) is convex in i down to the mode of W and concave from there on, so the chord grows down to the mode
        and has one peak beyond it, which bisection finds.
        """
        mode = math.floor((self.number + 1.0) * special.expit(self.eps))
        low, high = max(1.0, self.right - mode), self.right  # the peak is in [low, high]
        while high - low > 8.0:
            i = math.floor(0.5 * (low + high))
            here, there = self.at_least(self.right - np.array([i, i + 1.0])) - self.f
            low, high = (i, high) if there * i > here * (i + 1.0) else (low, i + 1.0)
        i_left = np.arange(max(1.0, low - 8.0), min(high + 8.0, self.right) + 1.0)
        return float(np.max((self.at_least(self.right - i_left) - self.f) / i_left))

    def hazard(self) -> float:
        """f(v) / (v Pr[W = v]), which grows with ε."""
        wrong, each = self.number - self.right, math.log1p(math.exp(-self.eps))
        if self.f < 1e-290:  # the geometric series that bounds f(v) / Pr[W = v]
            return 1.0 / (self.right * (1.0 - math.exp(self.eps) * wrong / (self.right + 1.0)))
        log_mass = _log_norm(self.right, wrong + 1.0) - self.number * each - wrong * self.eps  # of v Pr[W = v]
        return math.exp(min(math.log(self.f) - log_mass, 700.0))

    def tight(self) -> float:
        """f(v)(1 − f(v)) / (v Pr[W = v]), which is never above the chance of a wrong guess."""
        return min(self.hazard() * (1.0 - self.f), float(special.expit(-self.eps)))


@lru_cache(maxsize=256)
def _log_norm(a: float, b: float) -> float:
    """−log B(a, b): the same at every ε."""
    return float(beta.log_norm(np.array([a]), np.array([b]))[0])


def _largest_refuted(p: Callable[[float], float], guesses: Guesses, alpha: float) -> float:
    """An ε with p ≤ alpha, rounding included, next to one without; 0 where 0 itself is not refuted.

    What holds (ε', δ)-DP holds (ε, δ)-DP for every ε above it, so one refuted ε refutes all below it.
    """
    if 2 * guesses.n_right <= guesses.n_guesses:
        return 0.0
    limit = _limit(guesses, alpha)
    if p(0.0) > limit:
        return 0.0
    low, high = 0.0, 1.0
    while p(high) <= limit:
        low, high = high, 2.0 * high
    while low < (middle := 0.5 * (low + high)) < high and high - low > 1e-10:
        low, high = (middle, high) if p(middle) <= limit else (low, middle)
    return low


def _limit(guesses: Guesses, alpha: float) -> float:
    return alpha / (1.0 + ROUNDING + UNIT * guesses.n_guesses)
