"""A lower bound of ε from guesses of fair bits that weigh more the surer they are, under any dependence.

Guesses are in classes (`shapes`). The statistic is the likelihood ratio of a mixture of shapes, which say how often the
guesses of each class may be right, against ε. It grows with every right guess, and the right guesses of an (ε, δ)-DP
mechanism are dominated by independent coins, so that its law is known (docs/guarantees.md has the proof).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from scipy import special

from epsgauge.bounds.shapes import EDGES, classes, of_both_sides, of_one_side, places
from epsgauge.stats import checks
from epsgauge.stats.arrays import Bools, Floats, Ints
from epsgauge.stats.binomial import log_mass

STEP = 0.02  # of the grid of ε, which is fixed beforehand
# δ costs at most one of these shares of α: the first that leaves classes small enough, or the last.
COSTS = (0.1, 0.2, 0.5)
SMALL = 0.01  # of all bits
DRAWS = (2**12, 2**14, 2**16)  # of a simulated tail: more where fewer do not decide
AT_ONCE = 2**12
UNSURE = 1e-9  # how often the limit of a simulated tail may be too low; it is taken from α
TIE = 1e-9
UNLIKELY = 12.0  # shapes that are so much less likely than the best, in log, are left out
STREAM = 0x3E161  # of the draws here

UP, DOWN = slice(0, len(EDGES)), slice(len(EDGES), 2 * len(EDGES))


@dataclass(frozen=True, eq=False)
class Classed:
    """How many guesses of each class there are and how many of them are wrong, and what other rows say of the shapes."""

    n: Ints
    wrong: Ints
    fit_right: Ints
    fit_wrong: Ints


def classed(scores: Floats, bits: Ints, fit_scores: Floats, fit_bits: Ints) -> Classed:
    """The guesses about judged rows, and those about the rows that are set apart."""
    of = classes(places(np.concatenate([scores, fit_scores])))
    wrong = np.concatenate([bits, fit_bits]) != (of < len(EDGES))
    judged = np.arange(len(of)) < len(scores)

    def counted(rows: Bools) -> Ints:
        return np.bincount(of[rows], minlength=2 * len(EDGES))

    return Classed(counted(judged), counted(judged & wrong), counted(~judged & ~wrong), counted(~judged & wrong))


def weighted_lower_bound(guesses: Classed, *, n_bits: int, delta: float, level: float) -> float:
    """The largest ε of the grid such that it and all before it are refuted; 0 where there is none.

    `n_bits` counts every fair bit of the game, guessed or not.
    """
    d, alpha = checks.one("delta", checks.delta(delta)), 1.0 - checks.level(level)
    fits = (i for i in count(1) if not refutes(guesses, i * STEP, n_bits=n_bits, delta=d, alpha=alpha))
    return (next(fits) - 1) * STEP


def refutes(guesses: Classed, eps: float, *, n_bits: int, delta: float, alpha: float) -> bool:
    """Whether (ε, δ)-DP is refuted; if it holds, that has a probability of at most α."""
    wrong = float(special.expit(-eps))
    cost, fewest = _price(wrong, n_bits, delta, alpha)
    allowed = alpha - cost - UNSURE
    ratio = _ratio(guesses, wrong, fewest)
    if ratio is None or allowed <= 0:
        return False
    seen = float(ratio.log(ratio.wrong[None])[0]) - TIE
    if seen >= -math.log(allowed):  # by Markov's inequality
        return True
    return seen > 0 and _tail_is_below(ratio, seen, allowed, np.random.default_rng([STREAM, round(eps / STEP)]))


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Shapes of some of the classes, each as sure as ε or surer."""

    at: Ints  # the classes
    n: Ints
    right: Floats  # how likely a guess is right: shape by class
    log_prior: Floats
    chance: float  # of a wrong guess at ε

    def log_ratio(self, wrong: Ints) -> Floats:
        """Of the likelihood of so many wrong guesses, one row for each set of them, to that at ε."""
        for_right, for_wrong = np.log(self.right / (1.0 - self.chance)), np.log((1.0 - self.right) / self.chance)
        terms = (for_right @ self.n + self.log_prior) + wrong[:, self.at] @ (for_wrong - for_right).T
        top = terms.max(axis=1)
        out: Floats = top + np.log(np.exp(terms - top[:, None]).sum(axis=1))
        return out

    def draw(self, rng: np.random.Generator, into: Ints) -> None:
        """Sets of wrong guesses."""
        k = np.searchsorted(np.cumsum(np.exp(self.log_prior)), rng.random(len(into))).clip(max=len(self.log_prior) - 1)
        into[:, self.at] = rng.binomial(self.n, 1.0 - self.right[k])


@dataclass(frozen=True, eq=False)
class _Ratio:
    """The likelihood ratio of everything: shapes of both sides together, or of each side by itself."""

    n: Ints
    wrong: Ints
    together: _Mixture
    each: Sequence[_Mixture]
    log_together: float  # how likely it is that the sides belong together
    log_each: float

    def log(self, wrong: Ints) -> Floats:
        apart = sum((m.log_ratio(wrong) for m in self.each), np.zeros(len(wrong)))
        return np.logaddexp(self.log_together + self.together.log_ratio(wrong), self.log_each + apart)

    def draw(self, rng: np.random.Generator, n: int) -> Ints:
        """So many sets of wrong guesses, by the mixture: as ε has it where a shape is no surer."""
        out = rng.binomial(self.n, self.together.chance, (n, len(self.n)))
        first = rng.binomial(n, math.exp(self.log_together))
        self.together.draw(rng, out[:first])
        for mixture in self.each:
            mixture.draw(rng, out[first:])
        return out


def _tail_is_below(ratio: _Ratio, seen: float, allowed: float, rng: np.random.Generator) -> bool:
    """Whether the ratio reaches `seen` under ε with a probability of at most `allowed`: simulated, rounded upwards.

    A draw from the mixture counts by 1/ratio if it reaches `seen`; the mean is the tail, and no draw counts by more
    than exp(−seen). So Chernoff's inequality gives an upper limit of the tail.
    """
    most, log = math.exp(-seen), math.log(len(DRAWS) / UNSURE)
    total, drawn = 0.0, 0
    for n in DRAWS:
        while drawn < n:
            logs = ratio.log(ratio.draw(rng, AT_ONCE))
            total += float(np.exp(-logs[logs >= seen]).sum())
            drawn += AT_ONCE
        mean, room = total / drawn, most * log / drawn
        if mean + room + math.sqrt(room * room + 2.0 * mean * room) <= allowed:
            return True
        if mean - 3.0 * math.sqrt(mean * most / drawn) > allowed:
            return False
    return False


def _ratio(guesses: Classed, wrong: float, fewest: int) -> _Ratio | None:
    """None where no shape is surer than ε in a class of at least `fewest` guesses."""
    sides = [_joined(guesses.n[side], fewest) + side.start for side in (UP, DOWN)]
    begins = np.concatenate(sides)
    if not len(begins):
        return None
    parts = [np.append(s, side.stop) for s, side in zip(sides, (UP, DOWN), strict=True) if len(s)]

    def joined(x: Floats) -> Floats:
        return np.concatenate([np.add.reduceat(x[..., p[0] : p[-1]], p[:-1] - p[0], axis=-1) for p in parts], axis=-1)

    n, n_wrong = joined(guesses.n), joined(guesses.wrong)
    fits, mixtures = [], []
    for columns, chances in (
        (slice(None), of_both_sides()),
        (UP, of_one_side()),
        (DOWN, of_one_side()),
    ):
        fit = np.log(chances) @ guesses.fit_right[columns] + np.log1p(-chances) @ guesses.fit_wrong[columns]
        fits.append(float(special.logsumexp(fit)) - math.log(len(fit)))
        kept = fit > fit.max() - UNLIKELY
        whole = np.zeros((int(kept.sum()), len(guesses.n)))
        whole[:, columns] = chances[kept]
        inside = np.isin(begins, np.arange(len(guesses.n))[columns])
        mean = joined(whole * guesses.n) / np.maximum(n, 1)
        mixtures.append(_mixture(n, np.where(inside, mean, 0.0), fit[kept], wrong))
    if not any(len(m.at) for m in mixtures):
        return None
    both, apart = fits[0], fits[1] + fits[2]
    total = np.logaddexp(both, apart)
    each = [m for m in mixtures[1:] if len(m.at)]
    return _Ratio(n, n_wrong, mixtures[0], each, float(both - total), float(apart - total))


def _mixture(n: Ints, right: Floats, fit: Floats, wrong: float) -> _Mixture:
    at = np.flatnonzero((right > 1.0 - wrong).any(axis=0) & (n > 0))
    distinct, where = np.unique(np.maximum(right[:, at], 1.0 - wrong).round(9), axis=0, return_inverse=True)
    weight = np.bincount(where.ravel(), np.exp(fit - fit.max()))
    return _Mixture(at, n[at], distinct, np.log(weight / weight.sum()), wrong)


def _joined(n: Ints, fewest: int) -> Ints:
    """Where classes begin if those with fewer guesses are joined, from the outermost inwards; what is left is dropped."""
    begins, size = [], 0
    for j in range(len(n) - 1, -1, -1):
        size += int(n[j])
        if size >= fewest:
            begins.append(j)
            size = 0
    return np.array(begins[::-1], np.int64)


def _price(wrong: float, n_bits: int, delta: float, alpha: float) -> tuple[float, int]:
    """What δ costs, and how many guesses each class must have for it; known before any output is."""
    most = n_bits * delta * wrong  # if each guess were pivotal
    cost, fewest = most, 1
    for share in COSTS:
        if most <= share * alpha:
            return most, 1
        cost, fewest = share * alpha, _fewest(wrong, share * alpha / most)
        if fewest <= SMALL * n_bits:
            break
    return cost, fewest


def _fewest(wrong: float, pivotal: float) -> int:
    """How many guesses a class needs so that one is pivotal with a probability of at most `pivotal` on average.

    Of m other guesses the number of wrong ones has no single value that is more likely than the mode of a binomial.
    Averaged over m from 0 to the number of guesses less one; for large m by its value at the next smaller m computed.
    """
    m = np.unique(np.concatenate([np.arange(64.0), np.floor(np.geomspace(64.0, 1e7, 400))]))
    mode = np.exp(log_mass(np.floor((m + 1.0) * wrong), m, wrong))
    total = np.cumsum(np.append(0.0, mode[:-1] * np.diff(m)))  # over all smaller numbers than m
    enough = np.flatnonzero((total <= pivotal * m) & (m > 0))
    return int(m[enough[0]]) if len(enough) else 10**9
