"""Opacus: rate, steps and the divisor of a sum of gradients are computed from len(dataset), which is private.

`make_private` counts the batches of an epoch, L = ceil(n / batch_size). The sampling rate is 1/L, and the divisor is
int(n / L). With 321 records and batches of 32 there are 11 steps and the divisor is 29. With one record less there are
10 steps and it is 32. The noise in the released weights is divided by it too, so their length tells whether the record
was there. The accountant assumes that neighbours by adding or removing a record share these numbers.

The twin takes them from a public size, which `train(..., size=...)` is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import epsgauge as eg
from epsgauge.mechanisms.accounting import accountant_eps
from epsgauge.trainers.protocol import seed_everything
from zoo.shipped import membership, probed

BATCH = 32
N = 321
DELTA = 1e-5


@dataclass(frozen=True)
class Regression:
    """Logistic regression that starts at 0."""

    public_size: bool = False
    noise_multiplier: float = 4.0
    max_grad_norm: float = 1.0
    epochs: int = 1

    def train(self, data: Any, *, seed: int, size: int | None = None, watch: Any = None) -> nn.Module:
        model = nn.Linear(64, 10)
        for weights in model.parameters():
            nn.init.zeros_(weights)
        n = (size or len(data)) if self.public_size else len(data)
        steps = -(-n // BATCH)
        loader = DataLoader(data, batch_size=BATCH)
        if self.public_size:
            sampler = UniformWithReplacementSampler(num_samples=len(data), sample_rate=1 / steps, steps=steps)
            loader = DataLoader(data, batch_sampler=sampler)
        model, optimizer, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
            data_loader=loader,
            noise_multiplier=self.noise_multiplier,
            max_grad_norm=self.max_grad_norm,
            poisson_sampling=not self.public_size,  # the sampler above does it
        )
        if self.public_size:
            optimizer.expected_batch_size = n // steps
        if watch is not None:
            optimizer.attach_step_hook(watch)
        for _ in range(self.epochs):
            for x, y in loader:
                optimizer.zero_grad()
                cross_entropy(model(x), y).backward()
                optimizer.step()
        return model

    def losses(self, model: nn.Module, points: Any) -> np.ndarray:
        x, y = next(iter(DataLoader(points, batch_size=len(points))))
        with torch.no_grad():
            return cross_entropy(model(x), y, reduction="none").numpy()

    def privacy(self, n: int) -> eg.DPSGD:
        steps = -(-n // BATCH)
        return eg.DPSGD(1 / steps, self.noise_multiplier, self.epochs * steps)


def digits() -> TensorDataset:
    x, y = load_digits(return_X_y=True)
    return TensorDataset(torch.tensor(x[:N] / 16, dtype=torch.float32), torch.tensor(y[:N]))


def by_probe(twin: bool, seed: int) -> dict[str, Any]:
    return probed.judge(Regression(public_size=twin), digits(), adjacency="add-remove", seed=seed)


def by_model(twin: bool, seed: int) -> dict[str, Any]:
    """The squared length of the weights: a smaller divisor leaves more noise in them."""
    trainer, data = Regression(public_size=twin), digits()
    less = TensorDataset(*(column[1:] for column in data.tensors))

    def score(bit: int, one: int) -> float:
        seed_everything(one)
        model = trainer.train(data if bit else less, seed=one, size=N)
        return float(sum((weights.detach() ** 2).sum() for weights in model.parameters()))

    eps = accountant_eps(trainer.privacy(N), delta=DELTA, adjacency="add-remove")
    return membership.judge(score, n=400, seed=seed, eps=eps, delta=DELTA, adjacency="add-remove")
