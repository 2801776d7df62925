"""What a stacked layer is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from epsgauge.trainers.stacked.axes import split, stacked

if TYPE_CHECKING:
    from torch import Tensor


def room(kept: Tensor | None, shape: Sequence[int], like: Tensor) -> Tensor:
    """`kept` if it has this shape, else a new tensor: memory that is used at every step is not asked for again."""
    return kept if kept is not None and kept.shape == tuple(shape) else like.new_empty(tuple(shape))


class Layer:
    """One layer of all K models."""

    def prepared(self, x: Tensor) -> Tensor:
        """Points [n, …] as rows [n, r] of numbers, where this is the first layer: what can be computed once is."""
        self._point = x.shape[1:]
        return x.flatten(1)

    def first(self, rows: Tensor) -> Tensor:
        """`forward` of rows [K, B, r] that were prepared."""
        return self.forward(stacked(split(rows, 2, self._point)))

    def forward(self, x: Tensor) -> Tensor:
        """Outputs; keeps what `backward` needs."""
        raise NotImplementedError

    def backward(self, g: Tensor) -> Tensor:
        """From the gradient of each point's loss by the outputs to that by the inputs. May write into g."""
        raise NotImplementedError


class Trained(Layer):
    """A layer with parameters: a row of `n_parameters` numbers for each model."""

    n_parameters: int
    _g: Tensor

    def bind(self, parameters: Tensor, gradients: Tensor) -> None:
        """Use these tables [K, n_parameters]."""
        raise NotImplementedError

    def views(self, table: Tensor) -> list[Tensor]:
        """Such a table as [K, …] for each parameter of the module, in the module's order."""
        raise NotImplementedError

    def keep(self, g: Tensor) -> None:
        """Keep the gradient by the outputs for the next two."""
        self._g = g

    def squared_norms(self) -> Tensor:
        """[K, B]: of each point's gradient by the parameters of this layer."""
        raise NotImplementedError

    def put_gradients(self, weights: Tensor, *, add: bool) -> None:
        """The sum of the points' gradients, times `weights` [K, B], into the table of gradients, or added to it."""
        raise NotImplementedError
