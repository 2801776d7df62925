"""Stochastic gradient descent without privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from epsgauge.trainers import torch_engine
from epsgauge.trainers.network import Network
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
        start, batches, _ = streams(seed)
        with torch_seeded(start, x.device):
            model = self._started(x, y)
            torch_engine.fit(
                model,
                x,
                y,
                epochs=self.epochs,
                batch_size=self.batch_size,
                learning_rate=self.learning_rate,
                batches=np.random.default_rng(batches),
                size=n,
                momentum=self.momentum,
                optimiser=self.optimiser,
                physical_batch=self.physical_batch,
            )
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
