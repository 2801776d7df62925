"""How likely a walk of right and wrong guesses is to reach one of several goals, and how much one guess can change it.

Each step is right with the probability q = e^ε/(1 + e^ε), whatever was before. A goal says: so many right among the
first n. `docs/guarantees.md` has the proofs.
"""

from __future__ import annotations

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Floats, Ints

# Mass below this at either end of a distribution is not followed; it counts as having reached a goal.
TINY = 1e-17
# What is computed is at most so much too small, up to 1e7 steps.
ROUNDING = 1e-5


def reached(sizes: Ints, goals: Ints, eps: float) -> float:
    """The probability, rounded up, that for some i at least goals[i] of the first sizes[i] steps are right.

    >>> round(reached(np.array([1, 2]), np.array([2, 2]), 0.0), 4)
    0.25
    """
    wrong = float(special.expit(-eps))
    up = np.arange(float(np.diff(sizes, prepend=0).max()) + 1.0)
    ways, log_wrong, log_right = special.gammaln(up + 1.0), special.xlogy(up, wrong), special.xlog1py(up, -wrong)
    alive, fewest = np.ones(1), 0  # the probability of each count that has reached none, and the first of these counts
    out, before = 0.0, 0
    for size, goal in zip(sizes.tolist(), goals.tolist(), strict=True):
        steps, before = size - before, size
        # 0, 1, … right ones, by the tables of all logarithms
        those, others = slice(steps + 1), slice(steps, None, -1)
        log_mass = ways[steps] - ways[others] - ways[those] + log_wrong[others] + log_right[those]
        mass, dropped, first = _without_tails(np.exp(log_mass))
        alive, fewest, out = np.convolve(alive, mass), fewest + first, out + dropped
        over = max(goal - fewest, 0)
        out += float(np.add.reduce(alive[over:]))
        alive, dropped, first = _without_tails(alive[:over])
        fewest, out = fewest + first, out + dropped
        if not alive.size:
            break
    return min(1.0, out * (1.0 + ROUNDING))


def influence(size: int, eps: float) -> float:
    """1 − q times the mean, over n below `size`, of the largest probability that Bin(n, q) has; it falls with ε.

    It is the most that a unit of failing mass can add to the chance to reach a goal, the first of which is at `size`.
    """
    right, wrong = float(special.expit(eps)), float(special.expit(-eps))
    n = np.arange(float(size))
    mode = np.minimum(np.floor((n + 1.0) * right), n)
    ways = special.gammaln(n + 1.0) - special.gammaln(mode + 1.0) - special.gammaln(n - mode + 1.0)
    largest = np.exp(ways + special.xlogy(mode, right) + special.xlogy(n - mode, wrong))
    return float(wrong * largest.mean() * (1.0 + ROUNDING))


def _without_tails(mass: Floats) -> tuple[Floats, float, int]:
    """The middle of a distribution, the mass that was left out on both sides, and how many counts below it."""
    if mass.size and mass[0] > TINY and mass[-1] > TINY:
        return mass, 0.0, 0
    kept = mass > TINY
    if not kept.any():
        return mass[:0], float(mass.sum()), 0
    first, end = int(kept.argmax()), len(mass) - int(kept[::-1].argmax())
    return mass[first:end], float(np.add.reduce(mass[:first]) + np.add.reduce(mass[end:])), first
