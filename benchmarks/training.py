"""Time DP-SGD of many models: Opacus, torch.func and the stacked engine, on one core with Poisson batches everywhere.

Prints models per core-second and ratios, and judges nothing. `benchmarks/README.md` says how to read the table.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from timing import Job, interleave, machine, on_one_thread

on_one_thread()

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch import Tensor, nn  # noqa: E402
from torch.func import functional_call, grad, stack_module_state, vmap  # noqa: E402
from torch.nn.functional import cross_entropy  # noqa: E402

from epsgauge.data.idx import idx  # noqa: E402
from epsgauge.trainers import opacus_engine  # noqa: E402
from epsgauge.trainers.recipe import Recipe  # noqa: E402
from epsgauge.trainers.stacked.engine import fit_many  # noqa: E402
from epsgauge.trainers.stacked.group import group_for, width_for  # noqa: E402
from epsgauge.trainers.streams import streams, torch_seed, torch_seeded  # noqa: E402

N, BATCH = 1000, 100
FASHION = Path("/usr/share/datasets/fashion-mnist")
IMAGES, LABELS = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"
CPU = torch.device("cpu")
Factory = Callable[[], nn.Module]
Data = tuple[Tensor, Tensor]


def logistic() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 10))


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def cnn() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 10)),
    )


def lenet() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(400, 64), nn.ReLU(), nn.Linear(64, 10)),
    )


def digits() -> Data:
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    return torch.tensor(x[:N] / 16, dtype=torch.float32), torch.tensor(y[:N])


def fashion(folder: Path) -> tuple[Data, str]:
    """The first points of Fashion-MNIST, or random ones of their shape where the files are not there."""
    if (folder / IMAGES).exists():
        x, y = idx(folder / IMAGES, folder / LABELS)
        return (torch.from_numpy(x[:N]), torch.from_numpy(y[:N])), "Fashion-MNIST"
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(N, 1, 28, 28, generator=generator) * (torch.rand(N, 1, 28, 28, generator=generator) > 0.5)
    labels = torch.randint(0, 10, (N,), generator=generator)
    return (images, labels), f"random 28×28 images: {folder / IMAGES} is not there"


@dataclass(frozen=True)
class Task:
    """One architecture on one data set. Every model has a seed of its own, and one point that the others lack."""

    name: str
    factory: Factory
    data: Data
    recipe: Recipe
    seeds: Iterator[int]

    def data_of(self, seed: int) -> Data:
        x, y = self.data[0].clone(), self.data[1].clone()
        x[-1], y[-1] = x[seed % N], y[seed % N]
        return x, y

    def built(self, seed: int) -> nn.Module:
        with torch_seeded(streams(seed).initialisation, CPU):
            return self.factory()

    def privacy_engine(self, mode: str) -> None:
        """Opacus as its users run it: PrivacyEngine and its data loader, with hooks or ghost clipping."""
        from opacus import PrivacyEngine
        from torch.utils.data import DataLoader, TensorDataset

        seed, recipe = next(self.seeds), self.recipe
        model = self.built(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, optimiser, *criterion, loader = PrivacyEngine().make_private(
                module=model,
                optimizer=torch.optim.SGD(model.parameters(), lr=recipe.learning_rate),
                data_loader=DataLoader(TensorDataset(*self.data_of(seed)), batch_size=recipe.batch_size),
                noise_multiplier=recipe.noise_multiplier,
                max_grad_norm=recipe.max_grad_norm,
                poisson_sampling=True,
                grad_sample_mode=mode,
                criterion=nn.CrossEntropyLoss(),
            )
            loss = criterion[0] if criterion else cross_entropy
            for _ in range(recipe.steps * recipe.batch_size // N):
                for x, y in loader:
                    optimiser.zero_grad()
                    loss(model(x), y).backward()
                    optimiser.step()

    def opacus(self) -> None:
        """Opacus' hooks and optimiser in the loop of our own engine, which draws batches faster."""
        seed = next(self.seeds)
        _, batches, noise = streams(seed)
        opacus_engine.fit(
            self.built(seed),
            *self.data_of(seed),
            self.recipe,
            batches=np.random.default_rng(batches),
            noise=torch.Generator().manual_seed(torch_seed(noise)),
        )

    def torch_func(self, size: int) -> None:
        """Per-example gradients by vmap of grad, and a second vmap over `size` models with padded batches."""
        some = [next(self.seeds) for _ in range(size)]
        models = [self.built(seed) for seed in some]
        x, y = (torch.stack(t) for t in zip(*(self.data_of(seed) for seed in some), strict=True))
        generators = [np.random.default_rng(streams(seed).batches) for seed in some]
        noise = torch.Generator().manual_seed(some[0])
        parameters = {k: v.detach() for k, v in stack_module_state(models)[0].items()}
        recipe, skeleton = self.recipe, self.factory().to("meta")

        def loss(values: dict[str, Tensor], point: Tensor, label: Tensor) -> Tensor:
            return cross_entropy(functional_call(skeleton, values, (point[None],)), label[None])

        each = vmap(vmap(grad(loss), in_dims=(None, 0, 0)))
        for _ in range(recipe.steps):
            drawn = [np.flatnonzero(g.random(N) < recipe.sample_rate) for g in generators]
            width = max(len(d) for d in drawn)
            rows = torch.tensor(np.stack([np.pad(d, (0, width - len(d))) for d in drawn]))
            real = torch.tensor(np.stack([np.arange(width) < len(d) for d in drawn]))
            models_ = torch.arange(size)[:, None]
            gradients = each(parameters, x[models_, rows], y[models_, rows])
            norms = sum(g.flatten(2).square().sum(2) for g in gradients.values()).sqrt()
            factor = (recipe.max_grad_norm / (norms + 1e-6)).clamp(max=1.0) * real
            for name, g in gradients.items():
                total = torch.bmm(factor[:, None], g.flatten(2)).view_as(parameters[name])
                total += torch.empty_like(total).normal_(0, recipe.noise_multiplier, generator=noise)
                parameters[name] = parameters[name] - recipe.learning_rate / recipe.batch_size * total

    def stacked(self, size: int) -> None:
        some = [next(self.seeds) for _ in range(size)]
        group = replace(group_for(self.factory(), self.data[0], self.recipe), size=size)
        fit_many(
            [self.built(seed) for seed in some],
            [self.data_of(seed) for seed in some],
            self.recipe,
            streams=[streams(seed) for seed in some],
            group=group,
        )


def jobs(task: Task, func_models: int) -> list[Job]:
    size = group_for(task.factory(), task.data[0], task.recipe).size
    found = [
        Job("Opacus, its engine", 1, lambda: task.privacy_engine("hooks")),
        Job("Opacus, ghost clipping", 1, lambda: task.privacy_engine("ghost")),
        Job("Opacus, our loop", 1, task.opacus),
    ]
    found.append(Job("torch.func, one model", 1, lambda: task.torch_func(1)))
    if func_models > 1:
        found.append(Job(f"torch.func, {func_models} models", func_models, lambda: task.torch_func(func_models)))
    return [*found, Job(f"stacked, {size} models", size, lambda: task.stacked(size))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="*", help="logistic, mlp, cnn, lenet")
    parser.add_argument("--fashion", type=Path, default=FASHION, help="folder with Fashion-MNIST's idx files")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    torch.set_num_threads(1)
    recipe = Recipe(
        steps=given.epochs * N // BATCH,
        sample_rate=BATCH / N,
        batch_size=BATCH,
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        learning_rate=0.1,
        momentum=0.0,
    )
    (x, y), (clothes, source) = digits(), fashion(given.fashion)
    seeds = count()
    tasks = [
        (Task("logistic", logistic, (x, y), recipe, seeds), 10),
        (Task("mlp", mlp, (x, y), recipe, seeds), 4),
        (Task("cnn", cnn, (x.view(-1, 1, 8, 8), y), recipe, seeds), 4),
        (Task("lenet", lenet, clothes, recipe, seeds), 1),
    ]
    about = {**machine(), "torch": torch.__version__, "LeNet on": source}
    print(*(f"{k}: {v}" for k, v in about.items()), sep="\n")
    print(f"n = {N}, batch {BATCH}, {given.epochs} epochs, batches padded to {width_for(recipe)}")
    print("models per core-second of CPU time with quartiles; medians over interleaved rounds of how many times faster")
    print("that is than Opacus with its own engine, and than Opacus in our loop")
    report: dict[str, object] = {"about": about}
    for task, func_models in tasks:
        if given.only and task.name not in given.only:
            continue
        parameters = sum(p.numel() for p in task.factory().parameters())
        print(f"\n{task.name}, {parameters:,} parameters")
        competitors = jobs(task, func_models)
        for job in competitors:
            job.run()  # imports and first touches are not part of any round
        found = interleave(competitors, given.rounds)
        rows = {}
        for name, timing in found.items():
            low, high = (1e3 / ms for ms in reversed(timing.quartiles))
            ratios = [found[opacus].over(timing) for opacus in ("Opacus, its engine", "Opacus, our loop")]
            rows[name] = {"models_per_second": 1e3 / timing.median, "times_opacus": ratios, "ms": timing.ms}
            shown = "".join(f"{ratio:8.2f}×" for ratio in ratios)
            print(f"  {name:24} {1e3 / timing.median:8.2f} {f'({low:.2f} to {high:.2f})':>20} {shown}")
        report[task.name] = rows
    if given.json:
        given.json.write_text(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
