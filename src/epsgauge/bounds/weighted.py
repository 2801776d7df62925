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

import numpy as np

from epsgauge.bounds.classed import Classed, Prior
from epsgauge.bounds.given_away import Price, prices
from epsgauge.bounds.simulated import Simulated
from epsgauge.stats import checks, special
from epsgauge.stats.arrays import Floats, Ints

STEP = 0.02  # of the grid of ε, which is fixed beforehand
POINTS = 32  # of the grid, at once
DRAWS = (2**9, 2**11, 2**14)  # of a simulated tail: more where fewer do not decide
AT_ONCE = 2**9
UNSURE = 1e-4  # of α: how often the limit of a simulated tail may be too low
TIE = 1e-9
LESS = 0.1  # classes whose guesses seem less sure than this below ε are read
AGAIN = 1000  # draws for what would be detected
STREAM = 0x3E161  # of the draws here


@lru_cache(maxsize=256)
def weighted_lower_bound(
    guesses: Classed, *, n_bits: int, delta: float, level: float, independent: bool = False
) -> float:
    """The largest ε that all guesses refute if they are weighed.

    `n_bits` counts every fair bit of the game, guessed or not. `independent`: each has a model of its own, and models
    are independent of each other; then fewer guesses can have been given away.
    """
    d, alpha = checks.one("delta", checks.delta(delta)), 1.0 - checks.level(level)
    game = Game(n_bits, d, alpha, independent)
    return last_refuted(lambda points: refuted(guesses, points, game), game.may_refute)


def last_refuted(tested: Callable[[Floats], Iterator[bool]], may_be: Callable[[float], bool]) -> float:
    """The largest ε of the grid such that it and all from the first one on are refuted; 0 where there is none.

    The first one is that which `may_be`, whatever the outputs. That is known before any output is, and who is refuted
    there is refuted at all smaller ε.
    """
    first = next(i for i in count() if may_be((i + 1.0) * STEP))
    for start in count(first, POINTS):
        points: Floats = STEP * np.arange(start + 1.0, start + POINTS + 1.0)
        n = sum(1 for _ in takewhile(bool, tested(points)))
        if n < POINTS:
            break
    return (start + n) * STEP if start + n > first else 0.0


@dataclass(frozen=True)
class Game:
    """So many fair bits, each given away with δ, judged at 1 − α; `independent` as above."""

    n_bits: int
    delta: float
    alpha: float
    independent: bool

    def prices(self, eps: Floats) -> list[Price]:
        """Of δ, at each ε."""
        return prices(eps, n_bits=self.n_bits, delta=self.delta, alpha=self.alpha, independent=self.independent)

    def may_refute(self, eps: float) -> bool:
        """Whether δ costs less than α at ε, as it does from some ε on: the cost falls as e^−ε."""
        return self.prices(np.array([eps]))[0].cost < self.alpha


def refuted(guesses: Classed, eps: Floats, game: Game) -> Iterator[bool]:
    """Whether (ε, δ)-DP is refuted, for one ε after another; where it holds, that has a probability of at most α."""
    wrong, unsure = special.expit(-eps), UNSURE * game.alpha
    paid = game.prices(eps)
    stage = [guesses.judged_at(float(chance)) for chance in special.expit(eps - LESS)]
    of = [(i, price.aside) for i, price in zip(stage, paid, strict=True)]
    judged = {(i, aside): guesses.stages[i][1].without(aside) for i, aside in of}
    seen = np.zeros(len(eps))
    for which, left in judged.items():
        at = np.array([which == each for each in of])
        seen[at] = _log_ratios(left, wrong[at]) - TIE
    for i, price in enumerate(paid):
        allowed = (game.alpha - price.cost - unsure) * math.exp(-price.beyond)
        if allowed <= 0 or seen[i] <= 0:
            yield False
        elif seen[i] >= -math.log(allowed):  # by Markov's inequality
            yield True
        else:
            rng = np.random.default_rng([STREAM, round(eps[i] / STEP)])
            ratio = _ratio(judged[of[i]], float(wrong[i]))
            yield ratio is not None and _tail_is_below(ratio, allowed, unsure, rng)


def again_at(guesses: Classed, eps: float, quantile: float) -> Classed:
    """Guesses drawn again with the measured shares of wrong ones: as telling against ε as this quantile of draws."""
    rng, n = np.random.default_rng(STREAM), guesses.n
    draws = rng.binomial(n, (guesses.wrong + 0.5) / (n + 1.0), (AGAIN, len(n)))
    judged = guesses.stages[guesses.judged_at(float(special.expit(eps + STEP - LESS)))][1]
    ratio = _ratio(judged, float(special.expit(-eps - STEP)))
    if ratio is None:
        return guesses
    telling = ratio.log(draws)
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


def _log_ratios(guesses: Classed, wrong: Floats) -> Floats:
    """log of the likelihood ratio of the guesses against each ε, at which a guess is wrong with such a chance."""
    n_wrong = guesses.wrong
    n_right = guesses.n - n_wrong

    def of(prior: Prior) -> Floats:
        for_right = np.maximum(np.log(prior.right) - np.log1p(-wrong)[:, None, None], 0.0)
        for_wrong = np.minimum(np.log1p(-prior.right) - np.log(wrong)[:, None, None], 0.0)
        at = prior.columns
        return log_sum(for_right @ n_right[at] + for_wrong @ n_wrong[at] + prior.log_weight)

    log_together, log_each = guesses.log_weights
    up, down = (of(prior) for prior in guesses.each)
    out: Floats = np.logaddexp(log_together + of(guesses.together), log_each + up + down)
    return out


def _ratio(guesses: Classed, wrong: float) -> _Ratio | None:
    """None where no shape is surer than ε in a class that has guesses."""
    together, *each = (_mixture(guesses.n, prior, wrong) for prior in (guesses.together, *guesses.each))
    if not any(len(m.at) for m in (together, *each)):
        return None
    return _Ratio(guesses.n, guesses.wrong, together, [m for m in each if len(m.at)], *guesses.log_weights)


def log_sum(terms: Floats) -> Floats:
    """log of the sum of exp(terms) along the last axis; `terms` is used up."""
    top = np.maximum.reduce(terms, axis=-1)
    terms -= top[..., None]
    out: Floats = top + np.log(np.add.reduce(np.exp(terms, out=terms), axis=-1))
    return out


def _mixture(n: Ints, prior: Prior, wrong: float) -> _Mixture:
    """Where no shape is surer than ε a class does not matter, and where one is not it takes the chance of ε."""
    of = np.arange(len(n))[prior.columns]
    within = np.flatnonzero((prior.right > 1.0 - wrong).any(axis=0) & (n[of] > 0))
    surer = np.maximum(prior.right[:, within].round(9), 1.0 - wrong)
    distinct, where = np.unique(surer, axis=0, return_inverse=True)
    weight = np.bincount(where.ravel(), np.exp(prior.log_weight))
    return _Mixture(of[within], n[of[within]], distinct, np.log(weight / weight.sum()), wrong)
