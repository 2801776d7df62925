"""What it costs that an (ε, δ)-DP mechanism may give guesses of fair bits away, each bit with a probability of δ; and
which guesses to judge by, so that it costs little.

A guess that is not given away is right with at most q = e^ε/(1 + e^ε). docs/guarantees.md has the proofs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Floats

SHARE = 0.9  # of α: δ never costs more
FIRST, GROWTH = np.arange(33.0), np.geomspace(1.05, 1e6, 256)  # numbers that are tried: the first, then growing ones
DEVIATIONS = np.linspace(-1.0, 9.0, 61)  # and so far from the mean, in standard deviations
ROUNDING = 1e-9
LOST = 1e-10  # of two tails, which their difference may be wrong by


# "weigh": all guesses are weighed. "count": the surest are counted. "first": those about the first pair of each model
# are weighed, and models are independent.
Way = Literal["weigh", "count", "first"]

CROWDED = 30.0  # N δ/α, above which weights gain less than a count whose price is tight
ROOTS, MORE = 4.0, 1.75  # so many times √N and N δ/α guesses are counted
FAR = 350.0  # about so many models make first pairs worth more than guesses that are counted


def surest_that_count(n_bits: int, *, delta: float, level: float) -> int:
    """How many of the surest guesses to count."""
    return min(n_bits, math.ceil(ROOTS * math.sqrt(n_bits) + MORE * n_bits * delta / (1.0 - level)))


def way(n_bits: int, n_models: int, *, delta: float, level: float) -> Way:
    """Which guesses about so many bits of so many models may be expected to show most; known before any score is."""
    if n_models == n_bits:
        return "first"
    if n_bits * delta <= CROWDED * (1.0 - level):
        return "weigh"
    share = MORE * delta / (1.0 - level)  # of all guesses are counted; if these are many, most are hardly sure
    return "count" if share < 1 and n_models * share <= FAR * (1.0 - share) ** 2 else "first"


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
