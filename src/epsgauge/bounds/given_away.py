"""What it costs that an (ε, δ)-DP mechanism may give guesses of fair bits away, each bit with a probability of δ.

A guess that is not given away is right with at most q = e^ε/(1 + e^ε). docs/guarantees.md has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Floats

SHARE = 0.9  # of α: δ never costs more
FIRST, GROWTH = np.arange(33.0), np.geomspace(1.05, 1e6, 256)  # numbers that are tried: the first, then growing ones
DEVIATIONS = np.linspace(-1.0, 9.0, 61)  # and so far from the mean, in standard deviations
ROUNDING = 1e-9
LOST = 1e-10  # of two tails, which their difference may be wrong by


@dataclass(frozen=True)
class Price:
    """What δ takes of α, or infinity; how many guesses of each side are set aside; and by how much, as a log, the tail
    must lie below what is left of α.
    """

    cost: float
    aside: int = 0
    beyond: float = 0.0


def prices(eps: Floats, *, n_bits: int, delta: float, alpha: float, independent: bool) -> list[Price]:
    """For each ε, the price that leaves most; known before any output is.

    `independent`: each bit has a model of its own, and these are independent.
    """
    near = 0.5 * n_bits * delta + np.sqrt(0.5 * n_bits * delta) * DEVIATIONS
    tried = np.unique(np.clip(np.ceil(np.concatenate([FIRST, FIRST[-1] * GROWTH, near])), 0.0, n_bits))
    wrong = special.expit(-np.asarray(eps))[:, None]
    each = -tried * np.log1p(-wrong)  # what so many guesses that are right say at most
    if independent:
        costs, said = 2.0 * _gained(tried, wrong, n_bits, 0.5 * delta) * (1.0 + ROUNDING), 2.0 * each
    else:
        costs = n_bits * delta * wrong / (1.0 + tried * wrong) * (1.0 + ROUNDING)
        said = each - np.log1p(tried * wrong)
    with np.errstate(divide="ignore", invalid="ignore"):
        lost = np.where(costs <= SHARE * alpha, -np.log1p(-costs / alpha), np.inf)
    out = []
    for i, k in enumerate(np.argmin(said + lost, axis=1).tolist()):
        cost = float(costs[i, k]) if lost[i, k] < np.inf else np.inf
        out.append(Price(cost, aside=int(tried[k])) if independent else Price(cost, beyond=float(said[i, k])))
    return out


def _gained(k: Floats, wrong: Floats, n: int, p: float) -> Floats:
    """E[1 − q^(K − k)₊] for K ~ Binomial(n, p), by the tail of another binomial: that of K with odds times q."""
    more = _above(k, n, p)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        log = n * np.log1p(-p * wrong) - k * np.log1p(-wrong)
        by_q = np.exp(log) * _above(k, n, p * (1.0 - wrong) / (1.0 - p * wrong))
    sound = np.isfinite(by_q) & (by_q <= more)  # else their difference has no digits
    found = np.where(sound, more - by_q, more) + LOST * more
    out: Floats = np.minimum(found, n * p * wrong)
    return out


def _above(k: Floats, n: int, p: Floats | float) -> Floats:
    """Pr[Binomial(n, p) > k]."""
    inside = np.minimum(k, n - 1.0)
    out: Floats = np.where(k < n, special.betainc(inside + 1.0, n - inside, p), 0.0)
    return out
