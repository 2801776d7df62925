"""Whether noise has one size in all parameters, by what a watch sees at its canaries and elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from epsgauge.numbers import number
from epsgauge.stats.arrays import Floats, Ints

UNLIKELY = 1e-4  # noise as stated is doubted in one training of ten thousand at most
FACTOR = 1.1  # by which noise may differ, as records add to it
ELSEWHERE, OF_EACH = 2000, 50  # parameters that are seen beside the canaries, of all and of each array
ENOUGH = 1000  # changes from a step to the next, over all parameters that are seen
SOME = 50  # one parameter of so many may have the noise that is stated where others have less, and is then seen
NEEDED = "it needs noise of one size in all parameters"
BLOCKS = (1, 20, 100)  # neighbouring parameters whose noise may be of one size
SHARES = (0.01, 0.1, 0.5, 1.0)  # of the blocks that may have other noise
LOWER = np.array([0.9, 0.8, 0.6, 0.4, 0.2, 0.05, 0.005])  # variances that they may have; inverted, higher ones


class Steady:
    """The deviation of numbers over steps, by their changes from one to the next: records pull about the same way."""

    def __init__(self) -> None:
        self._last: Floats | None = None
        self._squares: Floats | float = 0.0
        self._changes = 0

    def add(self, values: Floats) -> None:
        if self._last is not None:
            self._squares = self._squares + (values - self._last) ** 2
            self._changes += 1
        self._last = values

    @property
    def deviation(self) -> Floats | None:
        """None before the first step, and no numbers before the second."""
        if self._last is None or self._changes:
            return None if self._last is None else np.sqrt(self._squares / (2 * self._changes))
        return np.full(len(self._last), np.nan)


def places(shapes: Sequence[tuple[int, ...]], canaries: Ints) -> Ints:
    """Of parameters whose noise is seen, in order: the canaries', some of all, and some of each array."""
    ends = np.cumsum([0, *(math.prod(shape) for shape in shapes)])
    if ends[-1] <= ELSEWHERE:
        return np.arange(ends[-1])
    rng = np.random.default_rng(0)
    ranges = [(0, ends[-1], ELSEWHERE), *((a, b, OF_EACH) for a, b in pairwise(ends) if a < b)]
    return np.unique(np.concatenate([canaries, *(rng.integers(*each) for each in ranges)]))


def uneven(noise: Floats, *, stated: float, steps: int) -> str | None:
    """Why canaries are not worth models of their own, by noise in clipping norms, in the order of the parameters.

    Records add to what is seen of noise and take nothing from it. So noise that is nowhere below the stated one is in
    order, and so is noise that is below it by the same factor everywhere, which the audit is to find. If groups have
    clipping norms of their own and the claim holds, noise is not below the stated one in all of them.
    """
    n, limit = len(noise), -math.log(UNLIKELY)
    if not stated:
        return None
    if n * (steps - 1) < ENOUGH or np.isnan(noise).any():
        return _few(n, steps, 1 + math.ceil(ENOUGH / n))
    seen = Noise((noise / stated) ** 2, steps)
    if seen.below(1.0) < limit:
        return None
    if (apart := differs(noise, stated=stated, steps=steps)) is not None:
        return apart
    variance, tried = float(seen.squares.mean()), [steps * 2**i for i in range(12)]
    enough = next((more for more in tried if _stated_in_some(n, variance, more) >= limit), None)
    return None if enough == steps else _few(n, steps, enough)


def differs(noise: Floats, *, stated: float, steps: int) -> str | None:
    """Why noise that is below the stated one somewhere is surely not of one size."""
    seen, limit = Noise((noise / stated) ** 2, steps), -math.log(UNLIKELY)
    if seen.below(1.0) < limit:
        return None
    low, high = math.log(max(float(seen.squares.min()), 1e-30)), 0.0
    for _ in range(25):  # the one size that is doubted least
        log = (low + high) / 2
        low, high = (low, log) if seen.below(math.exp(log)) > seen.above(FACTOR**2 * math.exp(log)) else (log, high)
    if seen.below(math.exp(low)) < limit or seen.above(FACTOR**2 * math.exp(high)) < limit:
        return None
    least, most = np.quantile(noise, (0.05, 0.95))
    return (
        f"{NEEDED}, but the updates have {number(least)} clipping norms in some and {number(most)} in others. "
        "Clipping by group or layer does that, as does a layer without noise. Gradient canaries need one clipping "
        "norm for the whole gradient"
    )


def _few(n: int, steps: int, enough: int | None) -> str:
    more = "even many more would be too few" if enough is None else f"{enough:,} steps are enough"
    return f"{NEEDED}, but {steps:,} steps and {n:,} parameters are too few to tell if some have more; {more}"


def _stated_in_some(n: int, variance: float, steps: int) -> float:
    """The evidence against one size if some have the noise that is stated, and others this variance of it."""
    squares = np.where(np.arange(n) % SOME == 0, 1.0, variance)
    return Noise(squares, steps).above(FACTOR**2 * variance)


class Noise:
    """How much evidence there is against a variance of noise: logs of e-values (Vovk and Wang 2021, Ann. Stat. 49).

    The square that is seen of noise of variance 1 is Σ λ χ²(1), so E exp(−t square) = Π (1 + 2tλ)^(−1/2), which gives
    a factor of mean 1 for each block. Shares, sizes of blocks and rates t are mixed: the mean of e-values is one.
    """

    def __init__(self, squares: Floats, steps: int) -> None:
        self.squares = squares
        self.lambdas = (1 - np.cos(np.pi * np.arange(1, steps) / steps)) / (steps - 1)
        sizes = [size for size in BLOCKS if size <= len(squares)]
        starts = [np.arange(0, len(squares), size) for size in sizes]
        self._blocks = [(np.add.reduceat(squares, at), np.diff(at, append=len(squares))) for at in starts]
        scale = steps / 3  # about half of the degrees of freedom
        self._lower = scale * (1 / LOWER - 1)
        self._higher = -np.minimum(scale * (1 - LOWER), 0.45 / self.lambdas.max())

    def below(self, variance: float) -> float:
        """Against noise of this variance or more everywhere."""
        return self._mixed(variance, self._lower)

    def above(self, variance: float) -> float:
        """Against noise of this variance or less everywhere."""
        return self._mixed(variance, self._higher)

    def _mixed(self, variance: float, rates: Floats) -> float:
        logs = []
        for rate in rates:
            mean = 0.5 * float(np.log1p(2 * rate * self.lambdas).sum())
            for sums, sizes in self._blocks:
                factors = sizes * mean - rate * sums / variance
                for share in SHARES:
                    rest = math.log1p(-share) if share < 1 else -math.inf
                    logs.append(np.logaddexp(rest, math.log(share) + factors).sum())
        return float(np.logaddexp.reduce(logs) - math.log(len(logs)))
