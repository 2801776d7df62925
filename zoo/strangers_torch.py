"""DP-SGD as strangers write it in PyTorch: with vmap, with a loop over records, and with Opacus."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

import epsgauge as eg
from zoo.opacus_loops import Flat
from zoo.opacus_loops import data as digits

TRAIN_SIZE, ADJACENCY = 250, "add-remove"


@cache
def data():
    """Digits, as images."""
    x, y = digits()
    return x.reshape(-1, 1, 8, 8)[:400], y[:400]


@cache
def tokens():
    """Texts of six tokens of forty, and whether one of them is in it."""
    rng = np.random.default_rng(8)
    x = rng.integers(40, size=(400, 6))
    return x, (x == 3).any(axis=1).astype(np.int64)


@dataclass
class Vmapped:
    """gradients of single records by vmap"""

    sigma: float = 1.2
    clip: float = 1.0
    batch: int = 25
    steps: int = 20

    def privacy(self, n):
        return eg.DPSGD(sample_rate=self.batch / n, noise_multiplier=self.sigma, steps=self.steps)

    def without_noise(self):
        return replace(self, sigma=0.0)

    def train(self, data, *, seed, size=None, watch=None):
        x, y = torch.as_tensor(data[0]), torch.as_tensor(data[1])
        n, self.model, self.generator = size or len(y), self.net(), torch.Generator().manual_seed(seed)
        optimizer = torch.optim.SGD([p for p in self.model.parameters() if p.requires_grad], lr=0.02)
        for step in range(self.steps):
            self.step = step
            rows = torch.nonzero(torch.rand(len(y), generator=self.generator) < self.batch / n).ravel()
            update = {k: g + self.noise(k, g) for k, g in self.summed(x[rows], y[rows]).items()}
            if watch is not None:
                update = watch(self.step, update, max_grad_norm=self.clip)
            for name, parameter in self.trained().items():
                parameter.grad = update[name]
            optimizer.step()
            self.after()
        return self.model

    def losses(self, model, points):
        with torch.no_grad():
            outputs = model(torch.as_tensor(points[0]))
            return cross_entropy(outputs, torch.as_tensor(points[1]), reduction="none").clamp(max=1e6).numpy()

    def trained(self):
        return {name: p for name, p in self.model.named_parameters() if p.requires_grad}

    # What differs

    def net(self):
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 12), nn.Tanh(), nn.Linear(12, 10))

    def summed(self, x, y):
        weights = {name: p.detach() for name, p in self.trained().items()}
        if not len(y):
            return {name: torch.zeros_like(p) for name, p in weights.items()}

        def loss(weights, x, y):
            return cross_entropy(functional_call(self.model, weights, x[None]), y[None])

        found = vmap(grad(loss), in_dims=(None, 0, 0))(weights, x, y)
        norms = torch.sqrt(sum(g.flatten(1).square().sum(1) for g in found.values()))
        factors = (self.clip / norms.clamp(min=1e-12)).clamp(max=1)
        return {name: torch.tensordot(factors, g, 1) for name, g in found.items()}

    def noise(self, name, g):
        return self.sigma * self.clip * torch.randn(g.shape, generator=self.generator)

    def after(self):
        """After the step."""


# Bugs


class WeightsOnly(Vmapped):
    """noise is added to the weights, not to the biases"""

    def noise(self, name, g):
        return super().noise(name, g) if name.endswith("weight") else torch.zeros_like(g)


class SeedOfArrays(Vmapped):
    """the noise of each array has a generator of the same seed"""

    def noise(self, name, g):
        seeded = torch.Generator().manual_seed(self.generator.initial_seed() + self.step)
        return self.sigma * self.clip * torch.randn(g.shape, generator=seeded)


class ExtraLoss(Vmapped):
    """the gradient of a second loss, of the batch, is added to the sum of clipped gradients"""

    def summed(self, x, y):
        found = super().summed(x, y)
        if not len(y):
            return found
        extra = torch.autograd.grad(self.model(x).square().mean(), self.trained().values())
        return {name: g + more for (name, g), more in zip(found.items(), extra, strict=True)}


class NormOfInputs(Vmapped):
    """inputs pass a BatchNorm whose running mean follows private batches"""

    def net(self):
        norm = nn.BatchNorm1d(64, affine=False)
        return nn.Sequential(nn.Flatten(), norm, nn.Linear(64, 10)).eval()

    def summed(self, x, y):
        if len(y) > 1:
            self.model[1].train()(x.flatten(1))
            self.model[1].eval()
        return super().summed(x, y)


@dataclass
class OneByOne(Vmapped):
    """a loop over the records of a batch"""

    batch: int = 10
    steps: int = 12

    def net(self):
        return nn.Sequential(nn.Flatten(), nn.Linear(64, 10))

    def summed(self, x, y):
        total = {name: torch.zeros_like(p) for name, p in self.trained().items()}
        self.model.zero_grad()
        for i in range(len(y)):
            cross_entropy(self.model(x[i : i + 1]), y[i : i + 1]).backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
            self.add(total)
        return self.result(total)

    def add(self, total):
        for name, p in self.trained().items():
            total[name] += p.grad
        self.model.zero_grad()

    def result(self, total):
        return total


class NotZeroed(OneByOne):
    """gradients are not set to zero between records, so that their sum is clipped again and again"""

    def add(self, total):
        """They add up in `grad`."""

    def result(self, total):
        return {name: total[name] if p.grad is None else p.grad.clone() for name, p in self.trained().items()}


class AddsUp(OneByOne):
    """the sums of all records so far are added, because gradients are not set to zero"""

    def add(self, total):
        for name, p in self.trained().items():
            total[name] += p.grad


class Embeds(Vmapped):
    """embeddings of tokens, with noise in all rows"""

    source = "tokens"

    def net(self):
        return nn.Sequential(nn.Embedding(41, 4), nn.Flatten(), nn.Linear(24, 2))


class TouchedRows(Embeds):
    """embeddings of tokens, with noise in the rows of the batch's tokens"""

    def noise(self, name, g):
        touched = g.abs().sum(dim=1, keepdim=True) > 0 if name == "0.weight" else torch.ones_like(g)
        return super().noise(name, g) * touched


# Twins without the bug


class Averaged(Vmapped):
    """a moving average of the weights is kept beside the model, and a rate that falls"""

    def after(self):
        kept = self.__dict__.setdefault("average", {k: p.detach().clone() for k, p in self.trained().items()})
        for name, p in self.trained().items():
            kept[name] += 0.1 * (p.detach() - kept[name])
        self.model.average = kept


class Backbone(Vmapped):
    """a frozen first layer"""

    def net(self):
        net = super().net()
        net[1].requires_grad_(False)
        return net


@dataclass(frozen=True)
class Images(Flat):
    """Opacus, convolutions with GroupNorm, and Adam"""

    adjacency = "substitute"  # Opacus' expected batch size comes from the number of records
    epochs: int = 3

    def model(self, y):
        layers = nn.Conv2d(1, 4, 3, stride=2), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Linear(36, 10)
        return nn.Sequential(*layers)

    def private(self, model, loader, engine):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        given = {"noise_multiplier": self.noise_multiplier, "max_grad_norm": self.clip}
        model, optimizer, loader = engine.make_private(module=model, optimizer=optimizer, data_loader=loader, **given)
        return model, optimizer, nn.CrossEntropyLoss(), loader


@dataclass(frozen=True)
class Steps(Images):
    """Opacus: the optimiser steps after every second batch, and the accountant counts its steps"""

    def privacy(self, n):
        each = super().privacy(n)
        return eg.DPSGD(each.sample_rate, each.noise_multiplier, each.steps // 2)

    def epoch(self, model, optimizer, criterion, loader):
        for i, (x, y) in enumerate(loader):
            optimizer.signal_skip_step(do_skip=i % 2 == 0)
            criterion(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()


BUGS = {
    "torch, weights' noise": WeightsOnly,
    "torch, a seed for arrays": SeedOfArrays,
    "torch, extra loss": ExtraLoss,
    "torch, norm of inputs": NormOfInputs,
    "torch, not zeroed": NotZeroed,
    "torch, sums of sums": AddsUp,
    "torch, touched rows": TouchedRows,
    "Opacus, every second batch": Steps,
}
TWINS = {
    "torch, vmap": Vmapped,
    "torch, one by one": OneByOne,
    "torch, embeddings": Embeds,
    "torch, average of weights": Averaged,
    "torch, frozen layer": Backbone,
    "Opacus, images": Images,
}
