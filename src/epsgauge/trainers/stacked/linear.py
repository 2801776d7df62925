"""Linear layers. The norms of a point's gradient come without the gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epsgauge.trainers.stacked.axes import split
from epsgauge.trainers.stacked.layers import Trained, room

if TYPE_CHECKING:
    from torch import Tensor, nn


class Matrix(Trained):
    """What linear layers share: the bias is the last column of the weights, and inputs end with a 1."""

    def __init__(self, module: nn.Linear) -> None:
        self._in, self._out = module.in_features, module.out_features
        self._bias = module.bias is not None
        self._columns = self._in + self._bias
        self.n_parameters = self._out * self._columns

    def bind(self, parameters: Tensor, gradients: Tensor) -> None:
        self._weight, self._gradient = (split(t, 1, (self._out, self._columns)) for t in (parameters, gradients))

    def views(self, table: Tensor) -> list[Tensor]:
        matrix = split(table, 1, (self._out, self._columns))
        return [matrix[..., : self._in], matrix[..., self._in]] if self._bias else [matrix]


def put_product(a: Tensor, b: Tensor, out: Tensor, *, add: bool) -> None:
    """The products of matrices, into `out` or added to it."""
    import torch

    if add:
        out.baddbmm_(a, b)
    else:
        torch.bmm(a, b, out=out)


class Linear(Matrix):
    """On flat points. The gradient is g aᵀ, so that its norm is |a| |g| (Goodfellow 2015, arXiv:1510.01799)."""

    def __init__(self, module: nn.Linear) -> None:
        super().__init__(module)
        self._ones: Tensor | None = None
        self._y: Tensor | None = None
        self._back: Tensor | None = None
        self._squared: dict[int, Tensor] = {}

    def prepared(self, x: Tensor) -> Tensor:
        import torch

        ones = x.new_ones((len(x), self._bias))
        return torch.cat([x, ones, x.square().sum(1, keepdim=True) + self._bias], dim=1)

    def first(self, rows: Tensor) -> Tensor:
        self._inputs, self._squares = rows[..., : self._columns].mT, rows[..., self._columns]
        return self._product()

    def place(self, x: Tensor) -> Tensor:
        """Where the layer below may put its result, so that it need not be copied beside the ones."""
        if self._ones is None or self._ones.shape[-1] != x.shape[-1]:
            self._ones = x.new_ones((len(x), self._columns, x.shape[-1]))
            self._inside = self._ones[:, : self._in]
        return self._inside

    def forward(self, x: Tensor) -> Tensor:
        inside = self.place(x)
        if x is not inside:
            inside.copy_(x)
        assert self._ones is not None
        self._inputs, self._squares = self._ones, self._sum_of_squares(self._ones)
        return self._product()

    def _product(self) -> Tensor:
        import torch

        self._y = room(self._y, (len(self._weight), self._out, self._inputs.shape[2]), self._weight)
        return torch.bmm(self._weight, self._inputs, out=self._y)

    def _sum_of_squares(self, x: Tensor) -> Tensor:
        import torch

        rows = x.shape[1]
        self._squared[rows] = room(self._squared.get(rows), x.shape, x)
        return torch.mul(x, x, out=self._squared[rows]).sum(1)

    def backward(self, g: Tensor) -> Tensor:
        import torch

        self._back = room(self._back, (len(g), self._in, g.shape[2]), g)
        return torch.bmm(self._weight[..., : self._in].mT, g, out=self._back)

    def squared_norms(self) -> Tensor:
        return self._sum_of_squares(self._g).mul_(self._squares)

    def put_gradients(self, weights: Tensor, *, add: bool) -> None:
        put_product(self._g.mul_(weights[:, None]), self._inputs.mT, self._gradient, add=add)
