"""Group and layer normalisation, and the gradients by their scales and shifts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from epsgauge.trainers.stacked.axes import by_point, split, stacked
from epsgauge.trainers.stacked.layers import Trained

if TYPE_CHECKING:
    from torch import Tensor, nn


class Normalisation(Trained):
    """To mean 0 and variance 1 along some axes, then a scale and a shift of each model, where the module has them."""

    def __init__(self, shape: tuple[int, ...], module: nn.GroupNorm | nn.LayerNorm) -> None:
        self._shape, self._eps = shape, module.eps
        there = zip((True, False), (module.weight, module.bias), strict=True)
        self._scales = [is_scale for is_scale, parameter in there if parameter is not None]  # for each parameter
        self.n_parameters = len(self._scales) * math.prod(shape)
        self._values: list[Tensor] = []
        self._gradients: list[Tensor] = []

    def bind(self, parameters: Tensor, gradients: Tensor) -> None:
        self._values, self._gradients = self.views(parameters), self.views(gradients)

    def views(self, table: Tensor) -> list[Tensor]:
        one = math.prod(self._shape)
        return [split(table[:, i * one : (i + 1) * one], 1, self._shape) for i in range(len(self._scales))]

    def _grouped(self, points: Tensor) -> tuple[Tensor, tuple[int, ...]]:
        """The points, and the axes along which they are normalised."""
        raise NotImplementedError

    def _others(self, points: Tensor) -> tuple[int, ...]:
        """The axes along which one number of a parameter is used again and again, apart from models and points."""
        raise NotImplementedError

    def _spread(self, parameter: Tensor, points: Tensor) -> Tensor:
        for axis in (1, *self._others(points)):
            parameter = parameter.unsqueeze(axis)
        return parameter

    def forward(self, x: Tensor) -> Tensor:
        import torch

        points = by_point(x)
        grouped, axes = self._grouped(points)
        variance, mean = torch.var_mean(grouped, dim=axes, correction=0, keepdim=True)
        self._factor = (variance + self._eps).rsqrt()
        self._normal = ((grouped - mean) * self._factor).reshape(points.shape)
        y = self._normal
        for value, is_scale in zip(self._values, self._scales, strict=True):
            y = y * self._spread(value, points) if is_scale else y + self._spread(value, points)
        return stacked(y)

    def backward(self, g: Tensor) -> Tensor:
        points = by_point(g)
        if True in self._scales:
            points = points * self._spread(self._values[0], points)
        (grouped, axes), (normal, _) = self._grouped(points), self._grouped(self._normal)
        along = (grouped * normal).mean(axes, keepdim=True)
        back = (grouped - grouped.mean(axes, keepdim=True) - normal * along) * self._factor
        return stacked(back.reshape(points.shape))

    def _of_each(self) -> list[Tensor]:
        """The gradients of each point by each parameter [K, B, numbers]."""
        g = by_point(self._g)
        others = self._others(g)
        products = (g * self._normal if is_scale else g for is_scale in self._scales)
        return [(x.sum(others) if others else x).flatten(2) for x in products]

    def squared_norms(self) -> Tensor:
        import torch

        return torch.cat(self._of_each(), dim=2).square_().sum(2)

    def put_gradients(self, weights: Tensor, *, add: bool) -> None:
        import torch

        for each, gradient in zip(self._of_each(), self._gradients, strict=True):
            total = torch.bmm(weights[:, None], each).view(gradient.shape)
            gradient.copy_(gradient + total if add else total)


class GroupNorm(Normalisation):
    """Points [K, B, C, …] along the channels of a group and all other dimensions."""

    def __init__(self, module: nn.GroupNorm) -> None:
        super().__init__((module.num_channels,), module)
        self._groups = module.num_groups

    def _grouped(self, points: Tensor) -> tuple[Tensor, tuple[int, ...]]:
        grouped = split(points, 2, (self._groups, points.shape[2] // self._groups))
        return grouped, tuple(range(3, grouped.ndim))

    def _others(self, points: Tensor) -> tuple[int, ...]:
        return tuple(range(3, points.ndim))


class LayerNorm(Normalisation):
    """Along the last dimensions of a point."""

    def __init__(self, module: nn.LayerNorm) -> None:
        super().__init__(tuple(module.normalized_shape), module)

    def _grouped(self, points: Tensor) -> tuple[Tensor, tuple[int, ...]]:
        return points, tuple(range(points.ndim - len(self._shape), points.ndim))

    def _others(self, points: Tensor) -> tuple[int, ...]:
        return tuple(range(2, points.ndim - len(self._shape)))
