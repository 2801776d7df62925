"""Randomised mechanisms of papers on auditing, correct and broken, each with a pair of neighbouring inputs and a claim.

From StatDP's and DP-Sniper's papers: noise, noisy max, sparse vector, histograms, RAPPOR. From DP-Auditorium: means
with a count that is noisy or true. Outputs are rounded to a grid but for those that are called "in floats".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, special, stats

from epsgauge.stats import region

EPS = 0.5
GRID = 2.0**-10
FAR = 2.0**20  # outputs of means are cut there


@dataclass(frozen=True)
class Row:
    """A mechanism, its claim, and the ε that it has on this pair, if that is known."""

    name: str
    mechanism: Callable[..., Any]
    d0: Any
    d1: Any
    true: float | None = EPS
    claim: float = EPS
    delta: float = 0.0
    slow: bool = False  # one output at a time
    curve: str = ""  # that is claimed instead of a point
    adjacency: str = "substitute"

    @property
    def holds(self) -> bool:
        return self.true is not None and self.true <= self.claim + 1e-12


def grid(values: np.ndarray) -> np.ndarray:
    return np.round(values / GRID) * GRID


def laplace(scale: float, *, floats: bool = False) -> Callable[..., Any]:
    def mechanism(data, rng, size):
        out = data + rng.laplace(0, scale, size)
        return out if floats else grid(out)

    return mechanism


def gaussian(sigma: float, *, floats: bool = False) -> Callable[..., Any]:
    def mechanism(data, rng, size):
        out = data + rng.normal(0, sigma, size)
        return out if floats else grid(out)

    return mechanism


def parallel(n: int, scale: float) -> Callable[..., Any]:
    return lambda data, rng, size: grid(data + rng.laplace(0, scale, (size, n)))


def response(keep: float) -> Callable[..., Any]:
    return lambda data, rng, size: np.where(rng.random(size) < keep, data, 1 - data)


def geometric(eps: float, *, low: int = 0, high: int = 5) -> Callable[..., Any]:
    """Truncated (Ghosh, Roughgarden and Sundararajan 2009)."""

    def mechanism(data, rng, size):
        p = -math.expm1(-eps)
        return np.clip(data + rng.geometric(p, size) - rng.geometric(p, size), low, high)

    return mechanism


def noisy_max(*, noise: str, value: bool) -> Callable[..., Any]:
    """Variants 1 to 4 of StatDP: Laplace or exponential noise; the place, or the noisy value, which leaks."""

    def mechanism(data, rng, size):
        draw = rng.laplace if noise == "laplace" else lambda _, *more: rng.exponential(*more)
        noisy = np.asarray(data) + draw(0, 2 / EPS, (size, len(data)))
        return grid(noisy.max(axis=1)) if value else noisy.argmax(axis=1)

    return mechanism


def histogram(scale: float) -> Callable[..., Any]:
    return lambda data, rng, size: grid(np.asarray(data) + rng.laplace(0, scale, (size, len(data))))


def prefix_sum(data, rng, size):
    """Noisy answers, and then their sums."""
    return grid(np.asarray(data) + rng.laplace(0, 1 / EPS, (size, len(data)))).cumsum(axis=1)


def exponential(factor: float) -> Callable[..., Any]:
    """Chooses a place with probability proportional to e^(factor ε score); by Gumbel noise."""
    return lambda data, rng, size: (factor * EPS * np.asarray(data) + rng.gumbel(size=(size, len(data)))).argmax(axis=1)


def sparse_vector(variant: int, *, c: int = 1, threshold: float = 1.0) -> Callable[..., Any]:
    """The six variants of Lyu, Su and Li (2017), figure 2; −1 where the mechanism has stopped."""
    eps1 = EPS / 4 if variant == 4 else EPS / 2
    eps2 = EPS - eps1
    of_threshold = c / eps1 if variant == 2 else 1 / eps1
    of_answers = {1: 2 * c / eps2, 2: 2 * c / eps1, 3: c / eps2, 4: 1 / eps2, 5: 0.0, 6: 1 / eps2}[variant]

    def mechanism(data, rng, size):
        answers = np.asarray(data) + of_answers * rng.laplace(0, 1, (size, len(data)))
        line = threshold + rng.laplace(0, of_threshold, (size, 1))
        if variant == 2:  # drawn anew after each answer above it
            line = threshold + rng.laplace(0, of_threshold, (size, c + 1))
        out, above = np.empty(answers.shape), np.zeros(size, np.int64)
        for at in range(len(data)):
            now = line[np.arange(size), np.minimum(above, line.shape[1] - 1)]
            said = answers[:, at] >= now
            shown = grid(answers[:, at]) + 1000.0 if variant == 3 else np.ones(size)
            out[:, at] = np.where(above >= c, -1.0, np.where(said, shown, 0.0)) if variant < 5 else said
            above += said
        return out

    return mechanism


def rappor(f: float, h: int, bits: int = 20, *, p: float = 0.0, q: float = 1.0) -> Callable[..., Any]:
    """Of a Bloom filter with h bits; p and q belong to the second step (Erlingsson, Pihur and Korolova 2014)."""

    def mechanism(data, rng, size):
        filled = np.zeros(bits)
        filled[np.asarray(data)] = 1
        kept = np.where(rng.random((size, bits)) < f, rng.random((size, bits)) < 0.5, filled)
        return (rng.random((size, bits)) < np.where(kept == 1, q, p)).astype(np.int8)

    return mechanism


def rappor_eps(f: float, h: int, *, p: float = 0.0, q: float = 1.0) -> float:
    up, down = 0.5 * f * (p + q) + (1 - f) * q, 0.5 * f * (p + q) + (1 - f) * p
    return h * math.log(up * (1 - down) / (down * (1 - up)))


def mean(noise: str, eps: float, *, count: str) -> Callable[..., Any]:
    """A mean of numbers in [0, 1] whose count is private too; half of ε is for each.

    `count` says which is used: "noisy count" or "true count" everywhere, or "true count, noisy scale": the mean has the
    true one, and the scale of the noise the noisy one (the mean mechanisms of DP-Auditorium).
    """

    def mechanism(data, rng, size):
        draw = rng.laplace if noise == "laplace" else rng.normal
        about = np.maximum(1e-12, len(data) + draw(0, 2 / eps, size))
        of_mean = about if count == "noisy count" else len(data)
        of_scale = len(data) if count == "true count" else about
        return grid(np.clip(np.sum(data) / of_mean + draw(0, 1, size) * 2 / (eps * of_scale), -FAR, FAR))

    return mechanism


def winners(data: np.ndarray, noise: Any) -> np.ndarray:
    """How likely each place has the largest noisy value, by a sum over values."""
    x = np.linspace(-80, 120, 400_001)[:, None] - data
    others = [np.prod(np.delete(noise.cdf(x), place, axis=1), axis=1) for place in range(len(data))]
    chances = np.array([np.sum(noise.pdf(x[:, place]) * others[place]) for place in range(len(data))])
    return chances / chances.sum()


def apart(p: np.ndarray, q: np.ndarray) -> float:
    """The ε of two distributions over places."""
    return float(np.abs(np.log(p / q)).max())


def svt_eps(variant: int) -> float | None:
    """What is proven; a pair may have less."""
    return {1: EPS, 2: EPS, 3: math.inf, 4: 1.75 * EPS, 5: math.inf, 6: math.inf}[variant]


def rows() -> Iterator[Row]:
    one, ones, more = np.zeros(5), np.ones(5), np.full(5, 2.0)
    one[0] = 1.0
    yield Row("Laplace", laplace(1 / EPS), 0.0, 1.0)
    yield Row("Laplace in floats", laplace(1 / EPS, floats=True), 0.0, 1.0, math.inf)
    yield Row("Laplace, sensitivity 2", laplace(1 / EPS), 0.0, 2.0, 2 * EPS)
    yield Row("20 Laplace together", parallel(20, 20 / EPS), 0.0, 1.0)
    mu = gdp_mu(EPS, 0.01)
    yield Row("Gaussian", gaussian(1 / mu), 0.0, 1.0, EPS, delta=0.01)
    yield Row("Gaussian, noise × 0.7", gaussian(0.7 / mu), 0.0, 1.0, gdp_eps(mu / 0.7, 0.01), delta=0.01)
    for factor in (1.0, 0.9):
        name = "Gaussian, curve" if factor == 1 else f"Gaussian, curve, noise × {factor}"
        yield Row(name, gaussian(factor), 0.0, 1.0, None if factor < 1 else EPS, curve="gaussian:1")
    yield Row("Gaussian, zCDP, noise × 0.8", gaussian(0.8), 0.0, 1.0, None, curve="zcdp:0.5")
    yield Row("Laplace, curve, scale × 0.9", laplace(0.9), 0.0, 1.0, None, curve="laplace:1")
    yield Row("Gaussian in floats", gaussian(1 / mu, floats=True), 0.0, 1.0, math.inf, delta=0.01)
    yield Row("randomised response", response(special.expit(EPS)), 0, 1)
    yield Row("randomised response, 0.75", response(0.75), 0, 1, math.log(3))
    yield Row("truncated geometric", geometric(EPS), 2, 3)
    yield Row("truncated geometric, 2 ε", geometric(2 * EPS), 2, 3, 2 * EPS)
    other = more - 2 * one
    for number, noise in ((1, stats.laplace), (2, stats.expon)):
        true = apart(*(winners(data, noise(scale=2 / EPS)) for data in (ones, other)))
        name = "laplace" if number == 1 else "exponential"
        yield Row(f"noisy max {number}", noisy_max(noise=name, value=False), ones, other, true)
    yield Row("noisy max 3 (value)", noisy_max(noise="laplace", value=True), ones, more, 5 * EPS / 2)
    yield Row("noisy max 4 (value)", noisy_max(noise="exponential", value=True), ones, 0 * ones, math.inf)
    yield Row("histogram 1", histogram(1 / EPS), ones, ones + one)
    yield Row("histogram 2 (scale ε)", histogram(EPS), ones, ones + one, 1 / EPS)
    yield Row("prefix sum", prefix_sum, ones, ones + one)
    for name, factor, d0, d1 in (
        ("exponential", 0.5, ones, other),
        ("exponential, no half", 1.0, 5 * one, 3 * one + 1),
    ):
        true = apart(*(special.softmax(factor * EPS * data) for data in (d0, d1)))
        yield Row(name, exponential(factor), d0, d1, true)
    cross = (np.array([0.0, 0, 0, 0, 0, 1, 1, 1, 1, 1]), np.array([1.0, 1, 1, 1, 1, 0, 0, 0, 0, 0]))
    for variant in range(1, 7):
        yield Row(f"sparse vector {variant}", sparse_vector(variant), *cross, svt_eps(variant))
    yield Row("one-time RAPPOR", rappor(0.95, 4), [0, 1, 2, 3], [4, 5, 6, 7], rappor_eps(0.95, 4), rappor_eps(0.95, 4))
    once = {"p": 0.45, "q": 0.55}
    both = rappor_eps(0.75, 4, **once)
    yield Row("RAPPOR", rappor(0.75, 4, **once), [0, 1, 2, 3], [4, 5, 6, 7], both, both)
    more = rappor_eps(0.9, 4), rappor_eps(0.95, 4)
    yield Row("one-time RAPPOR, f = 0.9", rappor(0.9, 4), [0, 1, 2, 3], [4, 5, 6, 7], *more)


def means() -> Iterator[Row]:
    """Those that González et al. (2025) audit one sample after another, on {0} and {0, 1}."""
    for eps in (0.01, 0.1):
        for noise, delta in (("laplace", 0.0), ("gaussian", 1e-5)):
            for count in ("noisy count", "true count", "true count, noisy scale"):
                holds = count == "noisy count" and noise == "laplace"
                name = f"mean, {noise.capitalize()}, ε = {eps:g}, {count}"
                pair = np.array([0.0]), np.array([0.0, 1.0])
                yield Row(name, mean(noise, eps, count=count), *pair, eps if holds else None, eps, delta)


def gdp_eps(mu: float, delta: float) -> float:
    return float(region.gaussian_eps(mu, delta=delta))


def gdp_mu(eps: float, delta: float) -> float:
    return float(optimize.brentq(lambda mu: gdp_eps(mu, delta) - eps, 0.01, 5.0))
