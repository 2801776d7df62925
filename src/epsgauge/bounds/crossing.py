"""The probability that ordered uniform numbers ever are above a boundary: U_(i) > h_i for some rank i.

N(t) is how many of n uniform numbers are at most t, so U_(i) > h_i says N(h_i) < i. The first rank i at which that
happens has N(h_i) = i − 1, whatever was before, and the n − i + 1 numbers beyond are uniform on (h_i, 1).
"""

from __future__ import annotations

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Floats, Ints

# Checkpoints stand so far apart in ½ log(i/(n + 1 − i)), and each rank looks so many of them ahead.
SPACING = 0.025
AHEAD = 50
# Above so many successes a bound stands for the binomial distribution function, which takes long to compute.
FEW = 100


def first_crossings(h: Floats, n: int) -> Floats:
    """q_i, the probability that rank i is the first with U_(i) > h_i, for the ranks 1, 2, … of rising h_i < 1. Exact.

    Pr[N(h_i) = i − 1] = Σ_j q_j Pr[i − j of the n − j + 1 numbers beyond h_j are at most h_i], solved from below.
    """
    k = len(h)
    log_factorial = special.gammaln(np.arange(1.0, n + 2.0))
    rest = np.log1p(-h)
    ranks = np.arange(1, k + 1)
    # of the pair (j, i): what depends on j alone, on i alone, and on both
    of_j = log_factorial[n - ranks + 1] - (n - ranks + 1) * rest
    of_i = (n - ranks + 1) * rest - log_factorial[n - ranks + 1]
    start = np.exp(log_factorial[n] - log_factorial[ranks - 1] + (ranks - 1) * np.log(h) + of_i)
    q = np.empty(k)
    for i in range(k):
        steps = np.arange(i, 0, -1)
        logs = steps * np.log(h[i] - h[:i]) - log_factorial[steps] + of_j[:i] + of_i[i]
        q[i] = max(start[i] - float(q[:i] @ np.exp(logs)), 0.0)
    return q


def crossing(h: Floats, n: int) -> float:
    """The probability that U_(i) > h_i for some of all n ranks. Exact, in n² steps."""
    return float(first_crossings(h, n).sum())


def crossing_bound(h: Floats, ranks: Ints, n: int) -> float:
    """An upper bound of the probability that U_(i) > h_i for some i of `ranks`; n may be large.

    Some ranks e are checkpoints. If the first crossing is at rank i, then N(h_i) ≤ i − 1, so a crossing at e > i has at
    least the probability p_ie = Pr[Bin(n − i + 1, (h_e − h_i)/(1 − h_i)) ≤ e − i]. With weights w such that
    Σ_e w_e p_ie ≥ 1 for every i, the mean of Σ_e w_e [U_(e) > h_e] is at least the probability of a crossing. The mean
    is Σ_e w_e Pr[U_(e) > h_e]. The weights are found from the last checkpoint down, each as small as it can be.
    """
    cell = np.ceil(0.5 * np.log(ranks / (n + 1.0 - ranks)) / SPACING)
    last = np.append(np.flatnonzero(np.diff(cell)), len(ranks) - 1)  # the checkpoints, where a cell ends
    first = np.append(0, last[:-1] + 1)
    own = np.repeat(np.arange(len(last)), last - first + 1)
    # the checkpoints ahead of each rank, its own first; beyond the last one there is none
    ahead = own[:, None] + np.arange(AHEAD)
    e = last[np.minimum(ahead, len(last) - 1)]
    h_i, i = h[:, None], ranks[:, None]
    p = np.where(ahead < len(last), _at_least(ranks[e] - i, n - i + 1, (h[e] - h_i) / (1.0 - h_i)), 0.0)
    weights = np.zeros(len(last) + AHEAD)
    for k in range(len(last) - 1, -1, -1):
        rows = p[first[k] : last[k] + 1]
        missing = 1.0 - rows[:, 1:] @ weights[k + 1 : k + AHEAD]
        weights[k] = max(0.0, float(np.max(missing / rows[:, 0])))
    above = special.betaincc(ranks[last], n + 1 - ranks[last], h[last])
    return float(weights[: len(last)] @ above)


def _at_least(k: Ints, n: Ints, p: Floats) -> Floats:
    """A lower bound of Pr[Bin(n, p) ≤ k] for 0 ≤ k; exact for small k.

    Zubkov and Serov (2013): it is at least Φ(±√(2n KL(k/n, p))), with the sign of k/n − p, for 0 < k < n.
    """
    k, n, p = np.broadcast_arrays(np.minimum(k, n), n, p)
    out = np.empty(k.shape)
    few = (k <= FEW) | (k == n)
    out[few] = special.bdtr(k[few].astype(np.float64), n[few], p[few])
    many = ~few
    share, p, trials = k[many] / n[many], p[many], n[many]
    divergence = special.rel_entr(share, p) + special.rel_entr(1.0 - share, 1.0 - p)
    root = np.sqrt(2.0 * trials * np.maximum(divergence, 0.0))
    out[many] = special.ndtr(np.where(share < p, -root, root))
    return out
