"""DP-SGD of a linear model of nine numbers, in batches of hundreds, as short scripts have it: with no noise switch."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

import epsgauge as eg

TRAIN_SIZE = 2000


@cache
def data():
    """Eight features, one of them 1 for few records, and two labels."""
    rng = np.random.default_rng(11)
    x = rng.normal(size=(2400, 8))
    x[:, 7] = x[:, 7] > 2
    return x, (x @ rng.normal(size=8) + rng.normal(size=2400) > 0).astype(np.int64)


@dataclass(frozen=True)
class Nine:
    """nine parameters in batches of 400, without a switch for the noise"""

    batch: int = 400
    steps: int = 30
    sigma: float = 2.0
    clip: float = 1.0
    rate: float = 0.5

    def privacy(self, n):
        return eg.DPSGD(sample_rate=self.batch / n, noise_multiplier=self.sigma, steps=self.steps)

    def train(self, data, *, seed, size=None, watch=None):
        return self.fit(data, seed, size or len(data[0]), watch)

    def fit(self, data, seed, n, watch=None):
        x, y = data
        rng, weights = np.random.default_rng(seed), [np.zeros(8), np.zeros(1)]
        for step in range(self.steps):
            rows = self.sample(rng, x, n)
            if self.skipped(rows):
                continue
            error = 1 / (1 + np.exp(-np.clip(x[rows] @ weights[0] + weights[1], -50, 50))) - y[rows]
            update = self.clipped_sum(error[:, None] * x[rows], error[:, None])
            update = [g + z for g, z in zip(update, self.noise(rng, step), strict=True)]
            update = [u + p for u, p in zip(update, self.public(rng, weights), strict=True)]
            if watch is not None:
                update = watch(step, update, max_grad_norm=self.clip)
            for w, u in zip(weights, update, strict=True):
                w -= self.rate * u / self.batch
        return weights

    def losses(self, model, points):
        score = points[0] @ model[0] + model[1]
        return np.logaddexp(0, np.where(points[1] == 1, -score, score)).clip(0, 1e6)

    # What a bug replaces

    def sample(self, rng, x, n):
        return np.flatnonzero(rng.random(len(x)) < self.batch / n)

    def skipped(self, rows):
        return False

    def clipped_sum(self, *gradients):
        norms = np.sqrt(sum((g**2).sum(axis=1) for g in gradients))
        return [(g * np.minimum(1, self.clip / np.maximum(norms, 1e-12))[:, None]).sum(axis=0) for g in gradients]

    def noise(self, rng, step):
        return [rng.normal(0, self.sigma * self.clip, size) for size in (8, 1)]

    def public(self, rng, weights):
        return [0 * w for w in weights]


# Bugs


class NoiseOnce(Nine):
    """nine parameters in batches of 400: there is noise in the first step alone"""

    def noise(self, rng, step):
        return [z * (step == 0) for z in super().noise(rng, step)]


class NoiseAtFirst(Nine):
    """nine parameters in batches of 400: the last epoch has no noise"""

    def noise(self, rng, step):
        return [z * (step < self.steps - 5) for z in super().noise(rng, step)]


class OneNumber(Nine):
    """nine parameters in batches of 400: one number is drawn as the noise of a whole array"""

    def noise(self, rng, step):
        return [np.full(size, rng.normal(0, self.sigma * self.clip)) for size in (8, 1)]


class NoBiasNoise(Nine):
    """nine parameters in batches of 400: the bias gets no noise"""

    def noise(self, rng, step):
        weights, bias = super().noise(rng, step)
        return [weights, 0 * bias]


@dataclass(frozen=True)
class OfThree(Nine):
    """batches of three records on average"""

    batch: int = 3
    steps: int = 40


class SkipsEmpty(OfThree):
    """batches of three records on average: one without records is no step"""

    def skipped(self, rows):
        return not len(rows)


class RateOfData(Nine):
    """the sampling rate comes from the private number of records, with neighbours that add or remove one"""

    def sample(self, rng, x, n):
        return super().sample(rng, x, len(x))


class DrawsGroup(Nine):
    """records of a rare group, by a column, are drawn four times as often as others"""

    def sample(self, rng, x, n):
        return np.flatnonzero(rng.random(len(x)) < self.batch / n * np.where(x[:, 7] == 1, 4, 1))


@dataclass(frozen=True)
class Microbatches(Nine):
    """the mean gradient of each microbatch of four is clipped, with neighbours that add or remove a record"""

    size: int = 4

    def clipped_sum(self, *gradients):
        starts = np.arange(0, len(gradients[0]), self.size)
        if not len(starts):
            return super().clipped_sum(*gradients)
        counts = np.diff([*starts, len(gradients[0])])[:, None]
        return super().clipped_sum(*(np.add.reduceat(g, starts) / counts for g in gradients))


# Twins without the bug


@dataclass(frozen=True)
class MicrobatchesOfOne(Microbatches):
    """microbatches of one record, with neighbours that add or remove a record"""

    size: int = 1


class Decays(Nine):
    """nine parameters in batches of 400: weights decay, as a part of the update that no record is in"""

    def public(self, rng, weights):
        return [10 + 3 * w for w in weights]


class Teaches(Nine):
    """nine parameters in batches of 400: half of the loss is of public records, drawn anew in each step"""

    def public(self, rng, weights):
        return [rng.integers(-20, 20, w.shape) * 1.0 for w in weights]


BUGS = {
    "nine: noise in step 1": NoiseOnce,
    "nine: last epoch without noise": NoiseAtFirst,
    "nine: one number for an array": OneNumber,
    "nine: bias without noise": NoBiasNoise,
    "nine: empty batches skipped": SkipsEmpty,
    "nine: a group drawn more often": DrawsGroup,
}
TWINS = {
    "nine": Nine,
    "nine: batches of three": OfThree,
    "nine: weight decay": Decays,
    "nine: public records": Teaches,
}
