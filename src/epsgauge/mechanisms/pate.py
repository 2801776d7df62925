"""PATE's accountant: what the votes of teachers spend when they are asked, by bounds that do not look at the votes.

One record is seen by one teacher, whose vote moves from one class to another: two counts change by 1. So the counts of
Q queries together move by 2Q in the sum of their changes, and by √(2Q) in their Euclidean length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.gaussian import Gaussian
from epsgauge.stats import checks, special
from epsgauge.stats.arrays import Floats

ORDERS = np.concatenate([np.linspace(1.05, 10, 180), np.geomspace(10.5, 1000, 200)])  # of Rényi's divergence


def gaussian_eps(sigma: float, queries: int, *, delta: float) -> float:
    """ε of GNMax (Papernot et al. 2018, proposition 8): noise N(0, σ²) on each count, all queries as one Gaussian.

    Exact for the noisy counts, and so at most what Rényi's divergences give.

    >>> round(gaussian_eps(40.0, 100, delta=1e-5), 3)
    1.356
    """
    checks.positive("sigma", sigma)
    checks.whole("queries", queries, 1)
    return Gaussian(sigma / math.sqrt(2.0 * queries)).eps_at(delta)


def laplace_eps(gamma: float, queries: int, *, delta: float) -> float:
    """ε of LNMax (Papernot et al. 2017, theorem 2): noise of scale 1/γ on each count.

    A query is 2γ-DP. Their sum is, and by moments (2γ² Q l (l + 1) at order l, the best of all l > 0) it may be less.

    >>> round(laplace_eps(0.05, 100, delta=1e-5), 3)
    5.299
    """
    checks.positive("gamma", gamma)
    checks.whole("queries", queries, 1)
    d = checks.one("delta", checks.delta(delta))
    moments = 2.0 * gamma * gamma * queries
    by_moments = math.inf if d == 0 else moments + 2.0 * math.sqrt(moments * -math.log(d))
    return min(2.0 * gamma * queries, by_moments)


@dataclass(frozen=True)
class DataDependent:
    """An ε that was computed from the votes. It is private data itself: neither to be published nor to be claimed."""

    eps: float
    delta: float
    order: float  # of Rényi's divergence that gave it

    def __str__(self) -> str:
        return (
            f"ε = {self.eps:.4g} at δ = {self.delta:g}, data-dependent: it was computed from the private votes and is "
            "private data itself. Publish and claim the data-independent ε."
        )


def data_dependent(votes: ArrayLike, sigma: float, *, delta: float) -> DataDependent:
    """Of GNMax with these votes, [queries, classes] (Papernot et al. 2018, theorem 6 and proposition 10)."""
    counts = checks.eps(votes, "votes")
    checks.positive("sigma", sigma)
    d = checks.one("delta", checks.delta(delta))
    if counts.ndim != 2 or counts.shape[1] < 2 or d == 0:
        raise InvalidInput(
            f"votes must have a row per query and a column per class, and delta be above 0, but got the shape "
            f"{counts.shape} and delta = {d:g}."
        )
    spent = np.sum([gnmax_rdp(log_q(row, sigma), sigma) for row in counts], axis=0)
    eps = spent - math.log(d) / (ORDERS - 1.0)
    best = int(np.argmin(eps))
    return DataDependent(float(eps[best]), d, float(ORDERS[best]))


def log_q(counts: Floats, sigma: float) -> float:
    """At least the log of the probability that the answer is not the class with most votes (proposition 7)."""
    order = np.argsort(-counts, kind="stable")
    behind = counts[order[0]] - counts[order[1:]]
    union = special.logsumexp(special.log_ndtr(-behind / (math.sqrt(2.0) * sigma)))
    return min(float(union), math.log1p(-1.0 / len(counts)))


def gnmax_rdp(log_wrong: float, sigma: float, orders: Floats = ORDERS) -> Floats:
    """Rényi's divergence of one query at most, at each order, where its answer is unlikely to be a surprise.

    Two higher orders μ₂ = σ√(log 1/q) and μ₁ = μ₂ + 1 bound it, where the theorem's conditions hold.
    """
    always: Floats = orders / sigma**2
    two = sigma * math.sqrt(-log_wrong)
    one = two + 1.0
    if two <= 1.0:
        return always
    eps_one, eps_two = one / sigma**2, two / sigma**2
    small = (two - 1.0) * eps_two - two * (math.log1p(1.0 / (one - 1.0)) + math.log1p(1.0 / (two - 1.0)))
    if log_wrong > small or -log_wrong <= eps_two:
        return always
    log_right = _log_1m_exp(log_wrong)
    log_a = (orders - 1.0) * (log_right - _log_1m_exp((log_wrong + eps_two) * (1.0 - 1.0 / two)))
    log_b = (orders - 1.0) * (eps_one - log_wrong / (one - 1.0))
    bound = np.logaddexp(log_right + log_a, log_wrong + log_b) / (orders - 1.0)
    out: Floats = np.where(orders < one, np.minimum(always, bound), always)
    return out


def _log_1m_exp(x: float) -> float:
    """log(1 − e^x) for x < 0."""
    return math.log1p(-math.exp(x)) if x < -1.0 else math.log(-math.expm1(x))
