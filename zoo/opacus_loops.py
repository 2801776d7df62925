"""Training loops with Opacus as people write them, and what goes wrong: each bug is one method that differs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import torch
from opacus import PrivacyEngine
from opacus.utils.batch_memory_manager import BatchMemoryManager
from sklearn.datasets import load_digits
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

import epsgauge as eg

warnings.filterwarnings("ignore", module="opacus|torch")


def data():
    x, y = load_digits(return_X_y=True)
    return (x / 16).astype("float32"), y


@dataclass(frozen=True)
class Flat:
    """no bug: flat clipping, Poisson batches"""

    noise_multiplier: float = 1.0
    clip: float = 1.0
    epochs: int = 2
    batch: int = 50
    rate: float = 0.5

    def privacy(self, n):
        steps = -(-n // self.batch)
        return eg.DPSGD(sample_rate=1 / steps, noise_multiplier=self.noise_multiplier, steps=self.epochs * steps)

    def train(self, data, *, seed, watch=None):
        model = self.model()
        optimizer, criterion = torch.optim.SGD(model.parameters(), lr=self.rate), torch.nn.CrossEntropyLoss()
        model, optimizer, criterion, loader = self.private(
            model, optimizer, criterion, self.loader(data), PrivacyEngine()
        )
        if watch is not None:
            optimizer.attach_step_hook(watch)
        for _ in range(self.epochs):
            self.epoch(model, optimizer, criterion, loader)
        return model

    def losses(self, model, points):
        x, y = torch.as_tensor(points[0]), torch.as_tensor(points[1])
        with torch.no_grad():
            return cross_entropy(model.eval()(x), y, reduction="none").clamp(max=1e6).numpy()

    # What a bug replaces

    def model(self):
        return torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))

    def loader(self, data):
        x, y = torch.as_tensor(data[0]), torch.as_tensor(data[1])
        return DataLoader(TensorDataset(x, y), batch_size=self.batch)

    def private(self, model, optimizer, criterion, loader, engine):
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=self.noise_multiplier,
            max_grad_norm=self.clip,
            **self.how(),
        )
        return model, optimizer, criterion, loader

    def how(self):
        return {}

    def epoch(self, model, optimizer, criterion, loader):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()


class Ghost(Flat):
    """no bug: ghost clipping, which never holds the gradients of single records"""

    def private(self, model, optimizer, criterion, loader, engine):
        model, optimizer, criterion, loader = engine.make_private(
            module=model,
            optimizer=optimizer,
            criterion=criterion,
            data_loader=loader,
            noise_multiplier=self.noise_multiplier,
            max_grad_norm=self.clip,
            grad_sample_mode="ghost",
        )
        return model, optimizer, criterion, loader


class PerLayer(Flat):
    """no bug: each layer is clipped to its share of the norm"""

    def how(self):
        return {"clipping": "per_layer", "max_grad_norm": [self.clip / 2] * 4}

    def private(self, model, optimizer, criterion, loader, engine):
        model, optimizer, loader = engine.make_private(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            noise_multiplier=self.noise_multiplier,
            **self.how(),
        )
        return model, optimizer, criterion, loader


class Memory(Flat):
    """no bug: batches are cut into pieces to save memory"""

    def epoch(self, model, optimizer, criterion, loader):
        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=16, optimizer=optimizer) as pieces:
            super().epoch(model, optimizer, criterion, pieces)


@dataclass(frozen=True)
class Calibrated(Flat):
    """no bug: the noise is calibrated for ε = 3"""

    target: float = 3.0

    def private(self, model, optimizer, criterion, loader, engine):
        if self.noise_multiplier == 0:
            return super().private(model, optimizer, criterion, loader, engine)
        model, optimizer, loader = engine.make_private_with_epsilon(
            module=model,
            optimizer=optimizer,
            data_loader=loader,
            target_epsilon=self.target,
            target_delta=1e-5,
            epochs=self.epochs,
            max_grad_norm=self.clip,
        )
        return model, optimizer, criterion, loader

    def privacy(self, n):
        from opacus.accountants.utils import get_noise_multiplier

        steps = -(-n // self.batch)
        noise = get_noise_multiplier(
            target_epsilon=self.target,
            target_delta=1e-5,
            sample_rate=1 / steps,
            steps=self.epochs * steps,
            accountant="prv",
        )
        return eg.DPSGD(sample_rate=1 / steps, noise_multiplier=noise, steps=self.epochs * steps)
