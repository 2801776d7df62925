"""Activations: functions of one number, with torch's own formulas for their gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from epsgauge.trainers.stacked.convolution import Conv2d
from epsgauge.trainers.stacked.images import Pool
from epsgauge.trainers.stacked.layers import Layer
from epsgauge.trainers.stacked.linear import Linear, Matrix

if TYPE_CHECKING:
    from torch import Tensor, nn

Function = Callable[..., Any]
Gradient = Callable[[Any, Any, Any], Any]  # of the outputs' gradient, the inputs and the outputs


class Elementwise(Layer):
    """An activation. One that can write where it is told writes into the layer above or over its inputs."""

    def __init__(self, function: Function, gradient: Gradient, *, writes: bool) -> None:
        self._function, self._gradient, self._writes = function, gradient, writes
        self._above: Linear | None = None
        self._over = False

    def between(self, below: Layer | None, above: Layer | None) -> None:
        """Its neighbours. Those that do not need their own outputs again let them be written over."""
        self._above = above if self._writes and isinstance(above, Linear) else None
        self._over = self._writes and isinstance(below, (Matrix, Conv2d, Pool))

    def forward(self, x: Tensor) -> Tensor:
        self._x = x
        where = self._above.place(x) if self._above else x if self._over else None
        y: Tensor = self._function(x) if where is None else self._function(x, out=where)
        self._y = y
        return y

    def backward(self, g: Tensor) -> Tensor:
        back: Tensor = self._gradient(g, self._x, self._y)
        return back


def elementwise(module: nn.Module) -> Elementwise | None:
    """The activation that this module is, if it is one that is known here."""
    import torch
    from torch import nn
    from torch.nn import functional

    aten = torch.ops.aten
    match module:
        case nn.ReLU():
            # clamp_min is relu with a place for its result
            return Elementwise(
                lambda x, out=None: torch.clamp_min(x, 0, out=out),
                lambda g, x, y: aten.threshold_backward.grad_input(g, y, 0, grad_input=g),
                writes=True,
            )
        case nn.Tanh():
            return Elementwise(
                torch.tanh, lambda g, x, y: aten.tanh_backward.grad_input(g, y, grad_input=g), writes=True
            )
        case nn.Sigmoid():
            return Elementwise(
                torch.sigmoid, lambda g, x, y: aten.sigmoid_backward.grad_input(g, y, grad_input=g), writes=True
            )
        case nn.GELU(approximate=kind):
            return Elementwise(
                lambda x: functional.gelu(x, approximate=kind),
                lambda g, x, y: aten.gelu_backward(g, x, approximate=kind),
                writes=False,
            )
        case nn.SiLU():
            return Elementwise(functional.silu, lambda g, x, y: aten.silu_backward(g, x), writes=False)
        case nn.ELU(alpha=alpha):
            return Elementwise(
                lambda x: functional.elu(x, alpha),
                lambda g, x, y: aten.elu_backward(g, alpha, 1.0, 1.0, False, x),
                writes=False,
            )
        case nn.LeakyReLU(negative_slope=slope):
            return Elementwise(
                lambda x: functional.leaky_relu(x, slope),
                lambda g, x, y: aten.leaky_relu_backward(g, x, slope, False),
                writes=False,
            )
        case nn.Softplus(beta=beta, threshold=threshold):
            return Elementwise(
                lambda x: functional.softplus(x, beta, threshold),
                lambda g, x, y: aten.softplus_backward(g, x, beta, threshold),
                writes=False,
            )
    return None
