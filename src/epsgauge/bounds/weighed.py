"""The μ that the surest guesses of fair bits refute if surer ones weigh more, however they depend on each other.

The weight of wrong guesses is bounded as `priced` bounds their number: by prices, and by functions of what the other
guesses lost. Any prices and functions prove something (docs/guarantees.md has the theorem), so a linear program's
are taken, and what they prove is computed anew.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from epsgauge.bounds.guesses import Guesses
from epsgauge.bounds.one_run import one_run_fdp_mu, published_mu
from epsgauge.bounds.priced import ROUNDING, n_failing, prices_at, refuted_mu
from epsgauge.stats import region
from epsgauge.stats.arrays import Floats, Ints

# Of the guesses from the surest on: up to which share a class goes, and what a wrong guess in it weighs.
SHARES, WEIGHTS = (0.125, 0.375, 1.0), (3, 2, 1)
# Curves that refute more wrong guesses than this are tested by their number, and more weight refutes no other curve:
# the program would take long.
MOST_WRONG, MOST_LOST = 100, 180
# The program looks at weights up to so many standard deviations above that of wrong guesses.
MORE = 8.0
POINTS = 20  # ε that have prices
# Programs: the first at a μ so far above what the number of guesses refutes, others where one shows a μ so far off, or
# lower where it shows none.
ROUNDS, AHEAD, OFF, LOWER = 5, 0.04, 0.02, 0.7

_Entries = tuple[Any, Any, Any]  # of a matrix: rows, columns and values, each of which is spread over the others


@dataclass(frozen=True)
class Weighed:
    """The surest guesses, and what the wrong ones among them weigh."""

    guesses: Guesses
    lost: int

    @classmethod
    def of(cls, guesses: Guesses, right: Ints) -> Weighed:
        """From the numbers of right ones among the surest, for every number from 0 on; guesses beyond are wrong."""
        ends = ends_of(guesses.n_guesses)
        wrong = np.diff(ends) - np.diff(right[np.minimum(ends, len(right) - 1)])
        return cls(guesses, int(wrong @ WEIGHTS))

    def with_right(self, n_right: int) -> Weighed:
        """With as many right, and wrong ones that weigh as much on average as these do."""
        g = self.guesses
        before, after = g.n_guesses - g.n_right, g.n_guesses - n_right
        lost = math.ceil(self.lost * after / before) if before else after
        return Weighed(Guesses(n_right, g.n_guesses, g.n_bits, g.number, g.sides, g.of_alpha), lost)


def ends_of(n_guesses: int) -> Ints:
    """Where classes of so many guesses begin and end."""
    out: Ints = np.array([0, *(round(share * n_guesses) for share in SHARES)])
    return out


@lru_cache(maxsize=256)
def weighed_mu(weighed: Weighed, *, level: float) -> float:
    """The largest μ that the guesses refute, under Gaussian DP.

    >>> round(weighed_mu(Weighed(Guesses(960, 1000, 100_000), lost=54), level=0.95), 2)
    0.82
    """
    g = weighed.guesses
    start, least = published_mu(g, level=level), _least(g, level)
    if start <= least:
        return min(one_run_fdp_mu(g, level=level), least)
    return max(_refuted(weighed, 1.0 - g.level(level), start), least)


def tail_without_delta(ends: Ints, lost: int, eps: Floats, prices: Floats, phi: list[Floats]) -> float:
    """The smallest ν such that Pr[no more is lost] ≤ ν + N Σ price · δ, by these φ of 0, 1, … lost; beyond they are 0.

    What a right guess pays, what a wrong one of each class costs, and the class where a unit of weight costs most.
    """
    steps = np.concatenate([[0.0], np.cumsum(prices)])
    sums = np.concatenate([[0.0], np.cumsum(prices * np.exp(eps))])
    at = np.arange(max(len(p) for p in phi) + max(WEIGHTS) + 1)
    paid, dearest = np.zeros(len(at)), np.zeros(len(at))
    for size, weight, p in zip(np.diff(ends), WEIGHTS, phi, strict=True):
        if not size:
            continue
        right, wrong = np.zeros(len(at)), np.zeros(len(at))
        right[: len(p)] = np.clip(p, 0.0, steps[-1])
        wrong[weight : weight + len(p)] = np.interp(right[: len(p)], steps, sums)
        paid += size * right
        dearest = np.maximum(dearest, (right + wrong) / weight)
    needed = np.where(at <= lost, 1.0, 0.0) - paid + at * dearest
    return float(np.max(needed + ROUNDING * (1.0 + paid + at * dearest)))


def _least(guesses: Guesses, level: float) -> float:
    """The μ up to which the number of wrong guesses is tested, and not their weight: known beforehand."""
    right = guesses.n_guesses - MOST_WRONG
    if 2 * right <= guesses.n_guesses:
        return 0.0
    g = guesses
    return published_mu(Guesses(right, g.n_guesses, g.n_bits, g.number, g.sides, g.of_alpha), level=level)


def _refuted(weighed: Weighed, alpha: float, start: float) -> float:
    """A μ that the weight refutes; 0 if there is none."""
    g, best, at = weighed.guesses, 0.0, start + AHEAD
    eps = prices_at(g, POINTS)
    for _ in range(ROUNDS):
        found = _program(weighed, eps, np.asarray(region.gaussian_delta(eps, mu=at)))
        if found is None:
            break
        nu = tail_without_delta(ends_of(g.n_guesses), weighed.lost, eps, *found)
        mu = refuted_mu(nu, n_failing(g), eps, found[0], alpha)
        best, off = max(mu, best), abs(mu - at)
        if off < OFF:
            break
        at = best if best > 0 else LOWER * at
    return best


def _program(weighed: Weighed, eps: Floats, deltas: Floats) -> tuple[Floats, list[Floats]] | None:
    """Prices, and φ of each class, of the program: the largest Pr[S ≤ lost] over laws of the weight S that is lost.

    Its variables are Pr[s] and B_c[s] = E[wrong guesses of class c; S = s]. Right ones there, and wrong ones where
    one more is wrong, differ by no more than δ for each ε: Σ (n_c Pr[s] − B_c[s] − e^ε B_c[s + w_c])₊ ≤ N δ.
    """
    from scipy import optimize  # it takes a while to import

    g, k = weighed.guesses, len(eps)
    r, sizes = g.n_guesses, np.diff(ends_of(g.n_guesses))
    classes = [(int(size), weight) for size, weight in zip(sizes, WEIGHTS, strict=True) if size]
    each = weighed.lost / max(r - g.n_right, 1)  # what a wrong guess weighs
    spread = math.sqrt(weighed.lost * max(each, 1.0)) + 3.0
    last = min(sum(size * weight for size, weight in classes), math.ceil(weighed.lost + MORE * spread))
    s = np.arange(last + 1.0)
    n = len(s)
    if n <= WEIGHTS[0] or weighed.lost > MOST_LOST:
        return None

    laws, slack, slope = n * (1 + len(classes)), sum(k * (n - weight) for _, weight in classes), np.exp(eps)[:, None]
    all_s, row, share = np.arange(n), 0, 1.0 / r
    limits: list[_Entries] = [(slack + k, all_s, 1.0)]
    weights: list[_Entries] = [(all_s[1:], all_s[1:], -s[1:])]
    for i, (size, weight) in enumerate(classes):
        own, at = n * (1 + i), np.arange(n - weight)
        here = row + np.arange(k * len(at)).reshape(k, -1)
        limits += [(here, at, size * share), (here, own + at, -share), (here, own + at + weight, -slope * share)]
        limits += [(here, laws + here, -1.0), (slack + np.arange(k)[:, None], laws + here, 1.0)]
        weights += [(all_s, own + all_s, weight)]
        row += k * len(at)
    done = optimize.linprog(
        np.concatenate([np.where(s <= weighed.lost, -1.0, 0.0), np.zeros(laws - n + slack)]),
        A_ub=_sparse(limits, (slack + k + 1, laws + slack)),
        b_ub=np.concatenate([np.zeros(slack), n_failing(g) / r * deltas, [1.0]]),
        A_eq=_sparse(weights, (n, laws + slack)) / r,
        b_eq=np.zeros(n),
        bounds=(0, None),
        method="highs",
    )
    if done.status != 0:
        return None
    duals = np.maximum(-done.ineqlin.marginals, 0.0) / r
    phi, start = [], 0
    for size, weight in zip(sizes, WEIGHTS, strict=True):
        length = n - weight if size else 0
        phi.append(duals[start : start + k * length].reshape(k, length).sum(axis=0))
        start += k * length
    return duals[slack : slack + k], phi


def _sparse(entries: Sequence[_Entries], shape: tuple[int, int]) -> Any:
    """A matrix of these entries; what is said twice is summed."""
    from scipy import sparse

    spread = (np.broadcast_arrays(*entry) for entry in entries)
    row, column, value = (np.concatenate([x.ravel() for x in part]) for part in zip(*spread, strict=True))
    return sparse.csr_array((value, (row, column)), shape=shape)
