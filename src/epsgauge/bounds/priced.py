"""How likely so many right guesses of fair bits are at most, from a price for every ε at which a curve has a δ.

Prices are multipliers of linear programming: any will do for a proof, and the best are those of the program
(docs/guarantees.md has the theorem). So the program's solution is not trusted, only its prices are taken.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from itertools import accumulate

import numpy as np

from epsgauge.bounds.guesses import Guesses
from epsgauge.stats import region
from epsgauge.stats.arrays import Floats
from epsgauge.stats.steps import last_step

# ε that have prices: so many, most of them within a distance of the log-odds of a right guess, and some further away.
# The distance has a part that falls with the number of wrong guesses, as what these say of the log-odds gets surer.
POINTS, NEAR, FEW, FAR = 32, 0.6, 2.8, (-4.0, -2.4, 2.4, 4.0)
# Counts that a program looks at, in standard deviations below and above that of wrong guesses; of more, none is solved.
FEWER, MORE, MOST = 6.0, 12.0, 450
ROUNDS = 6  # of programs, each at the μ that the prices of the last one refute
# The μ that prices refute is one of this many steps in 1, a grid fixed in advance, and at most LARGEST.
STEPS, LARGEST = 100_000, 100
ROUNDING = 1e-12
UNIT = 2.0**-52


def priced_mu(guesses: Guesses, *, alpha: float, start: float) -> float:
    """A μ that the guesses refute, from `start`, which they refute too."""
    eps, best = prices_at(guesses, POINTS), start
    for _ in range(ROUNDS):
        prices = _prices(guesses, eps, np.asarray(region.gaussian_delta(eps, mu=best)))
        found = 0.0 if prices is None else _mu_at(guesses, eps, prices, alpha)
        if found <= best + 1.0 / STEPS:
            return max(found, best)
        best = found
    return best


def tail_without_delta(guesses: Guesses, eps: Floats, prices: Floats) -> float:
    """The smallest ν such that Pr[K ≥ v] ≤ ν + N Σ price · δ, but for 1e-9; infinite where no ν below 1 will do."""
    if not _enough(guesses, eps, prices, 1.0 - ROUNDING):
        return math.inf
    low, high = 0.0, 1.0 - ROUNDING
    while high - low > 1e-9:
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _enough(guesses, eps, prices, middle) else (middle, high)
    return high


def n_failing(guesses: Guesses) -> float:
    """How many bits may be given away for each unit of δ: with guesses of one value, half of them."""
    return guesses.n_bits * (1.0 if guesses.sides == "both" else 0.5)


def _enough(guesses: Guesses, eps: Floats, prices: Floats, nu: float) -> bool:
    """Whether there are φ(a) of at most all prices with a φ(a) − (r − a) C(φ(a + 1)) ≥ [a ≥ v] − ν for every a.

    C rises from 0 with the slope e^ε for as long as the price of ε, one ε after another. From a = r downwards the
    least φ is taken, rounded upwards.
    """
    r, v = guesses.n_guesses, guesses.n_right
    ends = list(accumulate(prices.tolist()))
    slopes = np.exp(eps).tolist()
    starts = [0.0, *accumulate(slope * price for slope, price in zip(slopes, prices.tolist(), strict=True))]
    up, cost = 1.0 + 16 * UNIT, 0.0
    for a in range(r, 0, -1):
        phi = ((1.0 if a >= v else 0.0) - nu + (r - a) * cost) / a
        if phi <= 0.0:
            if a < v:
                return True
            cost = 0.0
            continue
        phi *= up
        k = bisect_left(ends, phi)
        if k == len(ends):
            return False
        cost = (starts[k] + slopes[k] * (phi - (ends[k - 1] if k else 0.0))) * up
    return r * cost <= nu


def refuted_mu(nu: float, n_failing: float, eps: Floats, prices: Floats, alpha: float) -> float:
    """The largest μ of the grid at which ν + N Σ price · δ is at most α; 0 where there is none."""

    def refuted(k: int) -> bool:
        deltas = np.asarray(region.gaussian_delta(eps, mu=k / STEPS)) + ROUNDING
        return nu + n_failing * float(prices @ deltas) * (1.0 + ROUNDING) <= alpha

    return max(last_step(refuted, near=STEPS, most=LARGEST * STEPS), 0) / STEPS


def prices_at(guesses: Guesses, points: int) -> Floats:
    """The ε that have prices: most of them near the log-odds of a right guess, and some further away."""
    wrong = guesses.n_guesses - guesses.n_right
    middle = math.log((guesses.n_right + 0.5) / (wrong + 0.5))
    reach = NEAR + FEW / math.sqrt(wrong + 1.0)
    near = np.linspace(middle - reach, middle + reach, points - len(FAR))
    return np.unique(np.maximum(np.concatenate([near, middle + np.array(FAR)]), 0.01))


def _mu_at(guesses: Guesses, eps: Floats, prices: Floats, alpha: float) -> float:
    """The largest μ that these prices refute."""
    return refuted_mu(tail_without_delta(guesses, eps, prices), n_failing(guesses), eps, prices, alpha)


def _prices(guesses: Guesses, eps: Floats, deltas: Floats) -> Floats | None:
    """Multipliers of N δ in the program: the largest Pr[K ≥ v] where Σ (a Pr[a] − e^ε (r − a + 1) Pr[a − 1])₊ ≤ N δ.

    Over numbers of wrong guesses near the one seen; None where these are too many.
    """
    from scipy import optimize, sparse  # it takes a while to import

    r, seen = guesses.n_guesses, guesses.n_guesses - guesses.n_right
    spread = math.sqrt(seen * guesses.n_right / r) + 3.0
    first, last = max(0, math.floor(seen - FEWER * spread)), min(r, math.ceil(seen + MORE * spread))
    wrong = np.arange(first, last + 1.0)
    n, k = len(wrong), len(eps)
    if n > MOST or n < 2:
        return None
    right = sparse.diags_array((r - wrong[:-1]) / r, shape=(n - 1, n))
    more_wrong = sparse.diags_array(wrong[1:] / r, offsets=1, shape=(n - 1, n))
    inequalities = sparse.vstack([right - math.exp(e) * more_wrong for e in eps.tolist()])
    slack = -sparse.eye_array(k * (n - 1))
    budget = sparse.kron(sparse.eye_array(k), np.ones((1, n - 1)))
    whole = sparse.hstack([np.ones((1, n)), sparse.csr_array((1, k * (n - 1)))])
    table = sparse.vstack(
        [sparse.hstack([inequalities, slack]), sparse.hstack([sparse.csr_array((k, n)), budget]), whole]
    )
    limits = np.concatenate([np.zeros(k * (n - 1)), n_failing(guesses) / r * deltas, [1.0]])
    gain = np.concatenate([-(wrong <= seen).astype(np.float64), np.zeros(k * (n - 1))])
    done = optimize.linprog(gain, A_ub=table.tocsr(), b_ub=limits, bounds=(0, None), method="highs")
    if done.status != 0:
        return None
    prices: Floats = np.maximum(-done.ineqlin.marginals[k * (n - 1) : -1], 0.0) / r
    return prices
