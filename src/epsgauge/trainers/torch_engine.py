"""SGD by torch: shuffled batches and their mean cross-entropy."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from epsgauge.trainers.optimisers import made

if TYPE_CHECKING:
    import torch
    from torch import nn


def fit(
    model: nn.Module,
    x: torch.Tensor,
    y: torch.Tensor,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float,
    batches: np.random.Generator,
    size: int | None = None,
    momentum: float = 0.0,
    optimiser: str = "sgd",
    physical_batch: int | None = None,
) -> None:
    """Train `model` in place. An epoch has ceil(size / batch_size) batches, as equal as can be."""
    import torch
    from torch.nn.functional import cross_entropy

    per_epoch = math.ceil((len(x) if size is None else size) / batch_size)
    steps = made(optimiser, model.parameters(), learning_rate=learning_rate, momentum=momentum)
    for _ in range(epochs):
        for batch in np.array_split(batches.permutation(len(x)), per_epoch):
            if not len(batch):  # fewer points than batches
                continue
            steps.zero_grad()
            index = torch.from_numpy(batch).to(x.device)
            for piece in torch.split(index, physical_batch or len(batch)):
                share = len(piece) / len(batch)  # of the mean over the batch
                (share * cross_entropy(model(x[piece]), y[piece])).backward()  # type: ignore[no-untyped-call]
            steps.step()
