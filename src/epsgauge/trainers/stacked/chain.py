"""An ordinary module as a chain of stacked layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from epsgauge.errors import InvalidInput
from epsgauge.trainers.stacked.layers import Layer, Trained
from epsgauge.trainers.stacked.layout import Unsupported, layers_of
from epsgauge.trainers.stacked.shapes import Dropout

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


class Chain:
    """Layers from the points to the scores of the classes."""

    def __init__(self, layers: Sequence[tuple[Layer, bool]], *, flat: bool) -> None:
        """Layers with whether they are trained; with `flat` the points are flattened first."""
        self._flat = flat
        self._layers = [layer for layer, _ in layers]
        self.trained = [x for x, trained in layers if trained and isinstance(x, Trained)]
        self.frozen = [x for x, trained in layers if not trained and isinstance(x, Trained) and x.n_parameters]
        self._lowest = self._layers.index(self.trained[0])
        self._dropouts = [x for x in self._layers if isinstance(x, Dropout)]

    def prepared(self, x: Tensor) -> Tensor:
        """Points as rows of the table from which batches are taken."""
        return self._layers[0].prepared(x.flatten(1) if self._flat else x)

    def seed(self, generators: list[torch.Generator]) -> None:
        """Generators of what layers draw, one for each model."""
        for layer in self._dropouts:
            layer.seed(generators)

    def outputs(self, rows: Tensor, real: Tensor) -> Tensor:
        """Scores [K, classes, B] of prepared points, of which `real` [K, B] are not padding."""
        if self._dropouts:
            has_points = real.any(1).tolist()
            for layer in self._dropouts:
                layer.expect(has_points)
        x = self._layers[0].first(rows)
        for above in self._layers[1:]:
            x = above.forward(x)
        return x

    def back(self, g: Tensor) -> None:
        """Give each trained layer the gradients of the points' losses by its outputs."""
        for i in range(len(self._layers) - 1, self._lowest - 1, -1):
            layer = self._layers[i]
            if isinstance(layer, Trained):
                layer.keep(g)
            if i > self._lowest:
                g = layer.backward(g)

    def squared_norms(self) -> Tensor:
        """[K, B]: of each point's gradient by all parameters."""
        total = self.trained[0].squared_norms()
        for layer in self.trained[1:]:
            total.add_(layer.squared_norms())
        return total


def chain(module: nn.Module, x: Tensor, *, dropout: bool = True) -> Chain:
    """The chain for points such as x."""
    try:
        layers, flat = layers_of(module, x.ndim - 1)
    except Unsupported as reason:
        raise InvalidInput(
            f'the model must be one that engine = "stacked" can train, but {reason}. Use engine = "opacus".'
        ) from None
    return Chain([(layer, t) for layer, t in layers if dropout or not isinstance(layer, Dropout)], flat=flat)


def supports(module: nn.Module, x: Tensor) -> str | None:
    """Why this module cannot be trained on points such as x by this engine; None if it can."""
    try:
        layers_of(module, x.ndim - 1)
    except Unsupported as reason:
        return str(reason)
    return None
