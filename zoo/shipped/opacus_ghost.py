"""Opacus: ghost clipping computes norms of gradients without the gradients, and twice got them wrong.

Up to 1.5.2, `make_private(grad_sample_mode="ghost", max_grad_norm=C)` uses C for the noise alone, and clips gradients
to 1. With C = 0.1, one record can move an update ten times as far as the accountant assumes. (With C above 1, there is
more noise than needed, and no violation.)

Up to 1.5.3, the norm for the bias of a linear layer on [batch, time, features] is that of g gᵀ, where it should be that
of the sum of g over time. It is too small where g is small, so a gradient that is mostly bias is hardly clipped.

The claim is Opacus' own: DP-SGD with these noise multiplier, rate and steps, for gradients of norm C at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from opacus.utils import fast_gradient_clipping_utils
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import epsgauge as eg
from zoo.shipped import probed

BATCH = 50
TIME, FEATURES, LABELS = 16, 8, 3


class PerToken(nn.Module):
    """Scores of each token, and their mean over time."""

    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Linear(FEATURES, LABELS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scores(x).mean(dim=1)


@dataclass(frozen=True)
class Ghost:
    """A training with ghost clipping, called as each version wants it."""

    sequences: bool = False
    noise_multiplier: float = 1.0
    max_grad_norm: float = 0.1
    epochs: int = 10

    def train(self, data: Any, *, seed: int, size: int | None = None, watch: Any = None) -> nn.Module:
        model: Any = PerToken() if self.sequences else nn.Sequential(nn.Linear(64, 32), nn.Tanh(), nn.Linear(32, 10))
        given = {
            "module": model,
            "optimizer": torch.optim.SGD(model.parameters(), lr=0.5),
            "data_loader": DataLoader(data, batch_size=BATCH),
            "noise_multiplier": self.noise_multiplier,
            "max_grad_norm": self.max_grad_norm,
            "grad_sample_mode": "ghost",
        }
        criterion: Any = None
        if hasattr(fast_gradient_clipping_utils, "double_backward"):  # up to 1.5.2
            model, optimizer, loader = PrivacyEngine().make_private(**given, clipping="ghost")
        else:
            model, optimizer, criterion, loader = PrivacyEngine().make_private(**given, criterion=nn.CrossEntropyLoss())
        if watch is not None:
            optimizer.attach_step_hook(watch)
        for _ in range(self.epochs):
            for x, y in loader:
                optimizer.zero_grad()
                if criterion is None:
                    losses = cross_entropy(model(x), y, reduction="none")
                    fast_gradient_clipping_utils.double_backward(model, optimizer, losses)
                else:
                    criterion(model(x), y).backward()
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
    return TensorDataset(torch.tensor(x[:200] / 16, dtype=torch.float32), torch.tensor(y[:200]))


def sequences() -> TensorDataset:
    """Tokens that lean towards the direction of their label."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, LABELS, 200)
    x = np.eye(FEATURES)[y][:, None, :] + rng.normal(size=(200, TIME, FEATURES))
    return TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))


def on_digits(twin: bool, seed: int) -> dict[str, Any]:
    return probed.judge(Ghost(), digits(), adjacency="substitute", seed=seed)


def on_sequences(twin: bool, seed: int) -> dict[str, Any]:
    return probed.judge(Ghost(sequences=True), sequences(), adjacency="substitute", seed=seed)
