"""Layers that depend on where the dimensions of a point are, and dropout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epsgauge.trainers.stacked.axes import by_point, split, stacked
from epsgauge.trainers.stacked.layers import Layer

if TYPE_CHECKING:
    import torch
    from torch import Tensor


class Flatten(Layer):
    """All dimensions of a point into one."""

    def forward(self, x: Tensor) -> Tensor:
        points = by_point(x)
        self._point = points.shape[2:]
        return stacked(points.flatten(2))

    def backward(self, g: Tensor) -> Tensor:
        return stacked(split(by_point(g), 2, self._point))


class Softmax(Layer):
    """Along one dimension of a point, the first being 0; its logarithm if `log`."""

    def __init__(self, dimension: int, *, log: bool) -> None:
        self._axis, self._log = dimension + 2, log

    def forward(self, x: Tensor) -> Tensor:
        points = by_point(x)
        self._y = points.log_softmax(self._axis) if self._log else points.softmax(self._axis)
        return stacked(self._y)

    def backward(self, g: Tensor) -> Tensor:
        points = by_point(g)
        if self._log:
            return stacked(points - self._y.exp() * points.sum(self._axis, keepdim=True))
        return stacked(self._y * (points - (points * self._y).sum(self._axis, keepdim=True)))


class Dropout(Layer):
    """Masks of each model from a generator of its own, which moves only where the model has points."""

    def __init__(self, p: float) -> None:
        self._keep = 1.0 - p
        self._generators: list[torch.Generator] = []
        self._has_points: list[bool] = []

    def seed(self, generators: list[torch.Generator]) -> None:
        self._generators = generators

    def expect(self, has_points: list[bool]) -> None:
        """Which slots have points in the next piece."""
        self._has_points = has_points

    def forward(self, x: Tensor) -> Tensor:
        self._mask = x.new_zeros(x.shape)
        if self._keep > 0:
            for mask, generator, has in zip(self._mask, self._generators, self._has_points, strict=False):
                if has:
                    mask.bernoulli_(self._keep, generator=generator).div_(self._keep)
        return x * self._mask

    def backward(self, g: Tensor) -> Tensor:
        return g * self._mask
