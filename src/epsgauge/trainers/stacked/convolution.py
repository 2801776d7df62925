"""Two-dimensional convolution as a product with patches, and per-example gradients as a product for each point."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from epsgauge.trainers.stacked.axes import split
from epsgauge.trainers.stacked.layers import Trained, room
from epsgauge.trainers.stacked.linear import put_product

if TYPE_CHECKING:
    from torch import Tensor, nn

# Numbers in the patches of a data set up to which they are made once, and not at every step.
_LARGEST_TABLE = 2**26


class Conv2d(Trained):
    """On images [K, B, H, W, C]. The bias is the last column of the weights, and patches end with a 1.

    The norm is taken of each point's gradient itself: for the few weights and many places of a convolution that costs
    less than the two Gram matrices of a norm without the gradient.
    """

    def __init__(self, module: nn.Conv2d, padding: tuple[int, int]) -> None:
        self._kernel = (module.kernel_size[0], module.kernel_size[1])
        self._stride = (module.stride[0], module.stride[1])
        self._dilation = (module.dilation[0], module.dilation[1])
        self._padding = padding
        self._channels, self._out = module.in_channels, module.out_channels
        self._taps = self._channels * math.prod(self._kernel)
        self._bias = module.bias is not None
        self._columns = self._taps + self._bias
        self.n_parameters = self._out * self._columns
        self._patches: Tensor | None = None  # [K, B, places, columns]
        self._room: Tensor | None = None
        self._across: Tensor | None = None
        self._y: Tensor | None = None
        self._each: Tensor | None = None  # gradients of the points [K, B, n_parameters]

    def bind(self, parameters: Tensor, gradients: Tensor) -> None:
        self._weight, self._gradient = (split(t, 1, (self._out, self._columns)) for t in (parameters, gradients))
        self._row = gradients[:, None]

    def views(self, table: Tensor) -> list[Tensor]:
        matrix = split(table, 1, (self._out, self._columns))
        kernels = split(matrix[..., : self._taps], 2, (*self._kernel, self._channels)).movedim(-1, 2)
        return [kernels, matrix[..., self._taps]] if self._bias else [kernels]

    def _put_patches(self, x: Tensor, kept: Tensor | None) -> Tensor:
        """Patches [N, places, columns] of images [N, H, W, C], into `kept` if it has that shape."""
        from torch.nn.functional import pad

        (down, right), (dy, dx), (sy, sx), (kh, kw) = self._padding, self._dilation, self._stride, self._kernel
        self._size = x.shape[1:3]
        x = pad(x, (0, 0, right, right, down, down)) if down or right else x
        n, height, width, channels = x.shape
        self._image = oh, ow = (height - dy * (kh - 1) - 1) // sy + 1, (width - dx * (kw - 1) - 1) // sx + 1
        by_n, along, across, by_channel = x.stride()
        windows = x.as_strided(
            (n, oh, ow, kh, kw, channels), (by_n, sy * along, sx * across, dy * along, dx * across, by_channel)
        )
        if kept is None or len(kept) != n:
            kept = x.new_ones((n, oh * ow, self._columns))
        split(split(kept[..., : self._taps], 2, (kh, kw, channels)), 1, (oh, ow)).copy_(windows)
        return kept

    def prepared(self, x: Tensor) -> Tensor:
        """The patches of each image, unless they are too many."""
        import torch
        from torch import nn

        with torch.device("meta"):
            places = nn.functional.unfold(
                torch.empty(1, *x.shape[1:]), self._kernel, self._dilation, self._padding, self._stride
            ).shape[-1]
        self._once = len(x) * self._columns * places <= _LARGEST_TABLE
        return self._put_patches(x.movedim(1, -1).contiguous(), None).flatten(1) if self._once else super().prepared(x)

    def first(self, rows: Tensor) -> Tensor:
        if not self._once:
            return super().first(rows)
        return self._product(split(rows, 2, (rows.shape[2] // self._columns, self._columns)))

    def forward(self, x: Tensor) -> Tensor:
        kept = None if self._patches is None else self._patches.flatten(0, 1)
        return self._product(split(self._put_patches(x.flatten(0, 1), kept), 0, x.shape[:2]))

    def _product(self, patches: Tensor) -> Tensor:
        import torch

        self._patches = patches
        # narrow products are faster with the many places along the rows of the result
        rows = patches.flatten(1, 2)
        self._across = room(self._across, (len(rows), self._out, rows.shape[1]), rows)
        self._y = room(self._y, (len(rows), rows.shape[1], self._out), rows)
        self._y.copy_(torch.bmm(self._weight, rows.mT, out=self._across).mT)
        return split(self._y, 1, (patches.shape[1], *self._image))

    def backward(self, g: Tensor) -> Tensor:
        """By torch's own kernel, model by model."""
        import torch
        from torch.nn.grad import conv2d_input

        kernels = split(self._weight[..., : self._taps], 2, (*self._kernel, self._channels)).movedim(-1, 2).contiguous()
        g = g.movedim(-1, 2).contiguous()
        shape = (g.shape[1], self._channels, *self._size)
        back = [
            conv2d_input(shape, kernel, each, self._stride, self._padding, self._dilation)  # type: ignore[no-untyped-call]
            for kernel, each in zip(kernels, g, strict=True)
        ]
        return torch.stack(back).movedim(2, -1).contiguous()

    def keep(self, g: Tensor) -> None:
        self._g, self._each = g.flatten(2, 3), None  # [K, B, places, out]

    def squared_norms(self) -> Tensor:
        import torch

        assert self._patches is not None
        self._room = room(self._room, (*self._g.shape[:2], self._out, self._columns), self._g)
        torch.bmm(self._g.flatten(0, 1).mT, self._patches.flatten(0, 1), out=self._room.flatten(0, 1))
        self._each = self._room.flatten(2)
        norms: Tensor = torch.linalg.vector_norm(self._each, dim=2)
        return norms.square_()

    def put_gradients(self, weights: Tensor, *, add: bool) -> None:
        if self._each is not None:
            put_product(weights[:, None], self._each, self._row, add=add)
            return
        assert self._patches is not None
        weighted = (self._g * weights[..., None, None]).flatten(1, 2)
        put_product(weighted.mT, self._patches.flatten(1, 2), self._gradient, add=add)
