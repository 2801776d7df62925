"""Guesses about independent models, from the surest on, held against a whole trade-off curve; surer ones weigh more.

A curve says how many of the surest guesses are wrong at least (`LeastWrong`). The statistic is the sum of the weights
of wrong guesses. Weights belong to ranks, so no output changes them, and the best attack that the curve allows has its
surest guesses at the largest weights: its law bounds that of every other (docs/guarantees.md has the proof).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property

import numpy as np

from epsgauge.bounds.simulated import Wager
from epsgauge.stats import brent, special
from epsgauge.stats.arrays import Bools, Floats, Ints

# Where classes of ranks end, as shares of all guesses.
SHARES: Floats = np.array([0.01, 0.03, 0.06, 0.1, 0.2, 0.3, 0.45, 0.65, 1.0])
# The surest guesses that count, as shares of all; the first has MAIN of what may be missed, the others equal parts of
# the rest.
TOPS = (1.0, 0.3, 0.1, 0.03)
MAIN = 0.9
SMALL = 50  # in smaller classes the last guess, which is the least sure, is drawn by itself
DRAWS = (2**10, 2**11, 2**12, 2**13, 2**14)  # more where fewer do not decide
# Of what may be missed: how often a simulated tail may be taken as too small, and how often ranks are below a limit.
UNSURE, BEYOND = 1e-4, 0.01
STEEPEST = 60.0  # slopes of a tilt, times the largest weight
ROUNDING = 1e-12
STREAM = 0x4A6C  # of the draws here
# Where to search: the first step, how many times the last one a step may be, how many curves are tried with few draws,
# and from which distance on, which is about the error of theirs, all draws are taken.
FIRST, LONGEST, TRIES, NEAR = 24, 4, 20, 0.03
FAR, FLAT = 1e-300, 1e-9  # no probability counts as smaller, and no change of a distance from one curve to the next


@dataclass(frozen=True, eq=False)
class LeastWrong:
    """How many of all guesses are among the u surest and wrong, at least: the corners of a convex function of u."""

    share: Floats
    wrong: Floats

    @classmethod
    def of(cls, eps: Floats, delta: Floats) -> LeastWrong:
        """Where δ is at most `delta` at each of `eps`, which ascend from 0.

        Of guesses with a share of u, of which x are wrong, u − x ≤ δ + e^ε x.
        """
        lines, corners = [(0.0, 0.0)], [0.0]  # slope and where it leaves 0; from where on it is the highest
        for slope, start in zip(special.expit(-eps)[::-1].tolist(), delta[::-1].tolist(), strict=True):
            at = 0.0
            while lines:
                last, before = lines[-1]
                at = (slope * start - last * before) / (slope - last) if slope > last else math.inf
                if at > corners[-1]:
                    break
                at = 0.0
                lines.pop()
                corners.pop()
            if at < 1.0:
                lines.append((slope, start))
                corners.append(at)
        slopes, starts = np.array(lines).T
        share = np.append(corners, 1.0)
        wrong = np.append(slopes * (share[:-1] - starts), slopes[-1] * (1.0 - starts[-1]))
        return cls(share, np.maximum(wrong, 0.0) * (1.0 - ROUNDING))

    def __call__(self, u: Floats) -> Floats:
        out: Floats = np.interp(u, self.share, self.wrong)
        return out

    @property
    def in_all(self) -> float:
        """Of all guesses."""
        return float(self.wrong[-1])

    def chance(self, u: Floats) -> Floats:
        """How likely the guess at the share u is wrong at least."""
        at = np.clip(np.searchsorted(self.share, u, side="left"), 1, len(self.share) - 1) - 1
        out: Floats = np.clip(self._slopes[at], 0.0, 0.5)
        return out

    @cached_property
    def _slopes(self) -> Floats:
        """Before each corner but the first."""
        out: Floats = np.diff(self.wrong) / np.maximum(np.diff(self.share), 1e-300)
        return out


NO_LEAK = LeastWrong(np.array([0.0, 1.0]), np.array([0.0, 0.5]))


@dataclass(frozen=True)
class Ranked:
    """How many guesses each class of ranks has, from the surest on, and how many of these are wrong."""

    sizes: tuple[int, ...]
    wrong: tuple[int, ...]

    @classmethod
    def of(cls, wrong: Bools) -> Ranked:
        """Whether each guess is wrong, from the surest on."""
        ends = np.unique(np.ceil(SHARES * len(wrong)).astype(np.int64))
        ends = ends[ends > 0]
        counts = np.diff(np.append(0, np.append(0, np.cumsum(wrong))[ends])) if len(ends) else ends
        return cls(tuple(np.diff(ends, prepend=0).tolist()), tuple(counts.tolist()))

    @property
    def n(self) -> int:
        return sum(self.sizes)

    @property
    def n_wrong(self) -> int:
        return sum(self.wrong)

    @cached_property
    def middles(self) -> Floats:
        """The middle of each class, as a share of all guesses."""
        ends = np.cumsum(self.sizes)
        out: Floats = (ends - 0.5 * np.array(self.sizes)) / max(self.n, 1)
        return out

    @property
    def mu_nearby(self) -> float:
        """Of normal scores whose guesses are wrong a little more often: where a search begins."""
        wrong = (self.n_wrong + 1.0 + 2.0 * math.sqrt(self.n_wrong)) / (self.n + 2.0)
        return max(-2.0 * float(special.ndtri(min(wrong, 0.5))), 0.02)

    def again(self, power: float) -> Ranked:
        """Drawn again with the measured shares of wrong guesses: as telling as all but `power` of such draws."""
        rng, n = np.random.default_rng(STREAM), np.array(self.sizes)
        draws = rng.binomial(n, (np.array(self.wrong) + 0.5) / (n + 1.0), (1000, len(n)))
        telling = np.argsort(draws @ weights(self.middles))
        return Ranked(self.sizes, tuple(draws[telling[int(power * len(draws))]].tolist()))


def weights(share: Floats, top: float = 1.0) -> Floats:
    """They fall evenly from the surest guess to that at the share `top`: one wrong guess costs little, however sure."""
    out: Floats = np.maximum(1.0 - share / top, 0.0)
    return out


def last_refuted(
    guesses: Ranked, curve: Callable[[int], LeastWrong], last: int, *, alpha: float, near: int = 0
) -> int | None:
    """The last of the curves 0, …, `last`, each lower than those before it, that the guesses refute; None for none.

    It is refuted, and may lie a little before the last that is. A true curve, and all that lie below it, are refuted
    with a probability of at most `alpha`. The search begins `near` a curve: far from it they may take long.
    """
    curve = cache(curve)
    parts = [MAIN, *((1.0 - MAIN) / (len(TOPS) - 1) for _ in TOPS[1:])]
    best = -1
    for top, part in zip(TOPS, parts, strict=True):
        test = _Test.of(guesses, weights(guesses.middles, top), part * alpha, last + 1)
        if test is not None and test.refutes(curve(best + 1)):
            best = _search(test, curve, best + 1, last, near)
        if best == last:
            break
    return best if best >= 0 else None


def _search(test: _Test, curve: Callable[[int], LeastWrong], low: int, last: int, near: int) -> int:
    """The last number whose curve is refuted, or one that is hardly before it, if that of `low` is refuted.

    Few draws show about where it is, and all draws refute it. Which curves are tried does not matter for the proof.
    """
    if low == last:
        return low
    at, slope = _crossing(lambda number: test.judged(curve(number), DRAWS[:1]).distance, low, last, near)
    high = last + 1
    while low < at < high:
        found = test.judged(curve(at), DRAWS)
        ahead = math.floor(found.distance / slope)
        if found.refuted:
            low, at = at, min(at + max(ahead, 0), (at + high) // 2)
        else:
            high, at = at, max(at + min(ahead, -1), (low + at) // 2)
    return low


def _crossing(distance: Callable[[int], float], low: int, last: int, near: int) -> tuple[int, float]:
    """About the last number above `low` with a distance above 0, and how much a distance falls from one to the next.

    By secants, or halves where these do not help, which begin `near` a number.
    """
    high, at, step = last + 1, min(max(near, low + 1), last), FIRST
    before, slope = None, 0.0
    for _ in range(TRIES):
        found, halve = distance(at), False
        low, high = (at, high) if found > 0 else (low, at)
        if before is not None:
            slope = (before[1] - found) / (at - before[0])
            step = LONGEST * abs(at - before[0])
            halve = high <= last and abs(found) > 0.5 * abs(before[1])  # it is no line
        ahead = min(max(found / slope, -step), step) if slope > 0 else math.copysign(step, found)
        if high - low <= 1 or (slope > 0 and abs(found) <= NEAR):
            return min(max(at + math.floor(ahead), low), high - 1), max(slope, FLAT)
        to = (low + high) // 2 if halve else at + _away(ahead)
        before, at = (at, found), min(max(to, low + 1), high - 1)
    return at, max(slope, FLAT)


def _away(x: float) -> int:
    """Rounded, but at least a step from 0."""
    return round(x) or (1 if x > 0 else -1)


@dataclass(frozen=True)
class _Judged:
    """Whether a curve is refuted; and about how far it is from one that just is, in standard deviations: above 0 if so.

    Nothing but the search rests on the distance.
    """

    refuted: bool
    distance: float


@dataclass(frozen=True, eq=False)
class _Test:
    """A test of one curve after another by the weighted sum of wrong guesses; it is the same sum for all curves."""

    n: int
    sizes: Ints
    weights: Floats
    seen: float
    alpha: float
    curves: int
    _drawn: dict[int, Floats] = field(default_factory=dict, init=False)

    @classmethod
    def of(cls, guesses: Ranked, weights: Floats, alpha: float, curves: int) -> _Test | None:
        """None where no guess counts."""
        counts = weights > 0
        if not counts.any():
            return None
        weights = weights[counts] / weights[0]
        sizes, wrong = (np.array(x)[: len(weights)] for x in (guesses.sizes, guesses.wrong))
        return cls(guesses.n, sizes, weights, float(weights @ wrong) * (1.0 + ROUNDING), alpha, curves)

    def refutes(self, curve: LeastWrong) -> bool:
        """Whether so few wrong guesses have a probability of at most α: simulated, rounded upwards."""
        return self.judged(curve, DRAWS).refuted

    def judged(self, curve: LeastWrong, stages: tuple[int, ...]) -> _Judged:
        """By as many draws as decide, of these stages of DRAWS.

        Draws are tilted towards few wrong guesses, and weighed back. Those of all curves begin with the same numbers.
        """
        usual = self._chances(curve, (np.cumsum(self.sizes) / (self.n + 1.0))[None])[0]
        mean = float(self._weights * self._sizes @ usual)
        allowed = self.alpha * (1.0 - UNSURE - BEYOND)
        far = float(special.ndtri(allowed))
        if self.seen >= mean:
            return _Judged(False, far - (self.seen - mean) / math.sqrt(max(self.seen, ROUNDING)))
        slope = self._slope(usual)
        tilt = np.exp(-slope * self._weights)
        lowest = self._chances(curve, self._lowest_ranks[None])[0]
        most = math.exp(slope * self.seen + float(self._log_mean(lowest, tilt)))
        found = Wager(allowed, most, UNSURE * self.alpha / self.curves, DRAWS[-1])
        for n in stages:
            while found.n < n:
                found.add(self._draws(curve, tilt, most, found.n // DRAWS[0]))
            if found.won or not found.may_win:
                break
        return _Judged(found.won, far - float(special.ndtri(min(max(found.limit(), FAR), 0.5))))

    def _draws(self, curve: LeastWrong, tilt: Floats, most: float, part: int) -> Floats:
        """What each of the first DRAWS counts: the ratio of probabilities if there are as few wrong guesses, else 0."""
        rng = np.random.default_rng([STREAM, part])
        chances = self._chances(curve, self._ends(part))
        odds = chances * tilt
        wrong = rng.binomial(self._sizes, odds / (odds + 1.0 - chances))
        log = self._log_mean(chances, tilt) - wrong @ np.log(tilt)
        out: Floats = np.where(wrong @ self._weights <= self.seen, np.minimum(np.exp(log), most), 0.0)
        return out

    def _ends(self, part: int) -> Floats:
        """Draws of the shares at which classes end, which no curve changes."""
        if part not in self._drawn:
            rng = np.random.default_rng([STREAM, part, 1])
            gaps = rng.standard_gamma(self.sizes.astype(np.float64), (DRAWS[0], len(self.sizes)))
            rest = rng.standard_gamma(self.n + 1.0 - self.sizes.sum(), DRAWS[0])
            ends = np.cumsum(gaps, axis=1)
            self._drawn[part] = ends / (ends[:, -1] + rest)[:, None]
        return self._drawn[part]

    def _chances(self, curve: LeastWrong, ends: Floats) -> Floats:
        """How likely the guesses of each class are wrong at least, if the last ones have these shares.

        Then the last ones of small classes. In large ones these count like the others, which are surer.
        """
        at = np.concatenate([np.zeros((len(ends), 1)), ends], axis=1)
        before = np.diff(curve(at), axis=1) / np.maximum(np.diff(at, axis=1), 1e-300)
        return np.concatenate([np.clip(before, 0.0, 0.5), curve.chance(ends[:, self._small])], axis=1)

    @cached_property
    def _small(self) -> Bools:
        return self.sizes < SMALL

    @cached_property
    def _sizes(self) -> Ints:
        """Of the classes, small ones without their last guesses, and of these."""
        return np.append(self.sizes - self._small, np.ones(self._small.sum(), np.int64))

    @cached_property
    def _weights(self) -> Floats:
        return np.append(self.weights, self.weights[self._small])

    def _log_mean(self, chances: Floats, tilt: Floats) -> Floats:
        """log of the mean of tilt^wrong, over all classes."""
        out: Floats = np.log1p(-chances * (1.0 - tilt)) @ self._sizes
        return out

    def _slope(self, chances: Floats) -> float:
        """The tilt at which as few wrong guesses are usual."""

        def more(slope: float) -> float:
            odds = chances * np.exp(-slope * self._weights)
            return float(self._weights * self._sizes @ (odds / (odds + 1.0 - chances))) - self.seen

        return STEEPEST if more(STEEPEST) >= 0 else brent.root(more, 0.0, STEEPEST, xtol=1e-12)

    @cached_property
    def _lowest_ranks(self) -> Floats:
        """Shares below which the last guess of any class lies with a probability of at most BEYOND of α."""
        ranks, rest = np.cumsum(self.sizes).astype(np.float64), BEYOND * self.alpha / len(self.sizes)
        lowest = special.betaincinv(ranks, self.n + 1.0 - ranks, rest)
        lowest = np.where(np.isfinite(lowest), lowest, 0.0)
        while (wrong := special.betainc(ranks, self.n + 1.0 - ranks, lowest) > rest * (1.0 + 1e-6)).any():
            lowest = np.where(wrong, 0.9 * lowest, lowest)
        return np.minimum.accumulate(lowest[::-1])[::-1]
