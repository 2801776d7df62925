"""Pooling of images by torch's own kernels, which also decide ties."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from epsgauge.trainers.stacked.axes import split
from epsgauge.trainers.stacked.layers import Layer, room

if TYPE_CHECKING:
    from torch import Tensor, nn


class Pool(Layer):
    """`function` gives the outputs and whatever `gradient` needs beside the inputs and a place for its result."""

    def __init__(
        self, function: Callable[[Any], tuple[Any, Any]], gradient: Callable[[Any, Any, Any, Any], Any]
    ) -> None:
        self._function, self._gradient = function, gradient
        self._back: Tensor | None = None

    def forward(self, x: Tensor) -> Tensor:
        self._x, self._shape = _as_torch(x), x.shape
        y, self._more = self._function(self._x)
        return _as_here(y, len(x))

    def backward(self, g: Tensor) -> Tensor:
        self._back = room(self._back, self._shape, g)
        self._gradient(_as_torch(g), self._x, self._more, _as_torch(self._back))
        return self._back


def _as_torch(x: Tensor) -> Tensor:
    """[K B, C, H, W], with the channels last in memory, as they were."""
    return x.flatten(0, 1).movedim(-1, 1)


def _as_here(x: Tensor, size: int) -> Tensor:
    return split(x.movedim(1, -1), 0, (size, len(x) // size))


def pool(module: nn.Module) -> Pool | None:
    """The pooling that this module is, if it is one that is known here."""
    import torch
    from torch import nn
    from torch.nn import functional

    aten = torch.ops.aten
    match module:
        case nn.MaxPool2d(return_indices=False):
            sizes = (module.kernel_size, module.stride, module.padding, module.dilation)
            shape = (*(_pair(size) for size in sizes), module.ceil_mode)
            return Pool(
                lambda x: aten.max_pool2d_with_indices(x, *shape),
                lambda g, x, at, out: aten.max_pool2d_with_indices_backward.grad_input(
                    g, x, *shape, at, grad_input=out
                ),
            )
        case nn.AvgPool2d():
            how = (
                *(_pair(size) for size in (module.kernel_size, module.stride, module.padding)),
                *(module.ceil_mode, module.count_include_pad, module.divisor_override),
            )
            return Pool(
                lambda x: (aten.avg_pool2d(x, *how), None),
                lambda g, x, _, out: aten.avg_pool2d_backward.grad_input(g, x, *how, grad_input=out),
            )
        case nn.AdaptiveAvgPool2d(output_size=size):
            return Pool(
                lambda x: (functional.adaptive_avg_pool2d(x, size), None),
                lambda g, x, _, out: out.copy_(aten._adaptive_avg_pool2d_backward(g, x)),
            )
    return None


def _pair(value: Any) -> list[int]:
    return [value, value] if isinstance(value, int) else list(value)
