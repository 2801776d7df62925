"""The noise that DP-SGD can have had at most: its whole trade-off curve against the four counts.

A noise multiplier is refuted as ε and μ are by `exact`: where outcomes at least as telling as the observed one are
improbable at all rates that the curve allows. More noise allows fewer rates, so all larger multipliers are refuted too.
`docs/guarantees.md` has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Protocol

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.adjacency import checked as checked_adjacency
from epsgauge.bounds.exact import MAX_TRIALS, Quantity, inversion_of
from epsgauge.bounds.gaussian import gaussian_bound
from epsgauge.bounds.ordering import MuOrdering
from epsgauge.bounds.regions import LinesRegion
from epsgauge.bounds.subsampled import curve, least_eps
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.privacy import DISTANCE, DPSGD
from epsgauge.stats import brent, checks, rates, region
from epsgauge.stats.arrays import Floats
from epsgauge.stats.families import Mu
from epsgauge.stats.interval import Kind
from epsgauge.stats.tally import CELLS, Tally

# No smaller noise is tried, and no larger one.
SMALLEST, LARGEST = 0.05, 1e4
# The logarithm of the noise is found to this, and then raised until it is proven to be refuted.
CLOSE = 1e-5
# How far from a first guess the second is.
FIRST_STEP = 0.03
# Rounding of a closed form, and of a curve, with room.
ROUNDING = 1e-9


@dataclass(frozen=True)
class EffectiveNoise:
    """Every noise multiplier from `noise_at_most` on is refuted at `level`; infinite where none is.

    It assumes DP-SGD with Poisson sampling at the stated rate and for so many steps.
    """

    noise_multiplier: float  # as claimed
    noise_at_most: float
    refuted: bool  # whether the claim is
    level: float
    adjacency: Adjacency
    promise: Kind = "guaranteed"  # of an audit, what is left of it


def effective_noise(tally: Tally, privacy: DPSGD, *, adjacency: Adjacency, level: float) -> EffectiveNoise:
    """An upper bound for the noise multiplier, one-sided at `level`, for an attack with a direction fixed beforehand.

    For independent samples and numbers of samples fixed beforehand.

    >>> tally = Tally(tp=700, tn=950, fp=50, fn=300)
    >>> round(effective_noise(tally, DPSGD(1.0, 1.0, 1), adjacency="add-remove", level=0.95).noise_at_most, 3)
    0.491
    """
    at_most = noise_at_most(tally, privacy, adjacency=adjacency, level=level)
    claimed = float(privacy.noise_multiplier)
    return EffectiveNoise(claimed, at_most, claimed >= at_most, level, adjacency)


def noise_at_most(tally: Tally, privacy: DPSGD, *, adjacency: Adjacency, level: float) -> float:
    """The same as a number; the noise of `privacy` does not matter."""
    if tally.shape:
        raise InvalidInput(f"tally must be one tally, but got an array of shape {tally.shape}.")
    cells, alpha = tuple(int(getattr(tally, cell)) for cell in CELLS), 1.0 - checks.level(level)
    return _of_counts(cells, replace(privacy, noise_multiplier=1.0), checked_adjacency(adjacency), alpha)


def eps_of_noise(noise: float, privacy: DPSGD, *, delta: float, adjacency: Adjacency) -> float:
    """ε at δ that DP-SGD spends at least with this noise or less."""
    if math.isinf(noise):
        return 0.0
    if delta == 0:
        return math.inf
    trained = replace(privacy, noise_multiplier=noise if privacy.sample_rate == 1 else max(noise, SMALLEST))
    return least_eps(trained, delta=delta, adjacency=adjacency)


@lru_cache(maxsize=1024)
def _of_counts(cells: tuple[int, ...], privacy: DPSGD, adjacency: Adjacency, alpha: float) -> float:
    """Kept, as an audit asks for the same bound more than once."""
    tally = Tally(**dict(zip(CELLS, cells, strict=True)))
    n1, n0 = int(tally.n_positive), int(tally.n_negative)
    if not (n1 and n0):
        return math.inf
    if privacy.sample_rate == 1:  # all steps are one Gaussian mechanism, whose curve has one parameter
        mu = gaussian_bound(tally, delta=0.0, level=1.0 - alpha).mu
        return DISTANCE[adjacency] * math.sqrt(privacy.steps) / mu * (1.0 + ROUNDING) if mu > 0 else math.inf

    def allowed(noise: float, folded: bool = False) -> LinesRegion:
        if 0 < noise < math.inf:
            return curve(replace(privacy, noise_multiplier=noise), adjacency)
        hidden = 1.0 if noise else (1.0 - float(privacy.sample_rate)) ** privacy.steps  # in no batch, without noise
        return LinesRegion(np.zeros(1), np.array([1.0 - hidden]))

    refuting: _Refuting
    if max(n1, n0) > MAX_TRIALS:
        refuting = _Corner.of(tally, alpha, allowed)
    else:  # outcomes in the order of μ, which after many steps is nearly that of the noise
        refuting = inversion_of(tally, Quantity(MuOrdering, allowed, Mu()), alpha=alpha, direction="right")
    if not refuting.refutes(math.inf):
        return math.inf
    guess = by_central_limit(_mu_nearby(tally), privacy, adjacency)
    return 0.0 if refuting.refutes(0.0) else _smallest(refuting, guess)


class _Refuting(Protocol):
    """What refutes a noise multiplier, with proof, and how far it seems to be from that: refuted are 0 and less."""

    def refutes(self, theta: float, /) -> bool: ...
    def excess(self, theta: float, /) -> float: ...


@dataclass(frozen=True, eq=False)
class _Corner:
    """The corner of Clopper-Pearson's limits, each missed with α/2, where it lies below the curve."""

    x: Floats
    y: Floats
    allowed: Callable[[float], LinesRegion]

    @classmethod
    def of(cls, tally: Tally, alpha: float, allowed: Callable[[float], LinesRegion]) -> _Corner:
        def most(k: Floats, n: Floats) -> Floats:
            return rates.clopper_pearson_limits(k, n, alpha / 2)[1]

        fn, n1, fp, n0 = (np.array([float(q)]) for q in (tally.fn, tally.n_positive, tally.fp, tally.n_negative))
        return cls(most(fn, n1), most(fp, n0), allowed)

    def refutes(self, noise: float) -> bool:
        return self.excess(noise) < 0

    def excess(self, noise: float) -> float:
        return float(self.x[0] - self.allowed(noise).least(self.y)[0]) + ROUNDING


def by_central_limit(mu: float, privacy: DPSGD, adjacency: Adjacency) -> float:
    """The noise with which many steps are μ-Gaussian DP in the limit (`subsampled.central_limit`)."""
    return DISTANCE[adjacency] / math.sqrt(math.log1p(mu * mu / (privacy.sample_rate**2 * privacy.steps)))


def _mu_nearby(tally: Tally) -> float:
    """That of rates a little above the measured ones, and not 0."""
    pairs = ((float(tally.fn), float(tally.n_positive)), (float(tally.fp), float(tally.n_negative)))
    x, y = ((k + 1.0 + math.sqrt(k)) / (n + 2.0) for k, n in pairs)
    return max(float(region.mu_of_rates(x, y)), 0.01) if x + y < 1 else 0.01


def _smallest(test: _Refuting, guess: float) -> float:
    """The smallest noise that is refuted, or hardly more; infinite where none is up to LARGEST."""
    smallest, largest = math.log(SMALLEST), math.log(LARGEST)

    @cache
    def excess(log_noise: float) -> float:
        return test.excess(math.exp(log_noise))

    low = high = min(max(math.log(guess), smallest), largest)
    step = FIRST_STEP
    while excess(high) > 0 and high < largest:
        low, high, step = high, min(high + step, largest), 2.0 * step
    while excess(low) <= 0 and low > smallest:
        low, high, step = max(low - step, smallest), low, 2.0 * step
    if excess(high) > 0:
        return math.inf
    high = brent.root(excess, low, high, xtol=CLOSE) if excess(low) > 0 else low
    step = CLOSE
    while high < largest and not test.refutes(math.exp(high)):
        high, step = high + step, 2.0 * step
    return math.exp(high) if high < largest else math.inf
