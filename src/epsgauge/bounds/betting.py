"""A lower bound for ε that holds at every moment of a run with several pairs per model, whatever their dependence.

It bets against a claim. With a fair bit for each pair, W = 2[b = 0, guess 1] + 2e^ε[b = 1, guess 0] − (1 − δ) has the
mean FPR + e^ε FNR − (1 − δ), which is 0 or more if ε holds. So has the mean of W over the pairs of a model, however
they depend on each other. A gambler who stakes a share λ against it in every model has the wealth Π(1 − λW), which does
not grow on average if ε holds, and by Ville's inequality ever reaches 1/α with a probability of at most α. The capital
is spread over stakes fixed beforehand and over both names of the rates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.errors import InvalidInput
from epsgauge.stats import checks, special
from epsgauge.stats.arrays import Floats, Ints

# Shares of the capital staked in each model: from 1 down to what 1e8 models would ask for.
STAKES: Floats = np.geomspace(1.0, 1e-4, 41)
BISECTIONS = 60


def betting_lower_bound(fn: ArrayLike, fp: ArrayLike, pairs: ArrayLike, *, delta: float, level: float = 0.95) -> float:
    """A number that is above ε at some moment with a probability of at most 1 − `level`, from counts of each model.

    `fn` and `fp` are the models' wrong guesses, `pairs` how many each had to make. The models are those seen so far, in
    any order. Models must be independent and bits fair coins; pairs of a model may depend on each other. The attack has
    a direction here: one that is reliably wrong gives 0.

    >>> betting_lower_bound([0, 1] * 50, [1, 0] * 50, 10, delta=1e-5) > 1
    True
    """
    misses, alarms, m = (checks.counts(name, v) for name, v in (("fn", fn), ("fp", fp), ("pairs", pairs)))
    shape = checks.broadcast(fn=misses, fp=alarms, pairs=m)
    if len(shape) > 1:
        raise InvalidInput(f"fn, fp and pairs must be lists with one entry a model, but got the shape {shape}.")
    misses, alarms, m = (np.broadcast_to(a, shape).ravel() for a in (misses, alarms, m))
    checks.within("pairs", m, "1 or more", m >= 1)
    checks.within("fn", misses, "such that fn + fp is at most pairs", misses + alarms <= m)
    slack = 1.0 - checks.one("delta", checks.delta(delta))
    wanted = -np.log(1.0 - checks.level(level))
    base = int(m.max(initial=0)) + 1
    once, times = np.unique((misses * base + alarms) * base + m, return_counts=True)
    cells = np.stack([once // base**2, once // base % base, once % base])
    if log_wealth(0.0, cells, times, slack) < wanted:
        return 0.0
    # wealth only falls with ε, and the smallest stake is not allowed any more at the high end
    low, high = 0.0, float(np.log((1.0 / STAKES[-1] + slack) / 2.0)) + 1e-9
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if log_wealth(middle, cells, times, slack) >= wanted else (low, middle)
    return low


def log_wealth(eps: float, cells: Ints, times: Ints, slack: float) -> float:
    """log of the gambler's wealth against `eps`; `cells` are rows fn, fp and pairs, each seen so many `times`."""
    grown = float(np.exp(eps))
    allowed = STAKES[STAKES * (2.0 * grown - slack) <= 1.0]  # no stake that could be lost more than once over
    fn, fp, m = cells
    logs = []
    for one, other in ((fn, fp), (fp, fn)):
        gain = slack - (2.0 * other + 2.0 * grown * one) / m
        with np.errstate(divide="ignore"):
            logs.append(np.log1p(np.maximum(allowed[:, None] * gain, -1.0)) @ times)
    return float(special.logsumexp(np.concatenate(logs))) - np.log(2 * STAKES.size) if allowed.size else -np.inf
