"""Layers on points of more than one dimension: linear layers at each place, and embeddings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epsgauge.trainers.stacked.axes import by_point, split, stacked
from epsgauge.trainers.stacked.layers import Trained
from epsgauge.trainers.stacked.linear import Matrix, put_product

if TYPE_CHECKING:
    from torch import Tensor, nn


class LinearAtEach(Matrix):
    """A linear layer at each of T places of a point.

    Where it is cheaper, the squared norm is the sum of the products of two Gram matrices, Σ (aₛ·aₜ)(gₛ·gₜ), else that
    of the gradient itself (Li et al. 2022, arXiv:2110.05679; Bu et al. 2022, arXiv:2205.10683, which has the choice).
    """

    def forward(self, x: Tensor) -> Tensor:
        import torch

        points = by_point(x)
        self._places = points.shape[1:-1]
        inputs = points.flatten(2, -2)  # [K, B, T, in]
        if self._bias:
            inputs = torch.cat([inputs, inputs.new_ones((*inputs.shape[:3], 1))], dim=3)
        self._inputs = inputs.contiguous()
        return stacked(split(torch.bmm(self._inputs.flatten(1, 2), self._weight.mT), 1, self._places))

    def backward(self, g: Tensor) -> Tensor:
        import torch

        back = torch.bmm(by_point(g).flatten(1, -2), self._weight[..., : self._in])
        return stacked(split(back, 1, self._places))

    def keep(self, g: Tensor) -> None:
        self._g = by_point(g).flatten(2, -2).contiguous()  # [K, B, T, out]

    def squared_norms(self) -> Tensor:
        import torch

        g, a = self._g.flatten(0, 1), self._inputs.flatten(0, 1)
        if 2 * g.shape[1] ** 2 <= self._in * self._out:
            squares = torch.bmm(a, a.mT).mul_(torch.bmm(g, g.mT))
        else:
            squares = torch.bmm(g.mT, a).square_()
        return squares.sum((1, 2)).view(self._g.shape[:2])

    def put_gradients(self, weights: Tensor, *, add: bool) -> None:
        weighted = (self._g * weights[..., None, None]).flatten(1, 2)
        put_product(weighted.mT, self._inputs.flatten(1, 2), self._gradient, add=add)


class Embedding(Trained):
    """Rows of a table by number. A point's gradient has a sum of g in each row that it uses."""

    def __init__(self, module: nn.Embedding) -> None:
        self._rows, self._width = module.num_embeddings, module.embedding_dim
        self.n_parameters = self._rows * self._width

    def bind(self, parameters: Tensor, gradients: Tensor) -> None:
        self._weight, self._gradient = (t.view(-1, self._width) for t in (parameters, gradients))

    def views(self, table: Tensor) -> list[Tensor]:
        return [split(table, 1, (self._rows, self._width))]

    def forward(self, x: Tensor) -> Tensor:
        import torch

        self._numbers = by_point(x)
        slots = torch.arange(len(x), device=x.device) * self._rows
        self._at = (self._numbers.flatten(1) + slots[:, None]).flatten()
        return stacked(split(self._weight.index_select(0, self._at), 0, self._numbers.shape))

    def keep(self, g: Tensor) -> None:
        self._g = by_point(g).flatten(2, -2).contiguous()  # [K, B, T, width]

    def squared_norms(self) -> Tensor:
        """Σ gₛ·gₜ over the places s, t with the same row."""
        import torch

        numbers, g = self._numbers.flatten(2), self._g.flatten(0, 1)
        same = numbers[..., None] == numbers[..., None, :]
        return torch.bmm(g, g.mT).view(same.shape).mul_(same).sum((2, 3))

    def put_gradients(self, weights: Tensor, *, add: bool) -> None:
        if not add:
            self._gradient.zero_()
        self._gradient.index_add_(0, self._at, (self._g * weights[..., None, None]).flatten(0, 2))
