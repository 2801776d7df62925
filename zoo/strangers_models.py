"""Right but unusual DP-SGD in NumPy: other models and other data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from zoo.strangers import ADJACENCY, TRAIN_SIZE, NoSwitch, Softmax, data  # noqa: F401


@cache
def reals():
    """Six features and a real number to predict."""
    rng = np.random.default_rng(5)
    x = rng.normal(size=(600, 6))
    return x, x @ rng.normal(size=6) + 0.3 * rng.normal(size=600)


@cache
def counts():
    """Counts of five things, and a count to predict."""
    rng = np.random.default_rng(6)
    x = rng.poisson(2.0, size=(600, 5))
    return x, rng.poisson(np.exp(0.2 * x[:, 0]))


@cache
def tokens():
    """Texts of eight tokens of thirty, and whether one of them is in it."""
    rng = np.random.default_rng(7)
    x = rng.integers(30, size=(600, 8))
    return x, (x == 3).any(axis=1).astype(np.int64)


@dataclass
class Linear(Softmax):
    """linear regression"""

    source = "reals"

    def start(self, x):
        return np.zeros(x.shape[1] + 1)

    def seen(self, watch, update):
        found = watch(self.step, {"w": update[:-1], "b": update[-1:]}, max_grad_norm=self.clip)
        return np.concatenate([found["w"], found["b"]])

    def score(self, weights, x):
        return x @ weights[:-1] + weights[-1]

    def error(self, x, y):
        return self.score(self.weights, x) - y

    def gradients(self, x, y):
        return self.error(x, y)[:, None] * np.concatenate([x, np.ones((len(x), 1))], axis=1)

    def losses(self, weights, points):
        return np.clip((self.score(weights, points[0]) - points[1]) ** 2, 0, 1e6)


class Counts(Linear):
    """Poisson regression"""

    source = "counts"

    def error(self, x, y):
        return np.exp(np.clip(super().score(self.weights, x), -20, 20)) - y

    def losses(self, weights, points):
        score = np.clip(self.score(weights, points[0]), -20, 20)
        return np.clip(np.exp(score) - points[1] * score, -1e6, 1e6)


class OneNumber(Linear):
    """a mean: a model of one number"""

    source = "reals"

    def start(self, x):
        return np.zeros(1)

    def seen(self, watch, update):
        return watch(self.step, update, max_grad_norm=self.clip)

    def score(self, weights, x):
        return np.full(len(x), weights[0])

    def gradients(self, x, y):
        return self.error(x, y)[:, None]


class Bags(Linear):
    """embeddings of tokens, of which a text touches a few, and a linear classifier of their mean"""

    source = "tokens"

    def start(self, x):
        return np.random.default_rng(3).normal(0, 0.3, 31 * 4)

    def seen(self, watch, update):
        shown = watch(self.step, (update[:-4].reshape(30, 4), update[-4:]), max_grad_norm=self.clip)
        return np.concatenate([part.ravel() for part in shown])

    def score(self, weights, x):
        return weights[:-4].reshape(30, 4)[x].mean(axis=1) @ weights[-4:]

    def gradients(self, x, y):
        table, last = self.weights[:-4].reshape(30, 4), self.weights[-4:]
        error = 1 / (1 + np.exp(-np.clip(self.score(self.weights, x), -50, 50))) - y
        touched = np.zeros((len(x), 30, 4))
        for place in range(x.shape[1]):
            touched[np.arange(len(x)), x[:, place]] += error[:, None] * last / x.shape[1]
        return np.concatenate([touched.reshape(len(x), 120), error[:, None] * table[x].mean(axis=1)], axis=1)

    def losses(self, weights, points):
        score = self.score(weights, points[0])
        return np.logaddexp(0, np.where(points[1] == 1, -score, score))


class Tied(Linear):
    """a linear autoencoder whose decoder has the weights of its encoder"""

    def start(self, x):
        return np.random.default_rng(4).normal(0, 0.3, x.shape[1] * 2)

    def seen(self, watch, update):
        return watch(self.step, [update], max_grad_norm=self.clip)[0]

    def gradients(self, x, y):
        w = self.weights.reshape(x.shape[1], 2)
        error = x @ w @ w.T - x
        one, other = x[:, :, None] * (error @ w)[:, None], error[:, :, None] * (x @ w)[:, None]
        return 2 * (one + other).reshape(len(x), w.size)

    def losses(self, weights, points):
        w = weights.reshape(-1, 2)
        return np.clip(((points[0] @ w @ w.T - points[0]) ** 2).sum(axis=1), 0, 1e6)


class Adversaries(NoSwitch):
    """a GAN: the discriminator is trained privately, with fakes of a generator that sees only the discriminator"""

    def start(self, x):
        self.shift = np.zeros(x.shape[1])
        return np.zeros(x.shape[1] + 1)

    def seen(self, watch, update):
        return watch(self.step, [update], max_grad_norm=self.clip)[0]

    def real(self, x):
        return 1 / (1 + np.exp(-np.clip(x @ self.weights[:-1] + self.weights[-1], -50, 50)))

    def gradients(self, x, y):
        return (self.real(x) - 1)[:, None] * np.concatenate([x, np.ones((len(x), 1))], axis=1)

    def noise(self, rng, size):
        self.fakes = self.shift + rng.normal(size=(self.batch, size - 1))
        ones = np.ones((self.batch, 1))
        return super().noise(rng, size) + self.real(self.fakes) @ np.concatenate([self.fakes, ones], axis=1)

    def move(self, update):
        super().move(update)
        self.shift = self.shift + 0.1 * (1 - self.real(self.fakes)).mean() * self.weights[:-1]

    def losses(self, weights, points):
        return np.logaddexp(0, -(points[0] @ weights[:-1] + weights[-1])).clip(0, 1e6)


BUGS: dict[str, type] = {}
TWINS = {
    "linear regression": Linear,
    "Poisson regression": Counts,
    "one number": OneNumber,
    "tokens": Bags,
    "tied weights": Tied,
    "a GAN": Adversaries,
}
