"""The ideal: how high a lower bound of ε can be on average if the law of scores is known, by a KL projection.

P is the true law of a score and its fair bit, D(ε) the KL divergence of P to the nearest law that is (ε, δ)-DP. The
log-likelihood ratio of N samples between both has a mean of N D under P and −N D under the other, and for a small D a
variance of 2 N D under both. So a test at a one-sided level with the quantile z refutes ε in half of all runs where
2 N D = √(2 N D) z, that is N D(ε) = z²/2. No test at that level refutes the nearest law more often, so no guaranteed
bound has a higher median. That is for many samples, and none of them chooses a rule.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize, special

from epsgauge.stats.arrays import Floats


def eps_at(ins: Floats, outs: Floats, delta: float) -> float:
    """ε at δ of two laws: the probabilities of each score with b = 1 and with b = 0."""

    def too_much(eps: float) -> float:
        grow = math.exp(eps)
        return float(max(np.maximum(ins - grow * outs, 0).sum(), np.maximum(outs - grow * ins, 0).sum())) - delta

    return 0.0 if too_much(0.0) <= 0 else float(optimize.brentq(too_much, 0.0, 20.0))


def divergence(ins: Floats, outs: Floats, *, eps: float, delta: float) -> float:
    """The smallest mean of KL(ins, q1) and KL(outs, q0) over all laws q1, q0 that are (ε, δ)-DP, by its dual.

    `a` and `b` price 1 in the sums of q1 and q0, `high` and `low` price δ in the sums of (q1 − e^ε q0)₊ and
    (q0 − e^ε q1)₊. At the optimum all prices together are 1, and the ratio of the true law to the nearest one is twice
    what a score costs.
    """
    grow = math.exp(eps)

    def minus(at: Floats) -> float:
        a, share_high, share_low = at
        b = (1 - a * (1 + delta * share_low / grow)) / (1 + delta * share_high / grow)
        edge = grow * (ins + outs)
        high = np.clip((ins * b - grow * outs * a) / edge, 0, share_high * b / grow)
        low = np.clip((outs * a - grow * ins * b) / edge, 0, share_low * a / grow)
        of_ins, of_outs = np.log(2 * (a + high - grow * low)), np.log(2 * (b + low - grow * high))
        return -0.5 * float(ins @ of_ins + outs @ of_outs)

    found = optimize.minimize(
        minus,
        [0.5, 0.9, 0.9],
        method="Powell",
        bounds=[(0.01, 0.99), (0, 1 - 1e-9), (0, 1 - 1e-9)],
        options={"xtol": 1e-9, "ftol": 1e-12},
    )
    return -float(found.fun)


def ideal(ins: Floats, outs: Floats, n: int, *, delta: float, level: float) -> float:
    """The ε with n D(ε) = z²/2."""
    need = float(special.ndtri(level)) ** 2 / 2

    def more(eps: float) -> float:
        return n * divergence(ins, outs, eps=eps, delta=delta) - need

    truth = eps_at(ins, outs, delta)
    return float(optimize.brentq(more, 0.0, truth, xtol=1e-4)) if more(0.0) > 0 else 0.0
