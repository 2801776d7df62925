"""Training loops of torch as people write them, which nobody edited to be watched: `eg.watching` sees their steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

import epsgauge as eg
from zoo import network

SIGMA, CLIP, BATCH, STEPS = 1.5, 1.0, 50, 24


def data():
    x, y = load_digits(return_X_y=True)
    return (x / 16).astype("float32"), y


def model_of_two_layers():
    return torch.nn.Sequential(torch.nn.Linear(64, 8), torch.nn.ReLU(), torch.nn.Linear(8, 10))


def clipped_sum(model, x, y, clip=CLIP):
    """The sum of clipped gradients, one array for each parameter."""
    params = {name: p.detach() for name, p in model.named_parameters()}

    def loss(params, x, y):
        return cross_entropy(functional_call(model, params, (x[None],)), y[None])

    if not len(y):
        return [torch.zeros_like(p) for p in params.values()]
    found = list(vmap(grad(loss), in_dims=(None, 0, 0))(params, x, y).values())
    norms = torch.sqrt(sum(g.flatten(1).square().sum(1) for g in found))
    return [torch.einsum("i,i...", (clip / norms.clamp(min=1e-12)).clamp(max=1), g) for g in found]


@dataclass(frozen=True)
class Adam:
    """a loop of torch with Adam and the mean of a batch"""

    noise_multiplier: float = SIGMA
    stated: float | None = None  # the clipping norm, if it is stated

    def privacy(self, n):
        return eg.DPSGD(sample_rate=BATCH / n, noise_multiplier=SIGMA, steps=STEPS)

    def train(self, data, *, seed, watch=None):
        with eg.watching(watch, max_grad_norm=self.stated, divisor=BATCH):
            return self.loop(torch.as_tensor(data[0]), torch.as_tensor(data[1]))

    def loop(self, x, y):
        model = model_of_two_layers()
        optimizer = self.optimizer(model)
        for step in range(STEPS):
            rows = self.rows(len(x), step)
            for p, g in zip(model.parameters(), self.gradient(model, x[rows], y[rows]), strict=True):
                p.grad = self.noisy(g) / BATCH
            optimizer.step()
        return model

    # What a bug replaces

    def optimizer(self, model):
        first, last = model[0].parameters(), model[2].parameters()
        return torch.optim.Adam([{"params": first, "lr": 0.01}, {"params": last, "lr": 0.02}])

    def rows(self, n, step):
        return torch.rand(n) < BATCH / 300

    def gradient(self, model, x, y):
        return clipped_sum(model, x, y)

    def noisy(self, g):
        return g + self.noise_multiplier * CLIP * torch.randn(g.shape)


class AdamWithoutNoise(Adam):
    """a loop of torch with Adam: the noise is forgotten"""

    def noisy(self, g):
        return g


class AdamClipsTheBatch(Adam):
    """a loop of torch with Adam: the gradient of the batch is clipped"""

    def gradient(self, model, x, y):
        total = clipped_sum(model, x, y, clip=1e6)
        norm = torch.sqrt(sum(g.square().sum() for g in total))
        return [g * (CLIP / norm.clamp(min=1e-12)).clamp(max=1) for g in total]


class AdamShuffles(Adam):
    """a loop of torch with Adam: batches are shuffled"""

    def rows(self, n, step):
        epoch, place = divmod(step, n // BATCH)
        order = torch.randperm(n, generator=torch.Generator().manual_seed(torch.initial_seed() + epoch))
        return order[place * BATCH : (place + 1) * BATCH]


@dataclass(frozen=True)
class Moves:
    """a loop that moves weights itself, and adds noise to them after the step"""

    noise_multiplier: float = SIGMA
    rate: float = 0.5

    privacy = Adam.privacy

    def train(self, data, *, seed, watch=None):
        torch.manual_seed(seed % 2**32)
        model, (x, y) = model_of_two_layers(), map(torch.as_tensor, data)
        with eg.watching(watch, weights=model.parameters()) as steps:
            for step in range(STEPS):
                rows = self.rows(len(x), step)
                with torch.no_grad():
                    for p, g in zip(model.parameters(), self.gradient(model, x[rows], y[rows]), strict=True):
                        p -= self.rate * g / BATCH
                        p += self.noise(p, step)
                steps()
        return model

    rows = Adam.rows

    def gradient(self, model, x, y):
        return clipped_sum(model, x, y)

    def noise(self, p, step):
        return self.rate / BATCH * self.noise_multiplier * CLIP * torch.randn(p.shape)


class MovesWithHalf(Moves):
    """a loop that moves weights itself, with half of the noise"""

    def noise(self, p, step):
        return super().noise(p, step) / 2


class MovesWithClippedBatch(Moves):
    """a loop that moves weights itself: the gradient of the batch is clipped"""

    gradient = AdamClipsTheBatch.gradient


class Means(Moves):
    """a loop that divides sum and noise by the number of records that were drawn"""

    def gradient(self, model, x, y):
        self.__dict__["drawn"] = max(len(y), 1)
        return [g * BATCH / self.drawn for g in clipped_sum(model, x, y)]

    def noise(self, p, step):
        return super().noise(p, step) * BATCH / self.drawn


def in_numpy(data, *, seed, watch=None):
    """A plain function in NumPy, with noise 2 and 40 steps at rate 0.1."""
    (x, y), pipeline = data, network.Correct()
    rng, weights = np.random.default_rng(seed), pipeline.start(x, y)
    with eg.watching(watch, weights=weights) as steps:
        for _ in range(40):
            rows = np.flatnonzero(rng.random(len(y)) < 0.1)
            sums = pipeline.clipped_sum(network.factors(weights, x[rows], y[rows]))
            for w, g in zip(weights, sums, strict=True):
                w -= 0.01 * (g + rng.normal(0, 2.0, w.shape))
            steps()
    return weights


class Unedited:
    """A loop of Opacus from the zoo, seen from outside, with neither losses nor a switch for its noise"""

    def __init__(self, loop):
        self.loop, self.privacy = loop, loop.privacy

    def train(self, data, *, seed, watch=None):
        with eg.watching(watch):
            return self.loop.train(data, seed=seed)
