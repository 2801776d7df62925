"""Whether guesses of fair bits refute a whole trade-off curve, and the ε or μ that they refute (f-DP in one run).

With exactly r guesses of N bits, K of them right, every f-DP mechanism has for each i
E[K; K > i]/N ≤ 1 − f(E[r − K; K ≥ i]/N)   (Mahloujifar, Melis and Chaudhuri 2024, Theorem 3.1, for upper sets).
From a tail Pr[K ≥ v] = 1 − level these inequalities demand more and more mass below v; where they demand more than
there is, the tail must be smaller and f is refuted (docs/guarantees.md has the proof). What all other sets of counts
demand as well is in `priced`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from epsgauge.bounds.guesses import Guesses
from epsgauge.bounds.priced import priced_mu
from epsgauge.errors import InvalidInput
from epsgauge.stats import checks, special

# y -> the smallest x with 1 − f(x) ≥ y, never above the true one: how often at least the guess is made in vain
Inverse = Callable[[float], float]

UNIT = 2.0**-52
# Relative error of Φ(Φ⁻¹(y) − μ), with room.
PROBIT = 1e-12


def eps_delta_inverse(eps: float, delta: float) -> Inverse:
    """Of (ε, δ)-DP: f(x) = max(0, 1 − δ − e^ε x, e^−ε (1 − δ − x))."""
    grow, shrink = math.exp(eps), math.exp(-eps) * (1.0 - 4 * UNIT)

    def inverse(y: float) -> float:
        steep = 1.0 - delta - grow * (1.0 - y) - 8 * UNIT * (1.0 + grow)
        return max(0.0, shrink * (y * (1.0 - UNIT) - delta), steep)

    return inverse


def gaussian_inverse(mu: float) -> Inverse:
    """Of μ-Gaussian DP: f(x) = Φ(Φ⁻¹(1 − x) − μ)."""

    def inverse(y: float) -> float:
        return float(special.ndtr(special.ndtri(min(y, 1.0)) - mu)) * (1.0 - PROBIT)

    return inverse


def refutes(guesses: Guesses, inverse: Inverse, *, level: float) -> bool:
    """Whether so many right guesses are less likely than 1 − level under every mechanism with this trade-off curve."""
    return _refutes(_checked(guesses), inverse, 1.0 - guesses.level(level))


def one_run_fdp_eps(guesses: Guesses, *, delta: float, level: float) -> float:
    """The largest ε at `delta` that the guesses refute, from the trade-off curve of (ε, δ)-DP; rounded down.

    >>> round(one_run_fdp_eps(Guesses(1200, 2000, 2000), delta=1e-5, level=0.95), 3)
    0.325
    """
    d = checks.one("delta", checks.delta(delta))
    return _largest(_checked(guesses), lambda eps: eps_delta_inverse(eps, d), 1.0 - guesses.level(level))


@lru_cache(maxsize=256)
def one_run_fdp_mu(guesses: Guesses, *, level: float) -> float:
    """The largest μ that the guesses refute, under Gaussian DP; `region.gaussian_eps` turns it into ε at a δ.

    >>> round(one_run_fdp_mu(Guesses(960, 1000, 100_000), level=0.95), 3)
    0.813
    """
    start = published_mu(guesses, level=level)
    return priced_mu(guesses, alpha=1.0 - guesses.level(level), start=start) if start > 0 else 0.0


def published_mu(guesses: Guesses, *, level: float) -> float:
    """The same by the recursion alone, which is quick and sees upper sets of counts only.

    >>> round(published_mu(Guesses(960, 1000, 100_000), level=0.95), 3)
    0.798
    """
    return _largest(_checked(guesses), gaussian_inverse, 1.0 - guesses.level(level))


def _checked(guesses: Guesses) -> Guesses:
    if guesses.number != "fixed":
        raise InvalidInput(
            "the number of guesses must be fixed for a bound on a whole trade-off curve, but here the outputs decided "
            "it. Guess all bits, or use top_guesses with a number fixed beforehand."
        )
    return guesses


def _largest(guesses: Guesses, inverse: Callable[[float], Inverse], alpha: float) -> float:
    """A refuted parameter next to one that is not; a larger one has a lower curve, so what is below is refuted too."""
    if 2 * guesses.n_right <= guesses.n_guesses or not _refutes(guesses, inverse(0.0), alpha):
        return 0.0
    low, high = 0.0, 1.0
    while _refutes(guesses, inverse(high), alpha):
        low, high = high, 2.0 * high
    while high - low > 1e-9 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _refutes(guesses, inverse(middle), alpha) else (low, middle)
    return low


def _refutes(guesses: Guesses, inverse: Inverse, tail: float) -> bool:
    """Follow the least mass that the inequalities demand, from K ≥ v downwards; every rounding is downwards."""
    r, v = guesses.n_guesses, guesses.n_right
    # with one side only bits of that value can be guessed rightly, on average half of them
    n = guesses.n_bits * (1.0 if guesses.sides == "both" else 0.5)
    if v == 0:
        return False
    right = tail * (1.0 - 8 * UNIT) * v / n  # E[K; K ≥ i]/N
    wrong = tail * (1.0 - 2 * UNIT) * (r - v) / n  # E[r − K; K ≥ i]/N
    enough = r / n * (1.0 + 4 * UNIT)
    for i in range(v - 1, -1, -1):
        demanded = inverse(right)
        if demanded <= wrong:  # nothing more is demanded, now or later
            break
        right = (right + (demanded - wrong) * (1.0 - 4 * UNIT) * i / (r - i)) * (1.0 - UNIT)
        wrong = demanded
        if right + wrong > enough:
            return True
    return right + wrong > enough
