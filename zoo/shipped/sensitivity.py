"""How far one record moves an update of DP-SGD while sampling and noise are held fixed, and what depends on n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils.data import TensorDataset

from epsgauge.trainers.coordinates import numpy_of
from epsgauge.trainers.protocol import seed_everything
from epsgauge.trainers.watch import Watch

Record = tuple[torch.Tensor, torch.Tensor]
ALLOWED = 2.0  # clipping norms, where one record replaces another
ROUNDING = 1e-3


@dataclass(frozen=True)
class Measured:
    replaced: float  # the most that a record in the place of another moves an update, in clipping norms
    divisors: tuple[float, float]  # of the sum, with all records and with one left out
    steps: tuple[int, int]


class _Updates(Watch):
    """Keeps every update, as a sum in clipping norms."""

    def begin(self) -> None:
        super().begin()
        self.sums: list[np.ndarray] = []
        self.divisors: list[float] = []

    def _see(self, arrays: list[Any], max_grad_norm: float, divisor: float, gradients: Any) -> list[Any]:
        self.n_steps += 1
        flat = np.concatenate([numpy_of(array).ravel() for array in arrays])
        self.sums.append(flat * (divisor / max_grad_norm))
        self.divisors.append(divisor)
        return arrays


def measure(trainer: Any, data: TensorDataset, records: Sequence[Record], *, seed: int) -> Measured:
    """Each of `records` takes the place of the first; then the first is left out."""

    def seen(points: TensorDataset) -> _Updates:
        watch = _Updates()
        seed_everything(seed)
        trainer.train(points, seed=seed, size=len(data), watch=watch)
        return watch

    whole = seen(data)
    less = seen(TensorDataset(*(column[1:] for column in data.tensors)))
    return Measured(
        replaced=max(_moved(whole, seen(_with_first(data, record))) for record in records),
        divisors=(whole.divisors[0], less.divisors[0]),
        steps=(whole.n_steps, less.n_steps),
    )


def _with_first(data: TensorDataset, record: Record) -> TensorDataset:
    pairs = zip(record, data.tensors, strict=True)
    return TensorDataset(*(torch.cat([value[None].to(column.dtype), column[1:]]) for value, column in pairs))


def _moved(one: _Updates, other: _Updates) -> float:
    """The distance at the first step where they differ: later ones start from other weights."""
    for a, b in zip(one.sums, other.sums, strict=True):
        if (a != b).any():
            return float(np.linalg.norm(a - b))
    return 0.0
