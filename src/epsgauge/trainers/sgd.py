"""Stochastic gradient descent without privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from epsgauge.trainers.network import Network
from epsgauge.trainers.optimisers import made
from epsgauge.trainers.stacked.plain import PlainRecipe
from epsgauge.trainers.streams import streams, torch_seeded

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class Sgd(Network):
    """Shuffled batches and their mean cross-entropy."""

    ENGINES: ClassVar[tuple[str, ...]] = ("auto", "stacked", "torch")

    def train(self, data: Any, *, seed: int, size: int | None = None) -> nn.Module:
        """An epoch has ceil(size / batch_size) batches, as equal as can be, whether or not a point is left out."""
        x, y = self._tensors(data)
        n = self._nominal(x, size)
        if self.engine == "stacked":
            return self._alone(data, seed=seed, size=n)
        import torch
        from torch.nn.functional import cross_entropy

        start, batches, _ = streams(seed)
        rng = np.random.default_rng(batches)
        with torch_seeded(start, x.device):
            model = self._built(x, y)
            optimiser = made(
                self.optimiser, model.parameters(), learning_rate=self.learning_rate, momentum=self.momentum
            )
            for _epoch in range(self.epochs):
                for batch in np.array_split(rng.permutation(len(x)), math.ceil(n / self.batch_size)):
                    if not len(batch):  # fewer points than batches
                        continue
                    optimiser.zero_grad()
                    index = torch.from_numpy(batch).to(x.device)
                    for piece in torch.split(index, self.physical_batch or len(batch)):
                        share = len(piece) / len(batch)  # of the mean over the batch
                        (share * cross_entropy(model(x[piece]), y[piece])).backward()  # type: ignore[no-untyped-call]
                    optimiser.step()
        return model.eval()

    def _constants(self, n: int) -> PlainRecipe:
        batches = math.ceil(n / self.batch_size)
        return PlainRecipe(
            epochs=self.epochs,
            batches=batches,
            batch_size=math.ceil(n / batches),
            learning_rate=self.learning_rate,
            momentum=self.momentum,
        )
