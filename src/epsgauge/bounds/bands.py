"""Upper limits for a distribution function at all its points at once, equally sharp at every rank.

After n samples, and with k of them below a threshold, Clopper-Pearson's upper limit of Pr[score < threshold] is the
1 − η quantile of Beta(k + 1, n − k). Here η is so small that the limits of all k hold together with 1 − α.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from epsgauge.bounds.crossing import crossing, crossing_bound
from epsgauge.stats import beta
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.roots import probit

# Up to so many samples η is exact; above, a bound of the same probability on a grid of ranks makes it somewhat smaller.
EXACT = 2000
# Beyond EXACT so many ranks at either end are all in the grid.
ALL_RANKS = 200
# Steps of the grid between them, in standard deviations of the rank.
STEP = 0.3
# Probabilities below this are bounded and not computed.
TINY = 1e-8
# η is at most so much smaller than it could be.
SLACK = 0.01


@lru_cache(maxsize=256)
def band(n: int, alpha: float) -> tuple[Ints, Floats]:
    """Ranks i and limits h_i of n uniform numbers: U_(i) ≤ h_i for all of them with a probability of at least 1 − α."""
    ranks = _ranks(n)
    eta = _local_level(n, alpha)
    return ranks, _limits(n, ranks, eta)


def upper_limits(below: Ints, n: int, alpha: float) -> Floats:
    """Upper limits of Pr[score < t] after `below` of n scores were below t, right for all t at once with 1 − α."""
    ranks, h = band(n, alpha)
    # F(t−) ≤ U_(k + 1) ≤ U_(i) for the next rank i of the grid; with all n below, there is no limit but 1
    return np.append(h, 1.0)[np.searchsorted(ranks, below + 1)]


@lru_cache(maxsize=256)
def _local_level(n: int, alpha: float) -> float:
    """The η of every single rank, found on logarithms, where the slope is near 1; never too large."""
    target, ranks = np.log(alpha), _ranks(n)

    # the exact sum has terms that cancel, so a tiny probability is left to the bound
    exact = n <= EXACT and alpha >= TINY

    def log_miss(log_eta: float) -> float:
        h = _limits(n, ranks, float(np.exp(log_eta)))
        return float(np.log(crossing(h, n) if exact else crossing_bound(h, ranks, n)) - target)

    # one rank alone has η = α; all together at most nη
    low, high = target - np.log(n), target
    if n == 1:
        return alpha
    guess = target - np.log(min(max(15.5 * np.log(n) - 50.0, 2.0), n))
    for _ in range(60):
        f = log_miss(guess)
        if -SLACK <= f <= 0.0:
            break
        low, high = (guess, high) if f < 0 else (low, guess)
        # aim just below the target
        guess = min(max(guess - f - 0.5 * SLACK, low + 0.1 * (high - low)), high - 0.1 * (high - low))
    else:
        guess = low
    return float(np.exp(guess))


def _ranks(n: int) -> Ints:
    """The ranks that the band looks at: all, or all at both ends and steps of a part of a deviation between."""
    if n <= EXACT:
        return np.arange(1, n + 1)
    # dθ of the angle with sin²θ = i/n is di / (2 √(i(n − i)/n) √n)
    count = int(np.ceil(np.pi * np.sqrt(n) / STEP))
    middle = np.round(n * np.sin(np.linspace(0.0, np.pi / 2, count)) ** 2).astype(np.int64)
    ends = np.arange(1, ALL_RANKS + 1)
    return np.unique(np.concatenate([ends, n + 1 - ends, middle[(middle > 0)]]))


def _limits(n: int, ranks: Ints, eta: float) -> Floats:
    """The 1 − η quantiles of Beta(i, n − i + 1); far from both ends a close approximation, which must only rise."""
    i = ranks.astype(np.float64)
    j = n + 1.0 - i
    inner = np.minimum(i, j) > (ALL_RANKS if n > EXACT else n)
    out = np.empty(len(i))
    out[~inner] = beta.quantile(i[~inner], j[~inner], eta, upper=True)
    out[inner] = _rough_quantile(i[inner], j[inner], eta)
    return np.maximum.accumulate(out)


def _rough_quantile(a: Floats, b: Floats, tail: float) -> Floats:
    """The 1 − tail quantile of Beta(a, b) for large shapes (Abramowitz and Stegun, 26.5.22)."""
    y = -float(probit(np.asarray(tail), np.asarray(1.0 - tail)))
    p, q = 1.0 / (2.0 * a - 1.0), 1.0 / (2.0 * b - 1.0)
    h, bend = 2.0 / (p + q), (y * y - 3.0) / 6.0
    w = y * np.sqrt(h + bend) / h + (q - p) * (bend + 5.0 / 6.0 - 2.0 / (3.0 * h))
    return a / (a + b * np.exp(-2.0 * w))
