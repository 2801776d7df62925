"""The noise that DP-SGD can have had at most: its whole trade-off curve against guesses about independent models.

Less noise has a lower curve, so a grid of noise multipliers is a series of curves for `ranked` to refute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.adjacency import checked as checked_adjacency
from epsgauge.bounds.gaussian import of_gaussian, ranked_mu
from epsgauge.bounds.ranked import NO_LEAK, LeastWrong, Ranked, last_refuted
from epsgauge.bounds.subsampled import curve, least_eps, one_gaussian
from epsgauge.mechanisms.privacy import DISTANCE, DPSGD
from epsgauge.stats import checks
from epsgauge.stats.interval import Kind

# No smaller noise is tried, and no larger one; neighbours on the grid differ by this factor.
SMALLEST, LARGEST, FACTOR = 0.05, 1e4, 1.002
POINTS = math.ceil(math.log(LARGEST / SMALLEST) / math.log(FACTOR))
# Rounding of a closed form, with room.
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
    promise: Kind  # what is left of it


@lru_cache(maxsize=256)
def noise_at_most(guesses: Ranked, privacy: DPSGD, *, adjacency: Adjacency, level: float) -> float:
    """The smallest multiplier of a grid that is refuted, with all larger ones, for bits that are fair coins.

    The noise of `privacy` does not matter.
    """
    alpha, sides = 1.0 - checks.level(level), checked_adjacency(adjacency)
    if privacy.sample_rate == 1:  # all steps are one Gaussian mechanism, whose curve has one parameter
        mu = ranked_mu(guesses, level=level)
        return DISTANCE[sides] * math.sqrt(privacy.steps) / mu * (1.0 + ROUNDING) if mu > 0 else math.inf

    def with_noise(number: int) -> LeastWrong:
        if number == 0:
            return NO_LEAK
        return _without_noise(privacy) if number > POINTS else least_wrong(_at(number, privacy), sides)

    nearby = math.log(LARGEST / _by_central_limit(guesses.mu_nearby, privacy, sides)) / math.log(FACTOR)
    found = last_refuted(guesses, with_noise, POINTS + 1, alpha=alpha, near=round(nearby))
    if not found:  # not even guesses that are coins are refuted, or these alone
        return math.inf
    return 0.0 if found > POINTS else float(_at(found, privacy).noise_multiplier)


def eps_of_noise(noise: float, privacy: DPSGD, *, delta: float, adjacency: Adjacency) -> float:
    """ε at δ that DP-SGD spends at least with this noise or less."""
    if math.isinf(noise):
        return 0.0
    if delta == 0:
        return math.inf
    trained = replace(privacy, noise_multiplier=noise if privacy.sample_rate == 1 else max(noise, SMALLEST))
    return least_eps(trained, delta=delta, adjacency=adjacency)


def least_wrong(privacy: DPSGD, adjacency: Adjacency) -> LeastWrong:
    """How many of the surest guesses about DP-SGD are wrong at least."""
    if privacy.sample_rate == 1:
        return of_gaussian(one_gaussian(privacy, adjacency).mu)
    return LeastWrong.of(*curve(privacy, adjacency))


def _at(number: int, privacy: DPSGD) -> DPSGD:
    """With the noise of a point of the grid, from 1 on."""
    return replace(privacy, noise_multiplier=max(LARGEST * FACTOR ** (1 - number), SMALLEST))


def _by_central_limit(mu: float, privacy: DPSGD, adjacency: Adjacency) -> float:
    """The noise with which many steps are μ-Gaussian DP in the limit (`subsampled.central_limit`)."""
    return DISTANCE[adjacency] / math.sqrt(math.log1p(mu * mu / (privacy.sample_rate**2 * privacy.steps)))


def _without_noise(privacy: DPSGD) -> LeastWrong:
    """A point is in no batch with some chance, and then nothing tells."""
    hidden = (1.0 - float(privacy.sample_rate)) ** privacy.steps
    return LeastWrong.of(np.zeros(1), np.array([1.0 - hidden]))
