"""A lower bound of ε from guesses of fair bits that weigh more the surer they are, under any dependence.

Guesses are in classes (`shapes`). The statistic is the likelihood ratio of a mixture of shapes, which say how often the
guesses of each class may be right, against ε. It grows with every right guess, and the right guesses of an (ε, δ)-DP
mechanism are dominated by independent coins, so that its law is known (docs/guarantees.md has the proof).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import count, takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.bounds.classed import DOWN, UP, Classed, Prior
from epsgauge.bounds.simulated import Simulated
from epsgauge.stats import checks, special
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.binomial import log_mass

STEP = 0.02  # of the grid of ε, which is fixed beforehand
POINTS = 32  # of the grid, at once
# δ costs at most one of these shares of α: the first that leaves classes small enough, or the last.
COSTS = (0.1, 0.2, 0.5)
SMALL = 0.01  # of all bits
MOST = 0.45  # of all bits: a class for either side
DRAWS = (2**9, 2**11, 2**14)  # of a simulated tail: more where fewer do not decide
AT_ONCE = 2**9
UNSURE = 1e-4  # of α: how often the limit of a simulated tail may be too low
TIE = 1e-9
LESS = 0.1  # classes whose guesses seem less sure than this below ε are read
AGAIN = 1000  # draws for what would be detected
STREAM = 0x3E161  # of the draws here


@lru_cache(maxsize=256)
def weighted_lower_bound(guesses: Classed, *, n_bits: int, delta: float, level: float) -> float:
    """The largest ε of the grid such that it and all from the first one on are refuted; 0 where there is none.

    `n_bits` counts every fair bit of the game, guessed or not.
    """
    d, alpha = checks.one("delta", checks.delta(delta)), 1.0 - checks.level(level)
    first = _first(n_bits, d, alpha)
    for start in count(first, POINTS):
        points: Floats = STEP * np.arange(start + 1.0, start + POINTS + 1.0)
        said = refuted(guesses, points, n_bits=n_bits, delta=d, alpha=alpha)
        n = sum(1 for _ in takewhile(bool, said))
        if n < POINTS:
            break
    return (start + n) * STEP if start + n > first else 0.0


def _first(n_bits: int, delta: float, alpha: float) -> int:
    """Points of the grid that are passed over: δ costs so much there that no class has the guesses that it needs.

    That is known before any output is. Who is refuted at the first point is refuted at all smaller ε.
    """
    enough = max(1.0, MOST * n_bits)
    return next(k for k in count() if _price(float(special.expit(-STEP * (k + 1))), n_bits, delta, alpha)[1] <= enough)


def refuted(guesses: Classed, eps: Floats, *, n_bits: int, delta: float, alpha: float) -> Iterator[bool]:
    """Whether (ε, δ)-DP is refuted, for one ε after another; where it holds, that has a probability of at most α."""
    wrong, unsure = special.expit(-eps), UNSURE * alpha
    prices = [_price(float(chance), n_bits, delta, alpha) for chance in wrong]
    costs, fewest = np.array([cost for cost, _ in prices]), np.array([n for _, n in prices])
    stage = np.array([guesses.judged_at(float(chance)) for chance in special.expit(eps - LESS)])
    seen = np.zeros(len(eps))
    for k, n in {*zip(stage.tolist(), fewest.tolist(), strict=True)}:
        at = (stage == k) & (fewest == n)
        seen[at] = _log_ratios(guesses.stages[k][1], wrong[at], n) - TIE
    for i, allowed in enumerate((alpha - costs - unsure).tolist()):
        if allowed <= 0 or seen[i] <= 0:
            yield False
        elif seen[i] >= -math.log(allowed):  # by Markov's inequality
            yield True
        else:
            rng = np.random.default_rng([STREAM, round(eps[i] / STEP)])
            ratio = _ratio(guesses.stages[stage[i]][1], float(wrong[i]), int(fewest[i]))
            yield ratio is not None and _tail_is_below(ratio, allowed, unsure, rng)


def again_at(guesses: Classed, eps: float, quantile: float) -> Classed:
    """Guesses drawn again with the measured shares of wrong ones: as telling against ε as this quantile of draws."""
    rng, n = np.random.default_rng(STREAM), guesses.n
    draws = rng.binomial(n, (guesses.wrong + 0.5) / (n + 1.0), (AGAIN, len(n)))
    judged = guesses.stages[guesses.judged_at(float(special.expit(eps + STEP - LESS)))][1]
    ratio = _ratio(judged, float(special.expit(-eps - STEP)), 1)
    if ratio is None:
        return guesses
    telling = ratio.log(_join(judged.n, 1)(draws))
    return replace(guesses, wrong=draws[np.argsort(telling)[int(quantile * AGAIN)]])


@dataclass(frozen=True, eq=False)
class _Mixture:
    """Shapes of some of the classes, each as sure as ε or surer."""

    at: Ints  # the classes
    n: Ints
    right: Floats  # how likely a guess is right: shape by class
    log_prior: Floats
    chance: float  # of a wrong guess at ε

    @cached_property
    def log_factors(self) -> tuple[Floats, Floats]:
        """What it counts for each shape if all guesses are right, and what each wrong one changes: class by shape."""
        for_right, for_wrong = np.log(self.right / (1.0 - self.chance)), np.log((1.0 - self.right) / self.chance)
        return for_right @ self.n + self.log_prior, np.ascontiguousarray((for_wrong - for_right).T)

    def log_ratio(self, wrong: Ints) -> Floats:
        """Of the likelihood of so many wrong guesses, one row for each set of them, to that at ε."""
        all_right, each_wrong = self.log_factors
        terms: Floats = wrong[:, self.at].astype(np.float64) @ each_wrong
        terms += all_right
        return log_sum(terms)

    def draw(self, rng: np.random.Generator, into: Ints) -> None:
        """Sets of wrong guesses."""
        k = np.searchsorted(self._ends, rng.random(len(into)))
        into[:, self.at] = rng.binomial(self.n, self._chances[np.minimum(k, len(self._chances) - 1)])

    @cached_property
    def _ends(self) -> Floats:
        """Shapes one after the other, each as wide as it is likely."""
        return np.cumsum(np.exp(self.log_prior))

    @cached_property
    def _chances(self) -> Floats:
        """Of wrong guesses: shape by class."""
        return 1.0 - self.right


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
        first = int(rng.binomial(n, math.exp(self.log_together)))
        out = np.zeros((n, len(self.n)), np.int64)
        for rows, mixtures in ((slice(first), [self.together]), (slice(first, n), self.each)):
            drawn = {int(j) for mixture in mixtures for j in mixture.at}
            for j in self.matter - drawn:
                out[rows, j] = rng.binomial(self.n[j], self.together.chance, len(out[rows]))
            for mixture in mixtures:
                mixture.draw(rng, out[rows])
        return out

    @cached_property
    def matter(self) -> set[int]:
        """The classes for which some shape is surer than ε."""
        return {int(j) for mixture in (self.together, *self.each) for j in mixture.at}


def _tail_is_below(ratio: _Ratio, allowed: float, unsure: float, rng: np.random.Generator) -> bool:
    """Whether the ratio is as high under ε with a probability of at most `allowed`: simulated, rounded upwards.

    A draw from the mixture counts by 1/ratio if it is as high as what was seen; the mean is the tail, and no draw
    counts by more than exp(−seen).
    """
    seen = float(ratio.log(ratio.wrong[None])[0]) - TIE  # as draws are: other sums may be rounded otherwise
    tail = Simulated(math.exp(-seen), unsure / len(DRAWS))
    for n in DRAWS:
        while tail.n < n:
            logs = ratio.log(ratio.draw(rng, AT_ONCE))
            tail.add(np.where(logs >= seen, np.exp(-logs), 0.0))
        if tail.at_most <= allowed:
            return True
        if not tail.may_be_below(allowed, DRAWS[-1]):
            return False
    return False


def _log_ratios(guesses: Classed, wrong: Floats, fewest: int) -> Floats:
    """log of the likelihood ratio of the guesses against each ε, at which a guess is wrong with such a chance."""
    joined = _join(guesses.n, fewest)
    n_wrong = joined(guesses.wrong)
    n_right = joined(guesses.n) - n_wrong

    def of(prior: Prior) -> Floats:
        right = _right(guesses, prior, joined)
        for_right = np.maximum(np.log(right) - np.log1p(-wrong)[:, None, None], 0.0)
        for_wrong = np.minimum(np.log1p(-right) - np.log(wrong)[:, None, None], 0.0)
        return log_sum(for_right @ n_right + for_wrong @ n_wrong + prior.log_weight)

    log_together, log_each = guesses.log_weights
    up, down = (of(prior) for prior in guesses.each)
    out: Floats = np.logaddexp(log_together + of(guesses.together), log_each + up + down)
    return out


def _ratio(guesses: Classed, wrong: float, fewest: int) -> _Ratio | None:
    """None where no shape is surer than ε in a class of at least `fewest` guesses."""
    joined = _join(guesses.n, fewest)
    n = joined(guesses.n)
    together, *each = (
        _mixture(n, _right(guesses, prior, joined), prior.log_weight, wrong)
        for prior in (guesses.together, *guesses.each)
    )
    if not any(len(m.at) for m in (together, *each)):
        return None
    return _Ratio(n, joined(guesses.wrong), together, [m for m in each if len(m.at)], *guesses.log_weights)


def _right(guesses: Classed, prior: Prior, joined: Callable[[NDArray[Any]], NDArray[Any]]) -> Floats:
    """How likely guesses are right, shape by joined class; those of classes without a shape are coins."""
    right = np.full((len(prior.right), len(guesses.n)), 0.5)
    right[:, prior.columns] = prior.right
    out: Floats = joined(right * guesses.n) / joined(guesses.n)
    return out


def log_sum(terms: Floats) -> Floats:
    """log of the sum of exp(terms) along the last axis; `terms` is used up."""
    top = np.maximum.reduce(terms, axis=-1)
    terms -= top[..., None]
    out: Floats = top + np.log(np.add.reduce(np.exp(terms, out=terms), axis=-1))
    return out


def _mixture(n: Ints, right: Floats, log_weight: Floats, wrong: float) -> _Mixture:
    """Where no shape is surer than ε a class does not matter, and where one is not it takes the chance of ε."""
    at = np.flatnonzero((right > 1.0 - wrong).any(axis=0) & (n > 0))
    distinct, where = np.unique(np.maximum(right[:, at].round(9), 1.0 - wrong), axis=0, return_inverse=True)
    weight = np.bincount(where.ravel(), np.exp(log_weight))
    return _Mixture(at, n[at], distinct, np.log(weight / weight.sum()), wrong)


def _join(n: Ints, fewest: int) -> Callable[[NDArray[Any]], NDArray[Any]]:
    """Sums over classes that are joined, from the outermost inwards, until each has so many guesses.

    What is left in the middle of a side is dropped.
    """
    begins: list[NDArray[np.intp]] = []
    for side in (UP, DOWN):
        ends, size = [side.stop], 0
        for j in range(side.stop - 1, side.start - 1, -1):
            size += int(n[j])
            if size >= fewest:
                ends.append(j)
                size = 0
        begins.append(np.array(ends[::-1]))

    def joined(x: NDArray[Any]) -> NDArray[Any]:
        sums = [np.add.reduceat(x[..., e[0] : e[-1]], e[:-1] - e[0], axis=-1) for e in begins if len(e) > 1]
        return np.concatenate([x[..., :0], *sums], axis=-1)

    return joined


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
    m, total = _modes(wrong)
    enough = np.flatnonzero((total <= pivotal * m) & (m > 0))
    return int(m[enough[0]]) if len(enough) else 10**9


@lru_cache(maxsize=1024)
def _modes(wrong: float) -> tuple[Floats, Floats]:
    """Numbers m, and for each the sum of the modes of all smaller numbers; the ε are those of the grid."""
    m = np.unique(np.concatenate([np.arange(64.0), np.floor(np.geomspace(64.0, 1e7, 400))]))
    mode = np.exp(log_mass(np.floor((m + 1.0) * wrong), m, wrong))
    return m, np.cumsum(np.append(0.0, mode[:-1] * np.diff(m)))
