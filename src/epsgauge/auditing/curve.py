"""The noise that DP-SGD can have had at most: its whole trade-off curve against the two measured rates.

A rectangle of Clopper-Pearson limits contains FNR and FPR with the level. Where its corner (FNR, FPR at most) lies
below the trade-off curve f of DP-SGD with some noise, FNR < f(FPR), no such training can have these rates, and none
with more noise. One rectangle serves all noise multipliers and all (ε, δ(ε)) of a curve, so nothing is tested twice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.adjacency import checked as checked_adjacency
from epsgauge.auditing.accounting import DISTANCE, composed, mesh
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.methods.clopper_pearson import ClopperPearson
from epsgauge.stats import checks, rates, region
from epsgauge.stats.arrays import Floats
from epsgauge.stats.interval import Kind
from epsgauge.stats.tally import Tally

# Buckets of this width, and over √steps of at most that: a curve in a tenth of a second, its ε at most 0.003 too large.
WIDTH, WIDTH_OF_ALL = 0.01, 0.075
# No smaller noise is tried.
SMALLEST = 0.05
# Distributions of privacy loss built at most, the one of the claim among them.
BUILDS = 15
# The bound is sought to this ratio.
CLOSE = 1.005
# The curve at so many ε; between them it lies higher, so that fewer only make the bound weaker.
POINTS = 400
# Rounding of dp-accounting's convolutions, with room.
ROUNDING = 1e-9


@dataclass(frozen=True)
class EffectiveNoise:
    """Every noise multiplier from `noise_at_most` on is refuted at `level`; infinite where none is.

    It assumes what Clopper-Pearson assumes, and DP-SGD with Poisson sampling at this rate and for so many steps.
    """

    noise_multiplier: float  # as claimed
    noise_at_most: float
    refuted: bool  # whether the claim is
    fnr_at_most: float
    fpr_at_most: float
    level: float
    adjacency: Adjacency
    promise: Kind = "guaranteed"  # of an audit, what is left of it


class EffectiveNoiseMethod(ClopperPearson):
    """What an effective noise promises: it rests on Clopper-Pearson's limits, and bounds no ε."""

    name = "effective-noise"
    label = "Effective noise"
    meaning = "an upper bound of the noise of DP-SGD with Poisson sampling, by its whole trade-off curve"
    may_judge = False


EFFECTIVE_NOISE = EffectiveNoiseMethod()


def effective_noise(tally: Tally, privacy: DPSGD, *, adjacency: Adjacency, level: float) -> EffectiveNoise:
    """An upper bound for the noise multiplier, one-sided at `level`, for an attack with a direction fixed beforehand.

    Both limits are missed with half of 1 − level. The bound is rounded up: the accountant's δ(ε) is pessimistic, so its
    curve lies below the true one, and what it refutes the true one refutes.

    >>> effective_noise(
    ...     Tally(tp=700, tn=950, fp=50, fn=300), DPSGD(1.0, 1.0, 1), adjacency="add-remove", level=0.95
    ... ).noise_at_most.__round__(3)
    0.512
    """
    if tally.shape:
        raise InvalidInput(f"tally must be one tally, but got an array of shape {tally.shape}.")
    wanted, half = checked_adjacency(adjacency), 0.5 * (1.0 - checks.level(level))
    x, y = (
        float(rates.clopper_pearson_limits(np.array([float(k)]), np.array([float(n)]), half)[1][0])
        for k, n in ((tally.fn, tally.n_positive), (tally.fp, tally.n_negative))
    )
    if x + y >= 1.0:
        at_most, refuted = math.inf, False
    elif privacy.sample_rate == 1:  # all steps are one Gaussian mechanism, whose curve has one parameter
        at_most = DISTANCE[wanted] * math.sqrt(privacy.steps) / float(region.mu_of_rates(x, y)) * (1.0 + ROUNDING)
        refuted = privacy.noise_multiplier >= at_most
    else:
        at_most, refuted = _search(privacy, wanted, x, y)
    return EffectiveNoise(float(privacy.noise_multiplier), at_most, refuted, x, y, level, wanted)


def trade_off(privacy: DPSGD, fpr: Floats, *, adjacency: Adjacency, largest_eps: float) -> Floats:
    """f at these FPR, not above the true curve: sup over ε of 1 − δ(ε) − e^ε FPR and e^−ε (1 − δ(ε) − FPR).

    δ(ε) is the larger of both directions of neighbours, so f is its own inverse. ε goes up to `largest_eps`.
    """
    noise, steps = float(privacy.noise_multiplier), int(privacy.steps)
    width = max(mesh(noise, steps, DISTANCE[adjacency]), min(WIDTH, WIDTH_OF_ALL / math.sqrt(steps)))
    eps = np.linspace(0.0, largest_eps, POINTS)
    kept = 1.0 - np.asarray(composed(privacy, adjacency, width=width).get_delta(eps), dtype=np.float64)
    y = np.asarray(fpr, dtype=np.float64)[..., None]
    lines = np.maximum(kept - np.exp(eps) * y, np.exp(-eps) * (kept - y))
    out: Floats = np.maximum(0.0, lines.max(axis=-1))
    return out


def _search(privacy: DPSGD, adjacency: Adjacency, x: float, y: float) -> tuple[float, bool]:
    """The smallest noise found whose curve lies above the corner, and whether the claim's does."""
    if x + y < (1.0 - privacy.sample_rate) ** privacy.steps:  # a point that is in no batch hides without any noise
        return 0.0, True
    largest_eps = -math.log(min(x, y))  # beyond it the lines through the corner say nothing
    claimed, seen = float(privacy.noise_multiplier), 0

    def refuted(noise: float) -> bool:
        nonlocal seen
        seen += 1
        trained = replace(privacy, noise_multiplier=noise)
        least = trade_off(trained, np.array([y]), adjacency=adjacency, largest_eps=largest_eps)
        return bool(least[0] > x + ROUNDING)

    claim = claimed >= SMALLEST and refuted(claimed)
    low, high = (0.0, claimed) if claim else (claimed, math.inf)
    noise, step = min(max(_first_guess(privacy, adjacency, x, y), 1.02 * low, SMALLEST), high / 1.02), 1.1
    while seen < BUILDS and high > CLOSE * max(low, SMALLEST):
        low, high = (low, noise) if refuted(noise) else (noise, high)
        if low == 0 or math.isinf(high):  # no bracket yet: ever longer steps
            noise, step = max(high / step, SMALLEST) if low == 0 else low * step, step**1.5
        else:
            noise = math.sqrt(low * high)
    return high, claim


def _first_guess(privacy: DPSGD, adjacency: Adjacency, x: float, y: float) -> float:
    """The noise at which the central limit of many steps, q √(T (e^(d²/σ²) − 1))-Gaussian DP, passes the corner."""
    mu = float(region.mu_of_rates(x, y))
    d = DISTANCE[adjacency]
    return d / math.sqrt(math.log1p(mu * mu / (privacy.sample_rate**2 * privacy.steps)))
