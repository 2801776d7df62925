"""What a plan that names no adversary shows of the accountant's ε, beside the black box, on the same training.

`python benchmarks/strong_by_default.py` trains the models of four runs: a small CNN on digits with Opacus and Adam, and
LoRA on a small transformer with Opacus and AdamW, each by default and with `preset = "black-box"`. It prints one row
for each run: ε by the accountant; the guaranteed bound for any training, the one if the training is DP-SGD as stated,
and their shares of ε; the canary; the number of models; and CPU seconds, with imports and the probe.
"""

from __future__ import annotations

import argparse
import math
import resource
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from opacus import PrivacyEngine
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import epsgauge as eg
from epsgauge.numbers import at_least
from epsgauge.runner.store import FILE, Store

MODELS, TRAIN_SIZE = 300, 500
VOCABULARY, LENGTH, WIDTH, HEADS, RANK = 64, 12, 32, 4, 4
ADVERSARIES: dict[str, dict[str, Any]] = {"default": {}, "black box": {"adversary": {"preset": "black-box"}}}


class ConvNet(nn.Module):
    """The one of `examples/scripts/mnist_like.py`."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.fc1, self.fc2 = nn.Linear(16 * 2 * 2, 32), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        out: Tensor = self.fc2(functional.relu(self.fc1(x.flatten(1))))
        return out


class LoRALinear(nn.Module):
    """A frozen linear layer plus a trained one of low rank."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base = base.requires_grad_(False)
        self.lora_a = nn.Linear(base.in_features, RANK, bias=False)
        self.lora_b = nn.Linear(RANK, base.out_features, bias=False)
        nn.init.zeros_(self.lora_b.weight)

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.base(x) + 2.0 * self.lora_b(self.lora_a(x))
        return out


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.query, self.value = (LoRALinear(nn.Linear(WIDTH, WIDTH)) for _ in range(2))
        self.key, self.out = (nn.Linear(WIDTH, WIDTH) for _ in range(2))
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 2 * WIDTH), nn.GELU(), nn.Linear(2 * WIDTH, WIDTH))

    def forward(self, x: Tensor) -> Tensor:
        h = self.norm1(x)
        q, k, v = (f(h).unflatten(-1, (HEADS, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
        x = x + self.out(functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        out: Tensor = x + self.mlp(self.norm2(x))
        return out


class Transformer(nn.Module):
    """The one of `examples/scripts/lora.py`: its attention is frozen beside matrices of low rank."""

    def __init__(self) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(0)  # in place of a checkpoint
            self.tokens, self.blocks = nn.Embedding(VOCABULARY, WIDTH), nn.ModuleList(Block() for _ in range(2))
            self.positions = nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.1)
        self.head = nn.Linear(WIDTH, 2)
        for name, parameter in self.named_parameters():
            parameter.requires_grad = "lora_" in name or name.startswith("head.")

    def forward(self, x: Tensor) -> Tensor:
        h = self.tokens(x) + self.positions
        for block in self.blocks:
            h = block(h)
        out: Tensor = self.head(h.mean(dim=1))
        return out


@dataclass(frozen=True)
class Opacus:
    """A training loop with PrivacyEngine, and the line that shows its updates."""

    noise_multiplier: float = 1.0
    epochs: int = 3
    batch_size: int = 50
    learning_rate: float = 1e-2

    def model(self) -> nn.Module:
        raise NotImplementedError

    def optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        raise NotImplementedError

    def train(self, data: Any, *, seed: int, size: int, watch: Any = None) -> nn.Module:
        model = self.model()
        x, y = (torch.from_numpy(np.asarray(part)) for part in data)
        private, optimizer, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=self.optimizer([p for p in model.parameters() if p.requires_grad]),
            data_loader=DataLoader(TensorDataset(x, y), batch_size=self.batch_size),
            noise_multiplier=self.noise_multiplier,
            max_grad_norm=1.0,
        )
        if watch is not None:
            optimizer.attach_step_hook(watch.of(private))
        for _ in range(self.epochs):
            for inputs, labels in loader:
                optimizer.zero_grad()
                functional.cross_entropy(private(inputs), labels).backward()
                optimizer.step()
        return model

    def losses(self, model: nn.Module, points: Any) -> Tensor:
        x, y = (torch.from_numpy(np.asarray(part)) for part in points)
        with torch.no_grad():
            return functional.cross_entropy(model.eval()(x), y, reduction="none")

    def privacy(self, n: int) -> eg.DPSGD:
        steps = -(-n // self.batch_size)
        return eg.DPSGD(sample_rate=1 / steps, noise_multiplier=self.noise_multiplier, steps=self.epochs * steps)


class Cnn(Opacus):
    def model(self) -> nn.Module:
        return ConvNet()

    def optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, lr=self.learning_rate)


class LoRA(Opacus):
    def model(self) -> nn.Module:
        return Transformer()

    def optimizer(self, parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.AdamW(parameters, lr=self.learning_rate)


def digits() -> tuple[Any, Any]:
    images, labels = load_digits(return_X_y=True)
    return (images.reshape(-1, 1, 8, 8) / 16).astype(np.float32), labels


def sequences() -> tuple[Any, Any]:
    """A sequence is positive if more than half of its tokens are odd."""
    x = np.random.default_rng(0).integers(0, VOCABULARY, (1000, LENGTH))
    return x, ((x % 2).sum(axis=1) > LENGTH / 2).astype(np.int64)


def plan(name: str, data: str, trainer: str, n_models: int, adversary: dict[str, Any]) -> eg.Plan:
    return eg.Plan(
        name=name,
        n_models=n_models,
        data=f"strong_by_default:{data}",
        trainer={"use": f"strong_by_default:{trainer}"},
        game={"train_size": TRAIN_SIZE},
        folder=Path(__file__).parent,
        **adversary,
    )


def rows(n_models: int, workers: int | None, out: Path) -> Iterator[str]:
    yield "| training | adversary | accountant's ε | any training | if DP-SGD | canary | models | CPU s |"
    yield "|---" * 8 + "|"
    for name, data, trainer in (("CNN, Adam", "digits", "Cnn"), ("LoRA, AdamW", "sequences", "LoRA")):
        for who, adversary in ADVERSARIES.items():
            begun = spent()
            of_run = plan(trainer, data, trainer, n_models, adversary)
            run = eg.run(of_run, out=out / f"{trainer}-{who.replace(' ', '-')}", workers=workers)
            seconds, found = spent() - begun, eg.audit(run)
            eps = found.verdict.claim.eps if found.verdict.claim else math.nan
            shown = [bound.value for bound in found.verdict.bounds]
            cells = [f"{at_least(value)} ({math.floor(100 * value / eps)} %)" for value in shown]
            trained = f"{run.n_done} + {held_out(run)} held out"
            canary = run.canary["name"] if run.canary else "gradient"
            yield f"| {name} | {who} | {eps:.2f} | {' | '.join(cells)} | {canary} | {trained} | {seconds:.0f} |"


def spent() -> float:
    """CPU seconds of worker processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def held_out(run: eg.Run) -> int:
    with Store.read(run.path / FILE) as store:
        return len(store.rehearsed())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=MODELS)
    parser.add_argument("--workers", type=int)
    parser.add_argument("--out", type=Path, help="where the runs are kept; by default they are thrown away")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for line in rows(asked.models, asked.workers, asked.out or Path(scratch)):
            print(line, flush=True)
