"""What DP-SGD spends: the privacy losses of all its steps together, on a grid, rounded to one side or to the other.

One step is a pair of distributions of one number, Gaussian noise with or without the point. Its outputs are cut into
bins by their privacy loss. A pair that is more telling splits each bin between the losses at its ends; one that is less
telling merges outputs (docs/guarantees.md has the proofs). Losses of all steps add up, so their law is a convolution.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.mechanisms.gaussian import Gaussian
from epsgauge.mechanisms.privacy import DISTANCE, DPSGD, independent
from epsgauge.stats import brent, special
from epsgauge.stats.arrays import Complexes, Floats

# The width of a bin, in standard deviations of the loss of a step: for a curve, and for its ε, which is asked for once.
WIDTH, FINE = 0.04, 0.0025
# These are taken as at most so much, in one step and, as μ, in all; and no step has more bins.
OF_STEP, OF_ALL, MOST = 0.25, 3.0, 2**17
# About how many bins the sum has at most, for a curve and for its ε: they are wider where losses are huge.
LONGEST, LONGEST_FINE = 2**18, 2**20
# What outputs beyond all bins, or dropped, may have of the probability, over all steps; and what the sum may have
# beyond its window.
BEYOND, OUTSIDE = 1e-12, 1e-11
# Slopes of Chernoff's inequality that are tried, over the standard deviation of the sum; each is twice the one before.
CHERNOFF = (1.0, 2.0, 4.0, 8.0, 16.0)
# Relative error of a bin's probabilities; error of a convolution, times its steps and the root of its size.
ROUNDING, FOURIER = 1e-12, 2e-15
# A transform of the sum is taken as 0 below this, which is far below its rounding.
NOTHING = 1e-30
# How often bins are balanced that are merged with their neighbours.
ROUNDS = 5
TINY = 1e-300
# No larger ε is found: e^ε would be infinite.
FARTHEST = 700.0
# The curve is drawn by so many lines; a line of more than STEEPEST, or for less than LEAST, says nothing about rates.
LINES, STEEPEST, LEAST = 400, 14.0, 1e-7


@dataclass(frozen=True, eq=False)
class Spent:
    """Losses above 0, ascending, with their probabilities; δ(ε) is wrong by at most `unsure`, to one side."""

    losses: Floats
    above: Floats  # Pr[loss or a larger one]
    other: Floats  # the same under the neighbour
    unsure: float

    def deltas(self, eps: Floats) -> Floats:
        """δ(ε) = Pr[L > ε] − e^ε Pr'[L > ε] of the losses on the grid, for ε ≥ 0."""
        at = np.searchsorted(self.losses, eps, side="right")
        out: Floats = np.append(self.above, 0.0)[at] - np.exp(eps) * np.append(self.other, 0.0)[at]
        return out

    def eps_above(self, delta: float) -> float:
        """The largest ε with δ(ε) ≥ delta, or one below it; 0 where there is none."""
        good = np.flatnonzero(self.deltas(self.losses[self.losses < FARTHEST]) > delta)
        at = int(good[-1]) + 1 if good.size else 0
        if at == len(self.losses) or not self.above[at] > delta + self.other[at]:
            return float(self.losses[at - 1]) if at else 0.0
        if self.other[at] == 0:
            return float(self.losses[at])
        return math.log(self.above[at] - delta) - math.log(self.other[at])


def curve(privacy: DPSGD, adjacency: Adjacency) -> tuple[Floats, Floats]:
    """ε, ascending from 0, and δ(ε) of each, a little too large.

    It is the larger one of both directions of neighbours. For noise from SMALLEST on, and a sampling rate below 1.
    """
    both = _both(privacy, adjacency, WIDTH, more=True)
    top = max(float(spent.losses[np.argmax(spent.above < LEAST)]) for spent in both)
    eps = np.linspace(0.0, min(top, STEEPEST), LINES)
    deltas = np.max([spent.deltas(eps) + spent.unsure for spent in both], axis=0)
    return eps, np.minimum(deltas, 1.0)


def least_eps(privacy: DPSGD, *, delta: float, adjacency: Adjacency) -> float:
    """ε at δ > 0, never above the true one, and hardly below it where δ is at least 1e-8.

    >>> round(least_eps(DPSGD(0.1, 1.0, 100), delta=1e-5, adjacency="substitute"), 3)
    10.516
    """
    if privacy.sample_rate == 1:
        return one_gaussian(privacy, adjacency).eps_at(delta)
    both = _both(privacy, adjacency, FINE, more=False)
    return max(spent.eps_above(delta + spent.unsure) for spent in both)


def one_gaussian(privacy: DPSGD, adjacency: Adjacency) -> Gaussian:
    """What all steps are together where every point is in every batch."""
    independent(privacy)
    return Gaussian(float(privacy.noise_multiplier) / (DISTANCE[adjacency] * math.sqrt(privacy.steps)))


def central_limit(privacy: DPSGD, adjacency: Adjacency) -> float:
    """μ of Gaussian DP in the limit of many steps, q √(T (e^(d²/σ²) − 1)) (Bu et al. 2020)."""
    spread = math.expm1(min((DISTANCE[adjacency] / privacy.noise_multiplier) ** 2, 100.0))
    return privacy.sample_rate * math.sqrt(privacy.steps * spread)


# One step


@dataclass(frozen=True, eq=False)
class _Bins:
    """The outputs of a step in bins between even losses: their probabilities with the point, and without it.

    Before the first and after the last bin stand those of all smaller and of all larger losses.
    """

    width: float
    edges: Floats
    with_it: Floats
    without: Floats

    def turned(self) -> _Bins:
        """The other direction of neighbours."""
        return _Bins(self.width, -self.edges[::-1], self.without[::-1], self.with_it[::-1])

    def split(self) -> _Losses:
        """A more telling pair: the probabilities of each bin as those of two losses, its ends.

        Smaller losses than all are raised to the first, larger ones are infinite.
        """
        p, q = self.with_it[1:-1], self.without[1:-1]
        low = (q * np.exp(self.edges[:-1]) - p * math.exp(-self.width)) / -math.expm1(-self.width)
        low = np.clip(low - ROUNDING / self.width * p, 0.0, p)
        mass = np.append(low, 0.0) + np.append(0.0, p - low)
        mass[0] += self.with_it[0]
        return _Losses(float(self.edges[0]), self.width, mass, float(self.with_it[-1]))

    def merged(self, steps: int) -> _Losses:
        """A less telling pair: each bin is one output, and its loss is taken as that in its middle, or less.

        A part of its neighbour is merged into it, so that its loss is nearly that. Smaller losses than all, and bins
        with hardly any mass, are dropped; larger ones belong to the last bin.
        """
        p, q = (np.append(mass[1:-2], mass[-2] + mass[-1]) for mass in (self.with_it, self.without))
        middle = self.edges[:-1] + 0.5 * self.width
        ratio, wanted = q / np.maximum(p, TINY), np.exp(-middle)
        own, from_next, from_last = p, np.zeros_like(p), np.zeros_like(p)
        for _ in range(ROUNDS):
            lacks = own * (ratio - wanted)  # above 0 where the loss is too small
            with np.errstate(divide="ignore", invalid="ignore"):
                more, less = lacks[:-1] / (wanted[:-1] - ratio[1:]), lacks[1:] / (wanted[1:] - ratio[:-1])
            from_next[:-1] = np.where((lacks[:-1] > 0) & (more > 0), np.fmin(more, p[1:] / 2), 0.0)
            from_last[1:] = np.where((lacks[1:] < 0) & (less > 0), np.fmin(less, p[:-1] / 2), 0.0)
            own = p - np.append(0.0, from_next[:-1]) - np.append(from_last[1:], 0.0)
        mass = own + from_next + from_last
        other = own * ratio + from_next * np.append(ratio[1:], 0.0) + from_last * np.append(0.0, ratio[:-1])
        kept = mass > BEYOND / (steps * len(mass))
        lower = float(np.min(np.log(mass[kept] / np.maximum(other[kept], TINY)) - middle[kept], initial=0.0))
        start = float(middle[0]) + lower - ROUNDING / self.width
        return _Losses(start, self.width, np.where(kept, mass, 0.0), 0.0)


@dataclass(frozen=True, eq=False)
class _Losses:
    """Losses start + i · width with mass[i], and an infinite one with what is left of the probability, `rest`."""

    start: float
    width: float
    mass: Floats
    rest: float


def _both(privacy: DPSGD, adjacency: Adjacency, width: float, *, more: bool) -> list[Spent]:
    """Of each direction of neighbours, more or less telling than the truth; replacing a point has one."""
    independent(privacy)
    directions = (False, True) if adjacency == "add-remove" else (False,)
    return [_spent(privacy, adjacency, width, turned=turned, more=more) for turned in directions]


def _spent(privacy: DPSGD, adjacency: Adjacency, width: float, *, turned: bool, more: bool) -> Spent:
    steps = int(privacy.steps)

    def of_step(least: float) -> _Losses:
        bins = _bins(privacy, adjacency, width, least, turned=turned, balanced=not more)
        return bins.split() if more else bins.merged(steps)

    one = of_step(0.0)
    low, high = _window(one, steps)
    wide = (high - low) / (LONGEST if more else LONGEST_FINE)
    if one.width < wide:
        one = of_step(wide)
        low, high = _window(one, steps)
    return _composed(one, steps, low, high)


def _bins(
    privacy: DPSGD, adjacency: Adjacency, width: float, least: float = 0.0, *, turned: bool, balanced: bool
) -> _Bins:
    """Bins have this width in standard deviations, and at least the other one.

    `balanced`: where the losses have an end, as those of adding a point, they are cut for `merged`.
    """
    rate, noise, steps = float(privacy.sample_rate), float(privacy.noise_multiplier), int(privacy.steps)
    reach = -float(special.ndtri(BEYOND / steps)) * noise
    low, high = (_loss(rate, noise, x, adjacency) for x in (-reach, reach + (0.0 if turned else 1.0)))
    of_step = min(min(central_limit(privacy, adjacency), OF_ALL) / math.sqrt(steps), OF_STEP)
    width = max(width * of_step, (high - low) / MOST, least)
    balanced = balanced and adjacency == "add-remove"
    start = _first_edge(rate, noise, width) - width if balanced else (math.floor(low / width) - 1) * width
    edges: Floats = start + np.arange(max(1, math.ceil((high - start) / width)) + 1, dtype=np.float64) * width
    z = np.concatenate([[-np.inf], _output(rate, noise, edges, adjacency) / noise, [np.inf]])
    z[1] = -np.inf if balanced else z[1]
    absent, point = _between(z), rate * _between(z - 1.0 / noise)
    without = absent if adjacency == "add-remove" else (1.0 - rate) * absent + rate * _between(z + 1.0 / noise)
    found = _Bins(width, edges, (1.0 - rate) * absent + point, without)
    return found.turned() if turned else found


def _first_edge(rate: float, noise: float, width: float) -> float:
    """The end of a first bin that has all outputs up to there, and as one output the loss in its middle.

    Losses of adding a point begin at log(1 − q), and many outputs may be near there.
    """

    def too_large(edge: float) -> float:
        z = float(_output(rate, noise, np.array([edge]), "add-remove")[0]) / noise
        share = math.exp(float(special.log_ndtr(z - 1.0 / noise) - special.log_ndtr(z)))
        return math.log1p(rate * (share - 1.0)) - (edge - 0.5 * width)

    least = math.log1p(-rate)
    low, high = least + 0.5 * width, least + width
    while too_large(high) > 0:
        low, high = high, high + 2.0 * (high - least)
    return brent.root(too_large, low, high, xtol=1e-12 * width)


def _loss(rate: float, noise: float, x: float, adjacency: Adjacency) -> float:
    """log of the density at x with the point, at +1, over that without it, or with the other one, at −1."""

    def against_noise(x: float) -> float:
        return float(np.logaddexp(math.log1p(-rate), math.log(rate) + (x - 0.5) / noise**2))

    return against_noise(x) - (0.0 if adjacency == "add-remove" else against_noise(-x))


def _output(rate: float, noise: float, loss: Floats, adjacency: Adjacency) -> Floats:
    """Where the loss is this; it grows with x. For u = e^(x/σ²) it is a linear or a quadratic equation."""
    if adjacency == "add-remove":  # 1 − q + q u e^(−1/2σ²) = e^loss
        with np.errstate(divide="ignore", invalid="ignore"):
            x = noise**2 * (np.log(np.expm1(loss) + rate) - math.log(rate)) + 0.5
        return np.where(np.expm1(loss) + rate > 0, x, -np.inf)
    odds = math.log1p(-rate) - math.log(rate) + 0.5 / noise**2
    out: Floats = noise**2 * (0.5 * loss + np.arcsinh(np.sinh(0.5 * loss) * math.exp(odds)))
    return out


def _between(z: Floats) -> Floats:
    """Of a normal number to be between neighbours of z, which ascend, without loss of digits."""
    tails, above = special.ndtr(-np.abs(z)), int(np.searchsorted(z, 0.0, side="right"))
    out: Floats = np.abs(np.diff(tails))
    if 0 < above < len(z):
        out[above - 1] = 1.0 - tails[above] - tails[above - 1]
    return out


# All steps


def _composed(one: _Losses, steps: int, low: float, high: float) -> Spent:
    """The sum of the losses of all steps, in its window."""
    from scipy import fft  # it takes a while to import

    first = math.floor((low - steps * one.start) / one.width)
    size = fft.next_fast_len(math.ceil((high - low) / one.width) + 2, real=True)
    wrapped = np.bincount(np.arange(len(one.mass)) % size, weights=one.mass, minlength=size)
    mass = np.roll(fft.irfft(_power(fft.rfft(wrapped), steps), n=size), -first % size)
    losses = steps * one.start + (first + np.arange(size)) * one.width
    positive = int(np.searchsorted(losses, 0.0, side="right"))
    losses, p = losses[positive:], np.maximum(mass[positive:], 0.0)
    above, other = (np.cumsum(q[::-1])[::-1] for q in (p, p * np.exp(-losses)))
    unsure = -math.expm1(steps * math.log1p(-one.rest)) + 2.0 * OUTSIDE + FOURIER * steps * math.sqrt(size)
    return Spent(losses, above, other, unsure)


def _power(z: Complexes, steps: int) -> Complexes:
    """Of numbers up to 1, by squares; most are nothing where steps are many."""
    some = np.flatnonzero(z.real**2 + z.imag**2 > NOTHING ** (2.0 / steps))
    square, found = z[some], np.ones(len(some), z.dtype)
    while steps:
        if steps & 1:
            found *= square
        steps >>= 1
        if steps:
            square *= square
    out = np.zeros_like(z)
    out[some] = found
    return out


def _window(one: _Losses, steps: int) -> tuple[float, float]:
    """Where the sum is but for OUTSIDE on either side: Pr[S ≥ t] ≤ e^(−λt) E[e^(λL)]^steps (Chernoff)."""
    some = np.flatnonzero(one.mass)
    losses, mass = one.start + some * one.width, one.mass[some]
    mean = float(mass @ losses)
    deviation = math.sqrt(steps * max(float(mass @ losses**2) - mean * mean, one.width**2))
    ends = []
    for sign in (-1.0, 1.0):
        most, end = float(max(sign * losses[0], sign * losses[-1])), math.inf
        tilts = np.exp((sign * losses - most) / deviation)  # at most 1, so no slope is too steep
        for slope in CHERNOFF:
            log = slope / deviation * most + math.log(float(mass @ tilts) + TINY)
            end = min(end, (steps * (log + ROUNDING) - math.log(OUTSIDE)) * deviation / slope)
            tilts *= tilts
        ends.append(sign * end)
    return ends[0], ends[1]
