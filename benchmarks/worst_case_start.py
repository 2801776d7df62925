"""How near a black-box audit of full-batch DP-SGD comes to ε = 10 from a worst-case start, beside an ideal adversary.

The setting of Annamalai and De Cristofaro (2024): 1,000 records, adjacency add-remove, every record in every step, all
models from one start that was pretrained on other records, the canary's margin in the last model. Their figures were
6.95 (CIFAR-10) and 7.21 (MNIST) with 200 models, estimates by the best threshold for the same scores. Here 100 further
models choose the threshold, and the 200 that are judged give an exact one-sided 95 % bound of μ, and the ε it is worth.
"""

from __future__ import annotations

import argparse
import math
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from timing import on_one_thread

from epsgauge.auditing.audit import audit
from epsgauge.data.cifar10 import cifar10
from epsgauge.data.idx import idx
from epsgauge.scores.table import Scores
from epsgauge.stats import region
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.trainers.dpsgd import DpSgd

if TYPE_CHECKING:
    from torch import nn

EPS, DELTA, LEVEL = 10.0, 1e-5, 0.95
N_TRAIN, N_JUDGED, N_TRIED = 1000, 200, 60
STEPS = 10
MU = float(region.gaussian_mu(EPS, delta=DELTA))
CIFAR10 = Path(__file__).resolve().parents[2] / "shared/data/cifar-10-batches-bin"
FASHION = Path("/usr/share/datasets/fashion-mnist")  # where Debian's dataset-fashion-mnist puts it

Points = tuple[Floats, Ints]
_folders = {"cifar10": CIFAR10, "fashion": FASHION}


# What is trained


@lru_cache(maxsize=2)
def points(name: str) -> Points:
    folder = _folders[name]
    if name == "cifar10":
        return cifar10(folder)
    return idx(folder / "train-images-idx3-ubyte.gz", folder / "train-labels-idx1-ubyte.gz")


def other_cifar10() -> Points:
    """What the start is pretrained on: images that no model trains on."""
    return _after_base("cifar10")


def other_fashion() -> Points:
    return _after_base("fashion")


def _after_base(name: str) -> Points:
    x, y = points(name)
    return x[N_TRAIN:][:10_000], y[N_TRAIN:][:10_000]


def cnn_cifar10() -> nn.Module:
    return _cnn(3)


def cnn_fashion() -> nn.Module:
    return _cnn(1)


def _cnn(channels: int) -> nn.Module:
    """A small CNN, so that hundreds of models take minutes on one core."""
    from torch import nn

    return nn.Sequential(
        nn.AvgPool2d(2),
        nn.Conv2d(channels, 8, 5, stride=2, padding=2),
        nn.Tanh(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.Tanh(),
        nn.Flatten(),
        nn.Linear(256, 10),
    )


def trainer_of(name: str, learning_rate: float) -> DpSgd:
    here = Path(__file__).stem
    return DpSgd(
        model=f"{here}:cnn_{name}",
        epochs=STEPS,
        batch_size=N_TRAIN,
        learning_rate=learning_rate,
        noise_multiplier=math.sqrt(STEPS) / MU,
        init="pretrained",
        init_data=f"{here}:other_{name}",
        engine="stacked",
    )


# What the adversary does


@dataclass(frozen=True)
class Canary:
    image: str
    point: Points

    def __str__(self) -> str:
        return f"{self.image} image, label {self.point[1][0]}"


def candidates(name: str) -> list[Canary]:
    """Images that are like no other, with every label."""
    shape = points(name)[0].shape[1:]
    board = np.indices(shape[1:]).sum(axis=0) % 2
    images = {"blank": np.zeros(shape), "white": np.ones(shape), "chequered": np.broadcast_to(board, shape)}
    return [
        Canary(image, (values[None].astype(np.float32), np.array([label])))
        for image, values in images.items()
        for label in range(10)
    ]


def margins(trainer: DpSgd, base: Points, canary: Canary | None, seed: int, asked: list[Canary]) -> Floats:
    """Of the asked points in the last model, which was trained with the canary or without any."""
    x, y = base
    if canary is not None:
        x, y = np.concatenate([x, canary.point[0]]), np.concatenate([y, canary.point[1]])
    model = trainer.train((x, y), seed=seed, size=N_TRAIN)
    at = tuple(np.concatenate([c.point[i] for c in asked]) for i in range(2))
    loss = trainer.losses(model, at)
    out: Floats = -loss - np.log(-np.expm1(-loss))  # as the attack margin has them
    return out


def best(trainer: DpSgd, base: Points, tried: list[Canary]) -> Canary:
    """The canary that moves its margin most without noise, in units of what noise does to it where no canary is.

    No model of it is judged. All candidates see the same noise.
    """
    quiet = trainer.without_noise()
    noisy = np.array([margins(trainer, base, None, 10**6 + i, tried) for i in range(N_TRIED)])
    still = margins(quiet, base, None, 0, tried)
    moved = np.array([margins(quiet, base, one, 0, [one])[0] for one in tried])
    return tried[int(np.argmax((moved - still) / noisy.std(axis=0)))]


def bound(bits: Ints, scores: Floats) -> float:
    """ε of the bound of μ, which needs no rule: the one that the judged data choose does not matter."""
    n = len(bits)
    table = Scores(np.arange(n), np.zeros(n, np.int64), bits, scores, "add-remove", bits="coins")
    found = audit(
        table,
        delta=DELTA,
        rule="same-data",
        verdict_method="gaussian",
        verdict_level=LEVEL,
        claimed_mu=MU,
        claimed_adjacency="add-remove",
    )
    return found.verdict.bound.value


def apart(bits: Ints, scores: Floats) -> float:
    """How many standard deviations the scores with b = 1 and b = 0 are apart: μ of the attack, without statistics."""
    ins, outs = scores[bits == 1], scores[bits == 0]
    return float((ins.mean() - outs.mean()) / math.sqrt((ins.var(ddof=1) + outs.var(ddof=1)) / 2))


def drawn(seed: int) -> Ints:
    return np.random.default_rng([seed, 1]).integers(0, 2, N_JUDGED)


# The two figures


def reached(name: str, learning_rate: float, seeds: list[int]) -> None:
    x, y = points(name)
    base = (x[: N_TRAIN - 1], y[: N_TRAIN - 1])
    trainer = trainer_of(name, learning_rate)
    canary = best(trainer, base, candidates(name))
    at_start = _accuracy(replace(trainer, learning_rate=1e-12), base)
    print(f"{name}: {canary}; learning rate {learning_rate:g}, {STEPS} steps, noise {trainer.noise_multiplier:.3f}")
    print(f"  right of the training set: {at_start:.1%} at the start, {_accuracy(trainer, base):.1%} at the end")
    found = []
    for seed in seeds:
        start, bits = time.process_time(), drawn(seed)
        members = [canary if bit else None for bit in bits]
        seen = [margins(trainer, base, m, 1000 * (seed + 1) + i, [canary])[0] for i, m in enumerate(members)]
        scores = np.array(seen)
        found.append(bound(bits, scores))
        took = time.process_time() - start
        print(
            f"  seed {seed}: ε ≥ {found[-1]:.2f}, μ of the attack {apart(bits, scores):.2f} ({took:.0f} s)", flush=True
        )
    print(f"  mean {np.mean(found):.2f} of {len(found)}")


def _accuracy(trainer: DpSgd, base: Points) -> float:
    import torch

    model = trainer.train(base, seed=0, size=N_TRAIN)
    with torch.no_grad():
        return float((model(torch.from_numpy(base[0])).argmax(1).numpy() == base[1]).mean())


def ideal(runs: int) -> None:
    """An adversary who sees the sum of all noise along the canary: a Gaussian of the accountant's μ."""
    found = []
    for seed in range(runs):
        bits = drawn(seed)
        found.append(bound(bits, np.random.default_rng([seed, 2]).normal(MU * bits)))
    above = np.mean(np.array(found) > EPS)  # at most 1 − LEVEL is allowed
    print(f"ideal adversary: mean {np.mean(found):.2f}, standard deviation {np.std(found):.2f}, of {runs} runs")
    print(f"  {above:.1%} of them above {EPS:g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=CIFAR10, help="folder of CIFAR-10's binary files")
    parser.add_argument("--fashion", type=Path, default=FASHION, help="folder of Fashion-MNIST's idx files")
    parser.add_argument("--only", choices=("cifar10", "fashion", "ideal"), help="one of the three")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="a run of 200 models for each")
    parser.add_argument("--learning-rate", type=float, default=0.5)
    given = parser.parse_args()
    _folders.update(cifar10=given.data, fashion=given.fashion)
    print(f"ε = {EPS:g} at δ = {DELTA:g} is μ = {MU:.3f} (add-remove); {N_JUDGED} models judged")
    if given.only in (None, "ideal"):
        ideal(200)
    for name, folder in _folders.items():
        if given.only in (None, name) and folder.is_dir():
            reached(name, given.learning_rate, given.seeds)


if __name__ == "__main__":
    on_one_thread()
    import worst_case_start  # the same module that the trainer imports by its name, with the same folders

    worst_case_start.main()
