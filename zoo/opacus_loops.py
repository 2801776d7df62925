"""Training loops with Opacus as people write them, and what goes wrong: each bug is one method that differs."""

from __future__ import annotations

import copy
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
    """Opacus, flat clipping"""

    noise_multiplier: float = 1.5
    clip: float = 1.0
    epochs: int = 4
    batch: int = 50
    rate: float = 0.5

    def privacy(self, n):
        steps = -(-n // self.batch)
        return eg.DPSGD(sample_rate=1 / steps, noise_multiplier=self.noise_multiplier, steps=self.epochs * steps)

    def train(self, data, *, seed, watch=None):
        *_, model = self.after_each_epoch(data, watch)
        return model

    def after_each_epoch(self, data, watch):
        x, y = torch.as_tensor(data[0]), torch.as_tensor(data[1])
        model = self.model(y)
        model, optimizer, criterion, loader = self.private(
            model, DataLoader(TensorDataset(x, y), batch_size=self.batch), PrivacyEngine()
        )
        if watch is not None:
            optimizer.attach_step_hook(watch)
        for _ in range(self.epochs):
            self.epoch(model, optimizer, criterion, loader)
            yield model

    def losses(self, model, points):
        x, y = torch.as_tensor(points[0]), torch.as_tensor(points[1])
        with torch.no_grad():
            return cross_entropy(model(x), y, reduction="none").clamp(max=1e6).numpy()

    # What a bug replaces

    def model(self, y):
        return torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 10))

    def private(self, model, loader, engine):
        given = {"noise_multiplier": self.noise_multiplier, "max_grad_norm": self.clip, **self.how()}
        optimizer = torch.optim.SGD(model.parameters(), lr=self.rate)
        model, optimizer, loader = engine.make_private(module=model, optimizer=optimizer, data_loader=loader, **given)
        return model, optimizer, torch.nn.CrossEntropyLoss(), loader

    def how(self):
        return {}

    def epoch(self, model, optimizer, criterion, loader):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x), y).backward()
            optimizer.step()


class Ghost(Flat):
    """Opacus, ghost clipping, which never holds the gradients of single records"""

    def private(self, model, loader, engine):
        model, optimizer, criterion, loader = engine.make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=self.rate),
            criterion=torch.nn.CrossEntropyLoss(),
            data_loader=loader,
            noise_multiplier=self.noise_multiplier,
            max_grad_norm=self.clip,
            grad_sample_mode="ghost",
        )
        return model, optimizer, criterion, loader


class PerLayer(Flat):
    """Opacus, each array of parameters is clipped to its share of the norm"""

    def how(self):
        return {"clipping": "per_layer", "max_grad_norm": [self.clip / 2] * 4}


class Adaptive(Flat):
    """Opacus, a clipping norm that follows a noisy count of unclipped gradients"""

    def how(self):
        return {
            "clipping": "adaptive",
            "target_unclipped_quantile": 0.5,
            "clipbound_learning_rate": 0.2,
            "max_clipbound": 8.0,
            "min_clipbound": 0.05,
            "unclipped_num_std": 10.0,
        }


class Memory(Flat):
    """Opacus, batches are cut into pieces by BatchMemoryManager"""

    def epoch(self, model, optimizer, criterion, loader):
        with BatchMemoryManager(data_loader=loader, max_physical_batch_size=32, optimizer=optimizer) as pieces:
            super().epoch(model, optimizer, criterion, pieces)


@dataclass(frozen=True)
class Calibrated(Flat):
    """Opacus, make_private_with_epsilon"""

    target: float = 3.0

    def private(self, model, loader, engine):
        if self.noise_multiplier == 0:
            return super().private(model, loader, engine)
        model, optimizer, loader = engine.make_private_with_epsilon(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=self.rate),
            data_loader=loader,
            target_epsilon=self.target,
            target_delta=1e-5,
            epochs=self.epochs,
            max_grad_norm=self.clip,
        )
        return model, optimizer, torch.nn.CrossEntropyLoss(), loader

    def privacy(self, n):
        from opacus.accountants.utils import get_noise_multiplier

        steps = -(-n // self.batch)
        given = {"sample_rate": 1 / steps, "steps": self.epochs * steps, "accountant": "prv"}
        noise = get_noise_multiplier(target_epsilon=self.target, target_delta=1e-5, **given)
        return eg.DPSGD(sample_rate=1 / steps, noise_multiplier=noise, steps=self.epochs * steps)


@dataclass(frozen=True)
class LargeNorm(Flat):
    """Opacus, a clipping norm of 4"""

    clip: float = 4.0


# Bugs


class Debugged(Flat):
    """Opacus: the noise was turned off to debug, and not on again"""

    def how(self):
        return {"noise_multiplier": 0.0}


class TakenForDeviation(LargeNorm):
    """Opacus: the noise multiplier is divided by the clipping norm, as if it were a standard deviation"""

    def how(self):
        return {"noise_multiplier": self.noise_multiplier / self.clip}


class NotPoisson(Flat):
    """Opacus: poisson_sampling=False, and accounted for as if it were on"""

    def how(self):
        return {"poisson_sampling": False}


class SeedsEpochs(Flat):
    """Opacus: torch.manual_seed(42) at the start of each epoch"""

    def epoch(self, model, optimizer, criterion, loader):
        torch.manual_seed(42)
        super().epoch(model, optimizer, criterion, loader)


class BiasOfLabels(Flat):
    """Opacus: the last bias starts at the logarithms of the labels' frequencies"""

    def model(self, y):
        model = super().model(y)
        with torch.no_grad():
            model[-1].bias.copy_(((torch.bincount(y, minlength=10) + 1) / len(y)).log())
        return model


class BestEpoch(Flat):
    """Opacus: the epoch that fits the private data best is released"""

    def train(self, data, *, seed, watch=None):
        kept = []
        for model in self.after_each_epoch(data, watch):
            kept.append((self.losses(model, data).mean(), copy.deepcopy(model.state_dict())))
        model.load_state_dict(min(kept, key=lambda each: each[0])[1])
        return model


BUGS = {
    "Opacus: noise turned off": Debugged,
    "Opacus: noise over the norm": TakenForDeviation,
    "Opacus: shuffled": NotPoisson,
    "Opacus: seeded in the loop": SeedsEpochs,
    "Opacus: bias from labels": BiasOfLabels,
    "Opacus: best epoch": BestEpoch,
}
TWINS = {
    "Opacus: flat": Flat,
    "Opacus: ghost": Ghost,
    "Opacus: per layer": PerLayer,
    "Opacus: adaptive clipping": Adaptive,
    "Opacus: in pieces": Memory,
    "Opacus: calibrated": Calibrated,
    "Opacus: large norm": LargeNorm,
}
