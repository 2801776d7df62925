"""Whether bits can be those of fair coins: in number, within each model, and between models."""

from __future__ import annotations

import math

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.binomial import log_mass

# Fair coins are doubted in one table of ten thousand at most: half of that for their number, a tenth in each other way.
UNFAIR = 1e-4
RATES = np.geomspace(1e-3, 1e3, 49)  # at any of them Chernoff's bound holds


def unfair(model: Ints, pair: Ints, bit: Ints, failed_ones: int, failed_zeros: int) -> str | None:
    """Why the bits are hardly those of fair coins; None where they may be.

    Coins are coins in whichever groups they are counted: those of a model, or those of a pair number in all models.
    """
    ones, n = int(bit.sum()) + failed_ones, len(bit) + failed_ones + failed_zeros
    if 2 * special.bdtr(min(ones, n - ones), n, 0.5) < UNFAIR / 2:
        return f"it needs bits that are coins, but {ones} of {n} are 1"
    of_models, of_pairs = _counted(model, bit), _counted(pair, bit)
    seen = {
        "each model has about as many ones as zeros, more evenly than coins fall": too_even(*of_models),
        "models differ in the bits of a pair more often than coins do": too_even(*of_pairs),
        "models agree in the bits of a pair more often than coins do": too_uneven(*of_pairs),
        "some models have the same bits, or opposite ones, in all pairs": repeated(model, pair, bit),
        "some models have mostly ones and others mostly zeros, more unevenly than coins fall": too_uneven(*of_models),
    }
    why = next((said for said, chance in seen.items() if chance < UNFAIR / 10), None)
    return None if why is None else f"it needs bits that are coins, but {why}"


def too_even(ones: Ints, coins: Ints) -> float:
    """An upper bound of the probability that fair coins in groups of these sizes fall this evenly.

    A table that was made with as many ones as zeros in every model is no game of coins: who knows one bit knows more
    of the others.
    """
    return _chernoff(ones, coins, -RATES)


def too_uneven(ones: Ints, coins: Ints) -> float:
    """The same for this unevenly: where models have the same bits, those of a pair are all 1 or all 0."""
    return _chernoff(ones, coins, RATES)


def repeated(model: Ints, pair: Ints, bit: Ints) -> float:
    """An upper bound of the probability that any two models repeat each other, or are opposite, in this many pairs.

    Two models do so in k pairs with a probability of 2^(1 − k); all couples of models are counted.
    """
    _, of, n_pairs = np.unique(model, return_inverse=True, return_counts=True)
    couples = math.comb(len(n_pairs), 2)
    order = np.lexsort((pair, of))
    order = order[couples * 2.0 ** (1.0 - n_pairs[of[order]]) < 1]  # shorter ones repeat by chance
    starts = np.flatnonzero(np.diff(of[order], prepend=-1))
    seen, most = set(), 0
    for pairs, bits in zip(*(np.split(column[order], starts[1:]) for column in (pair, bit)), strict=True):
        key = pairs.tobytes(), (bits != bits[:1]).tobytes()
        most = max(most, len(bits)) if key in seen else most
        seen.add(key)
    return couples * 2.0 ** (1 - most) if most else 1.0


def _counted(group: Ints, bit: Ints) -> tuple[Ints, Ints]:
    """Ones and coins of each group."""
    _, of = np.unique(group, return_inverse=True)
    return np.bincount(of, bit).astype(np.int64), np.bincount(of)


def _chernoff(ones: Ints, coins: Ints, rates: Floats) -> float:
    """That Σ (2 ones − coins)² over the groups is as far out; rates above 0 bound it from above, others from below."""
    several = coins > 1
    if several.sum() < 2:  # a single group is too even or uneven in its number alone, of which there is an exact test
        return 1.0
    sizes, times = np.unique(coins[several], return_counts=True)
    rates = rates / float(np.mean(sizes))
    logs = -rates * float(np.sum((2 * ones[several] - coins[several]) ** 2))
    for m, n in zip(sizes, times, strict=True):
        logs += n * _log_means(int(m), rates)
    return math.exp(min(0.0, float(logs.min())))


def _log_means(m: int, rates: Floats) -> Floats:
    """log E exp(rate (2X − m)²) for X of m coins, of which X and m − X are equally likely."""
    k = np.arange(m // 2 + 1.0)
    mass = log_mass(k, m, 0.5) + np.where(2 * k < m, math.log(2.0), 0.0)
    return np.array([np.logaddexp.reduce(mass + rate * (2.0 * k - m) ** 2) for rate in rates])
