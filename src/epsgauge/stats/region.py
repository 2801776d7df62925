"""The privacy region R(ε, δ) and what a pair of rates says about ε, δ and μ (§2.3 and §2.4 of the paper).

Rates are called x = FNR and y = FPR. All functions are folded: an attack that is reliably wrong leaks as
much as one that is reliably right, so (x, y) and (1 − x, 1 − y) give the same answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.stats import checks, special
from epsgauge.stats.arrays import Bools, Floats


def contains(fnr: ArrayLike, fpr: ArrayLike, *, eps: ArrayLike, delta: ArrayLike) -> Bools:
    """Whether (fnr, fpr) is in R(eps, delta), that is, no (eps, delta)-DP mechanism is refuted by it."""
    x, y = checks.rate("fnr", fnr), checks.rate("fpr", fpr)
    e, slack = checks.eps(eps), 1.0 - checks.delta(delta)
    inside: Bools = (
        (x + _grown(y, e) >= slack)
        & (y + _grown(x, e) >= slack)
        & ((1 - x) + _grown(1 - y, e) >= slack)
        & ((1 - y) + _grown(1 - x, e) >= slack)
    )
    return inside


def vertices(*, eps: float, delta: float) -> Floats:
    """The corners of R(eps, delta) as rows (x, y), counter-clockwise from the one on the y axis."""
    e, d = float(checks.eps(eps)), float(checks.delta(delta))
    v = (1.0 - d) * float(special.expit(-e))
    half = np.array([(0.0, 1.0 - d), (v, v), (1.0 - d, 0.0)])
    upper = 1.0 - half
    if d == 0:
        return np.vstack([half, upper[1:2]])
    # with δ > 0 the corners (1, 0) and (0, 1) of the square belong to the region too
    return np.vstack([half, (1.0, 0.0), upper, (0.0, 1.0)])


def lower_boundary(fnr: ArrayLike, *, eps: ArrayLike, delta: ArrayLike) -> Floats:
    """The smallest fpr that (eps, delta)-DP allows at this fnr (R_LO of the paper's appendix)."""
    x, e, slack = checks.rate("fnr", fnr), checks.eps(eps), 1.0 - checks.delta(delta)
    out: Floats = np.maximum(0.0, np.maximum(slack - _grown(x, e), np.exp(-e) * (slack - x)))
    return out


def upper_boundary(fnr: ArrayLike, *, eps: ArrayLike, delta: ArrayLike) -> Floats:
    """The largest fpr that (eps, delta)-DP allows; the paper's R_HI lacks a "1 +" in its second term."""
    x = checks.rate("fnr", fnr)
    return 1.0 - lower_boundary(1.0 - x, eps=eps, delta=delta)


def eps_of_rates(fnr: ArrayLike, fpr: ArrayLike, *, delta: ArrayLike) -> Floats:
    """sup{ε : (fnr, fpr) ∉ R(ε, δ)}, 0 if there is none (Eq. 1, folded and with every corner).

    Infinite where one rate is 0 and the other below 1 − δ: such an attack is never wrong on one side.
    """
    x, y, d = checks.rate("fnr", fnr), checks.rate("fpr", fpr), checks.delta(delta)
    return log_ratio_max(x, 1.0 - x, y, 1.0 - y, d)


def log_ratio_max(x: Floats, x_up: Floats, y: Floats, y_up: Floats, delta: Floats) -> Floats:
    """`eps_of_rates` for rates given with their complements, so that a rate near 1 keeps its digits."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        best = np.fmax((y_up - delta) / x, 1.0)  # which passes over 0/0
        for top, bottom in ((x_up, y), (y, x_up), (x, y_up)):
            best = np.fmax(best, (top - delta) / bottom)
        return np.log(best)


def delta_of_rates(fnr: ArrayLike, fpr: ArrayLike, *, eps: ArrayLike) -> Floats:
    """The smallest δ for which (fnr, fpr) ∈ R(eps, δ)."""
    x, y = checks.rate("fnr", fnr), checks.rate("fpr", fpr)
    return largest_gap(x, 1.0 - x, y, 1.0 - y, checks.eps(eps))


def largest_gap(x: Floats, x_up: Floats, y: Floats, y_up: Floats, eps: Floats) -> Floats:
    """`delta_of_rates` for rates given with their complements."""
    gaps = (x_up - _grown(y, eps), y_up - _grown(x, eps), x - _grown(y_up, eps), y - _grown(x_up, eps))
    return np.maximum(0.0, np.maximum(np.maximum(gaps[0], gaps[1]), np.maximum(gaps[2], gaps[3])))


def _grown(rate: Floats, eps: Floats) -> Floats:
    """e^ε times a rate; 0 where the rate is 0, however large ε is."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(rate == 0, 0.0, np.exp(eps) * rate)


def mu_of_rates(fnr: ArrayLike, fpr: ArrayLike) -> Floats:
    """The μ of Gaussian DP whose trade-off curve passes through (fnr, fpr), folded."""
    x, y = checks.rate("fnr", fnr), checks.rate("fpr", fpr)
    return probit_distance(x, 1.0 - x, y, 1.0 - y)


def probit_distance(x: Floats, x_up: Floats, y: Floats, y_up: Floats) -> Floats:
    """`mu_of_rates` for rates given with their complements: |Φ⁻¹(1 − y) − Φ⁻¹(x)|."""
    z_x = np.where(x < x_up, 1, -1) * special.ndtri(np.minimum(x, x_up))
    z_y = np.where(y < y_up, 1, -1) * special.ndtri(np.minimum(y, y_up))
    with np.errstate(invalid="ignore"):
        mu = np.abs(z_x + z_y)
    return np.where(np.isnan(mu), 0.0, mu)  # (0, 1) and (1, 0): an attack that always says the same


def gaussian_delta(eps: ArrayLike, *, mu: ArrayLike) -> Floats:
    """δ at which μ-Gaussian DP is (eps, δ)-DP: Φ(−ε/μ + μ/2) − e^ε Φ(−ε/μ − μ/2)."""
    e, m = checks.eps(eps), checks.eps(mu, "mu")
    with np.errstate(divide="ignore", invalid="ignore"):
        shift = np.where(m > 0, e / np.where(m > 0, m, 1.0), np.where(e > 0, np.inf, 0.0))
        out = special.ndtr(m / 2 - shift) - np.exp(e + special.log_ndtr(-m / 2 - shift))
    return np.clip(np.where(np.isnan(out), 0.0, out), 0.0, 1.0)


def gaussian_mu(eps: ArrayLike, *, delta: ArrayLike) -> Floats:
    """The largest μ for which μ-Gaussian DP implies (eps, delta)-DP."""
    e, d = np.broadcast_arrays(checks.eps(eps), checks.delta(delta))
    low, high = np.zeros(e.shape), np.where(d > 0, 1.0, 0.0)  # at δ = 0 only μ = 0 will do
    while np.any(short := gaussian_delta(e, mu=high) < d):
        high = np.where(short, 2 * high, high)
    for _ in range(200):  # bisection to the last bit: δ grows with μ
        mid = 0.5 * (low + high)
        if np.all((mid == low) | (mid == high)):
            break
        small = gaussian_delta(e, mu=mid) <= d
        low, high = np.where(small, mid, low), np.where(small, high, mid)
    return low


def gaussian_eps(mu: ArrayLike, *, delta: ArrayLike) -> Floats:
    """The smallest ε for which μ-Gaussian DP implies (ε, delta)-DP; infinite at δ = 0 unless μ = 0."""
    m, d = np.broadcast_arrays(checks.eps(mu, "mu"), checks.delta(delta))
    done = (gaussian_delta(0.0, mu=m) <= d) | (d == 0)
    low, high = np.zeros(m.shape), np.full(m.shape, 1.0)
    while np.any(short := ~done & (gaussian_delta(high, mu=m) > d)):
        high = np.where(short, 2 * high, high)
    for _ in range(200):
        mid = 0.5 * (low + high)
        if np.all((mid == low) | (mid == high) | done):
            break
        large = gaussian_delta(mid, mu=m) > d
        low, high = np.where(large, mid, low), np.where(large, high, mid)
    return np.where(done, np.where((d == 0) & (m > 0), np.inf, 0.0), high)


def advantage_bound(*, eps: ArrayLike, delta: ArrayLike) -> Floats:
    """The largest advantage 1 − FNR − FPR against (eps, delta)-DP: (e^ε − 1 + 2δ)/(e^ε + 1) (Theorem B.2)."""
    e, d = checks.eps(eps), checks.delta(delta)
    out: Floats = np.tanh(e / 2) + 2 * d * special.expit(-e)
    return out


def eps_of_advantage(advantage: ArrayLike, *, delta: ArrayLike) -> Floats:
    """The ε at which `advantage_bound` takes this value; 0 where δ alone explains it."""
    adv = checks.rate("advantage", advantage)
    d = checks.delta(delta)
    with np.errstate(divide="ignore"):
        out = np.log(np.maximum(1 + adv - 2 * d, 0.0) / (1 - adv))
    return np.maximum(0.0, out)
