"""What a bound would detect: the quantile of the bound if an audit like this one were made again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from epsgauge.stats.arrays import Floats
from epsgauge.stats.binomial import log_mass
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.posterior import JEFFREYS
from epsgauge.stats.quick import POSTERIOR
from epsgauge.stats.tally import Tally

POWER = 0.8
MANY = 100_000  # guesses; tables of more are not tried
# A bound that counts do not give is drawn again so often.
REDRAWN = 25
# Outcomes of the two binomials: all that matter are computed if they are so few, else so many are drawn.
MAX_CELLS = 20_000
FEW_CELLS = 2_000  # for the posterior's lower end, which takes longer
LOST = 1e-9

Bounds = Callable[[Counts], Floats]


def tally_at_power(tally: Tally, bounds: Bounds, power: float = POWER) -> Tally:
    """The counts at which a bound reaches its 1 − power quantile, if FNR and FPR are those of the tally.

    Then the counts are two binomials. A claim is refuted where the bound is above it, so claims below the bound at
    these counts are refuted with at least this probability. All pairs of counts matter but a mass of 1e-9; where they
    are too many, 20,000 are drawn with a fixed seed.
    """
    return _at_quantile(tally, bounds, power, MAX_CELLS)


def tally_at_power_of_posterior(tally: Tally, *, delta: float, level: float, power: float = POWER) -> Tally:
    """The same for a bound that takes long: the posterior's lower end orders the outcomes much as it does."""

    def bounds(counts: Counts) -> Floats:
        family = EpsAtDelta(np.full(len(counts), delta))
        found = POSTERIOR.lower_bound(family, counts, 1.0 - level, JEFFREYS)
        # the posterior folds, and these bounds have a direction
        worse = counts.fn * (counts.fp + counts.tn) + counts.fp * (counts.fn + counts.tp)
        return np.where(worse >= (counts.fn + counts.tp) * (counts.fp + counts.tn), -1.0, found)

    return _at_quantile(tally, bounds, power, FEW_CELLS)


def _at_quantile(tally: Tally, bounds: Bounds, power: float, most: int) -> Tally:
    n1, n0 = int(tally.n_positive), int(tally.n_negative)
    fn, p_fn = _binomial(n1, int(tally.fn))
    fp, p_fp = _binomial(n0, int(tally.fp))
    if len(fn) * len(fp) <= most:
        cells = np.stack([g.ravel() for g in np.meshgrid(fn, fp, indexing="ij")])
        mass = np.outer(p_fn, p_fp).ravel()
    else:
        rng = np.random.default_rng(0)
        drawn = [rng.choice(k, most, p=p / p.sum()) for k, p in ((fn, p_fn), (fp, p_fp))]
        cells, times = np.unique(np.stack(drawn), axis=1, return_counts=True)
        mass = times / most
    order = np.argsort(bounds(Counts(tp=n1 - cells[0], tn=n0 - cells[1], fp=cells[1], fn=cells[0])))
    reached = np.searchsorted(np.cumsum(mass[order]), 1.0 - power, side="right")
    at = order[min(int(reached), len(order) - 1)]
    misses, alarms = int(cells[0][at]), int(cells[1][at])
    return Tally(tp=n1 - misses, tn=n0 - alarms, fp=alarms, fn=misses)


def _binomial(n: int, k: int) -> tuple[Floats, Floats]:
    """The outcomes of Binomial(n, k/n) that carry all but LOST/2 of its mass, and their probabilities."""
    rate = k / n if n else 0.0
    reach = 7.0 * np.sqrt(n * rate * (1.0 - rate)) + 20.0  # beyond it there is less than that
    x = np.arange(max(0, int(k - reach)), min(n, int(k + reach)) + 1, dtype=np.float64)
    mass = np.exp(log_mass(x, n, rate))
    below, above = np.cumsum(mass), np.cumsum(mass[::-1])[::-1]
    keep = (below > LOST / 4) & (above > LOST / 4)
    return x[keep], mass[keep]


def redrawn(bound: Callable[[np.random.Generator], float]) -> float:
    """The 1 − POWER quantile of a bound over samples drawn again, with a fixed seed."""
    rng = np.random.default_rng(0)
    return float(np.quantile([bound(rng) for _ in range(REDRAWN)], 1.0 - POWER))


def needed(enough: Callable[[int], bool], most: int) -> float:
    """The n, to about 1 %, from which on it is enough; infinite where none up to `most` is."""
    low, high = 1, 2
    while not enough(high):
        low, high = high, 2 * high
        if high > most:
            return np.inf
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
