"""A lower bound of ε that holds at every moment, from bits that were foretold: a bet on each, as large as its odds are.

Several forecasts say how likely each bit is 1 before it is seen. If (ε, δ)-DP holds, the wealth of whoever bets by them
against it does not grow on average, and by Ville's inequality it ever reaches 1/α with a probability of at most α
(docs/guarantees.md has the proof).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from epsgauge.stats import brent, checks
from epsgauge.stats.arrays import Floats, Ints

STEP = 0.02  # of ε, upwards from a claim that is refuted
NEAR = (0.001, 0.002, 0.005, 0.01)  # the first points above a claim
BELOW, PARTS = 0.05, 20  # of α for a bound below a claim that is not refuted, and the points that are tried there
FRACTIONS = (1.0, 0.5, 0.2)  # of the best stake, for forecasts that are surer than they should be
CAPS = (1.0, 0.3, 0.1, 0.03)  # of the largest stake: δ costs less where stakes are smaller
SURE = 30.0  # log-odds of a forecast that cannot be surer


@dataclass(frozen=True, eq=False)
class Foretold:
    """Log-odds of b = 1 for each sample before its bit was seen, by several forecasts, and then the bits."""

    log_odds: Floats  # sample by forecast
    bits: Ints
    weights: Floats  # of the forecasts, together 1; fixed beforehand
    ends: Ints  # how many samples there were at each look
    claimed: float = 0.0  # the ε that is tried first, fixed beforehand

    @cached_property
    def peaks(self) -> dict[tuple[float, float], float]:
        """The highest log of the wealth at any look, by ε and δ, as far as it is known: each level asks for it."""
        return {}

    def peak(self, eps: float, delta: float) -> float:
        if (eps, delta) not in self.peaks:
            self.peaks[eps, delta] = float(np.max(log_wealth(self, eps, delta), initial=-np.inf))
        return self.peaks[eps, delta]


@dataclass(frozen=True)
class Stake:
    """How much of the best stake is bet, at most how much, and on which guesses."""

    fraction: float
    cap: float
    ones: bool = True
    zeros: bool = True

    @property
    def n_sides(self) -> int:
        return self.ones + self.zeros


def stakes(delta: float) -> tuple[Stake, ...]:
    """Without δ there is no need of small ones, or of one side alone."""
    whole = [Stake(fraction, 1.0) for fraction in FRACTIONS]
    if not delta:
        return tuple(whole)
    capped = [Stake(1.0, cap) for cap in CAPS[1:]]
    sides = [Stake(1.0, cap, ones=one, zeros=not one) for cap in CAPS for one in (True, False)]
    return (*whole, *capped, *sides)


class Wealth:
    """Of all forecasts and stakes together, against one ε, followed from look to look."""

    def __init__(self, weights: Floats, eps: float, delta: float) -> None:
        self.eps, self.delta, self.stakes = eps, delta, stakes(delta)
        self.logs = np.log(weights)[None, :] - math.log(len(self.stakes)) + np.zeros((len(self.stakes), 1))

    def add(self, log_odds: Floats, bits: Ints, ends: Ints) -> Floats:
        """The log of the wealth at each look at these samples, the next ones; the last look is at all of them."""
        guess, sure, shrunk = log_odds > 0, np.abs(log_odds), math.exp(-self.eps)
        right = guess == (bits == 1)[:, None]
        # What a wrong guess costs: e^ε (p − q)/q, for the chance p of the guess by the forecast and q = e^ε/(1 + e^ε),
        # grows wealth fastest. A right guess wins e^−ε times as much.
        best = -np.expm1(np.minimum(self.eps - sure, 0.0)) / (1.0 + np.exp(-sure))
        out, starts = np.full(len(ends), -np.inf), np.append(0, ends[:-1])
        for at, stake in enumerate(self.stakes):
            bet = np.minimum(stake.fraction * best, stake.cap)
            if stake.n_sides == 1:
                bet = np.where(guess == stake.ones, bet, 0.0)
            paid = math.log1p(self.delta * stake.cap * shrunk * stake.n_sides / 2)
            with np.errstate(divide="ignore"):
                gained = np.log1p(np.where(right, shrunk * bet, -bet)) - paid
            logs = self.logs[at] + np.cumsum(np.add.reduceat(gained, starts, axis=0), axis=0)
            self.logs[at] = logs[-1]
            out = np.logaddexp(out, np.logaddexp.reduce(logs, axis=1))
        return out


def log_wealth(seen: Foretold, eps: float, delta: float) -> Floats:
    """At each look."""
    if not len(seen.bits):
        return np.empty(0)
    return Wealth(seen.weights, eps, delta).add(seen.log_odds, seen.bits, seen.ends)


def wanted(level: float) -> float:
    """The log of the wealth that refutes a claim: all but a little of α is for that."""
    return -math.log((1.0 - BELOW) * (1.0 - level))


def first_above(claimed: float) -> float:
    """The ε that is refuted where a claim is."""
    return claimed + NEAR[0]


def foretold_lower_bound(seen: Foretold, *, delta: float, level: float) -> float:
    """Upwards from the claim, if it is refuted; else upwards from 0, with the rest of α. 0 where nothing is."""
    d, checked = float(checks.one("delta", checks.delta(delta))), float(checks.level(level))
    found = 0.0
    for eps in _upwards(seen.claimed):
        if seen.peak(eps, d) < wanted(checked):
            break
        found = eps
    if found or not seen.claimed:
        return found
    for eps in np.linspace(0.0, seen.claimed, PARTS + 1)[1:-1].tolist():
        if seen.peak(eps, d) < -math.log(BELOW * (1.0 - checked)):
            break
        found = eps
    return found


def foretold_at_best(n: int, *, delta: float, level: float) -> float:
    """Below which every claim would be refuted if one were sure of all of n bits, and right."""
    d, log = float(checks.one("delta", checks.delta(delta))), wanted(float(checks.level(level)))

    def surplus(eps: float) -> float:
        sure, bits = np.full((1, 1), SURE), np.ones(1, np.int64)
        wealth = Wealth(np.ones(1), eps, d)
        before = wealth.logs.copy()
        wealth.add(sure, bits, np.array([1]))
        return float(np.logaddexp.reduce((before + n * (wealth.logs - before)).ravel())) - log

    if surplus(0.0) <= 0:
        return 0.0
    return brent.root(surplus, 0.0, SURE, xtol=1e-12) if surplus(SURE) < 0 else SURE


def _upwards(claimed: float) -> Iterator[float]:
    yield from (claimed + near for near in NEAR)
    steps = 0
    while True:
        yield claimed + (steps := steps + 1) * STEP
