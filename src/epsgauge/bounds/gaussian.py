"""Lower bounds for μ of Gaussian DP, from two rates (Nasr et al. 2023) or from guesses in the order of their ranks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np

from epsgauge.bounds.exact import Direction, Quantity, by_inversion, by_rectangle
from epsgauge.bounds.ordering import MuOrdering
from epsgauge.bounds.ranked import NO_LEAK, LeastWrong, Ranked, last_refuted
from epsgauge.bounds.regions import MuRegion
from epsgauge.errors import InvalidInput
from epsgauge.stats import checks, region
from epsgauge.stats.families import Mu
from epsgauge.stats.tally import Tally

Method = Literal["exact", "clopper-pearson"]
# The grid of μ, which is fixed beforehand, and its end.
STEP, POINTS = 0.002, 50_000
# A curve is drawn by so many lines, for losses up to this many standard deviations; and their rounding, with room.
LINES, REACH, ROUNDING = 400, 9.0, 1e-13
STEEPEST = 600.0  # of a line, as e^ε must be a number
MU = Quantity(ordering=MuOrdering, region=MuRegion, family=Mu())


@dataclass(frozen=True)
class GaussianBound:
    """A one-sided lower bound for μ, guaranteed at `level` under Gaussian DP, and the same as ε at `delta`."""

    mu: float
    eps: float
    delta: float
    level: float
    method: Method
    under: str = str(Mu.assumption)


def gaussian_bound(
    tally: Tally, *, delta: float, level: float, method: Method = "exact", direction: Direction = "right"
) -> GaussianBound:
    """A μ that is above the true μ with at most 1 − level, by inverting a test or from Clopper-Pearson's limits.

    For independent samples and numbers of samples fixed beforehand. "right": the attack's direction was fixed
    beforehand, and one that is reliably wrong gives 0; with "either" it counts like one that is reliably right. Where
    the mechanism's trade-off curve is not that of Gaussian DP, the number promises nothing.

    >>> bound = gaussian_bound(Tally(tp=600, tn=600, fp=400, fn=400), delta=1e-5, level=0.95)
    >>> round(bound.mu, 3), round(bound.eps, 3)
    (0.412, 1.605)
    """
    if tally.shape:
        raise InvalidInput(f"tally must be one tally, but got an array of shape {tally.shape}.")
    alpha, d = 1.0 - checks.level(level), checks.one("delta", checks.delta(delta))
    if method not in get_args(Method):
        raise InvalidInput(f"method must be 'exact' or 'clopper-pearson', but got {method!r}.")
    if method == "exact":
        mu = by_inversion(tally, MU, alpha=alpha, direction=direction)
    else:
        mu = by_rectangle(tally, MU.family, alpha=alpha, direction=direction)
    return GaussianBound(mu, float(region.gaussian_eps(mu, delta=d)), d, level, method)


@lru_cache(maxsize=256)
def ranked_mu(guesses: Ranked, *, level: float) -> float:
    """The largest μ of a grid that guesses about independent models refute, for bits that are fair coins; else 0.

    >>> round(ranked_mu(Ranked((50, 50, 100), (5, 10, 60)), level=0.95), 3)
    0.69
    """
    near = round(guesses.mu_nearby / STEP)
    found = last_refuted(guesses, _of_point, POINTS, alpha=1.0 - checks.level(level), near=near)
    return 0.0 if found is None else found * STEP


def of_gaussian(mu: float) -> LeastWrong:
    """How many of the surest guesses are wrong at least under μ-Gaussian DP."""
    eps = np.linspace(0.0, min(0.5 * mu * mu + REACH * mu, STEEPEST), LINES)
    return LeastWrong.of(eps, np.asarray(region.gaussian_delta(eps, mu=mu)) + ROUNDING)


@lru_cache(maxsize=1024)
def _of_point(number: int) -> LeastWrong:
    return NO_LEAK if number == 0 else of_gaussian(number * STEP)
