"""The tables of a group: all points, all parameters with their gradients, and the noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from epsgauge.stats.arrays import Ints
from epsgauge.trainers.recipe import Recipe
from epsgauge.trainers.stacked.axes import split
from epsgauge.trainers.stacked.chain import Chain
from epsgauge.trainers.stacked.layers import Trained
from epsgauge.trainers.stacked.plain import PlainRecipe
from epsgauge.trainers.streams import Streams, torch_seed

if TYPE_CHECKING:
    from torch import Tensor, nn


class Points:
    """Rows of all data sets. The first is of zeros, for padding; then those of the first data set.

    Of the others it has those that differ from the row in the same place of the first: training sets of a game are
    nearly equal, and a table that stays in the cache is read faster.
    """

    def __init__(self, datas: Sequence[tuple[Tensor, Tensor]], layers: Chain) -> None:
        import torch

        x0, y0 = max(datas, key=lambda data: len(data[0]))
        xs, ys, n_rows = [x0[:0].new_zeros((1, *x0.shape[1:])), x0], [y0.new_zeros(1), y0], 1 + len(x0)
        self.places: list[Ints] = []
        for x, y in datas:
            n = len(x)
            places = torch.arange(1, n + 1)
            # the largest of bytes is found faster than whether any is true
            new = (x != x0[:n]).flatten(1).view(torch.uint8).amax(1).bool() | (y != y0[:n])
            if bool(new.any()):
                xs.append(x[new])
                ys.append(y[new])
                places[new.cpu()] = torch.arange(n_rows, n_rows + len(xs[-1]))
                n_rows += len(xs[-1])
            self.places.append(places.numpy())
        self._table, self._labels = layers.prepared(torch.cat(xs)), torch.cat(ys)
        self._taken = self._table[:0].clone()

    def take(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Points and labels of these rows [K, B]; valid until the next call."""
        import torch

        flat = rows.flatten()
        if len(self._taken) != len(flat):
            self._taken = self._table.new_empty((len(flat), self._table.shape[1]))
        torch.index_select(self._table, 0, flat, out=self._taken)
        return split(self._taken, 0, rows.shape), self._labels.index_select(0, flat).view(rows.shape)


class Parameters:
    """Parameters, gradients and velocities of all slots: for each layer a table with a row for each slot."""

    def __init__(self, models: Sequence[nn.Module], layers: Chain, size: int) -> None:
        self._models = models
        some = next(models[0].parameters())

        def tables(of: Sequence[Trained]) -> list[Tensor]:
            return [some.new_zeros((size, layer.n_parameters)) for layer in of]

        self._values, self._gradients, self._velocities = (tables(layers.trained) for _ in range(3))
        self._fixed = tables(layers.frozen)
        for layer, values, gradients in zip(layers.trained, self._values, self._gradients, strict=True):
            layer.bind(values, gradients)
        for layer, values in zip(layers.frozen, self._fixed, strict=True):
            layer.bind(values, values)
        self.trained = views(layers.trained, self._values)
        self.gradients = views(layers.trained, self._gradients)
        frozen = views(layers.frozen, self._fixed)
        for slot in range(size):
            model = models[slot] if slot < len(models) else models[0]  # a slot without a model computes as well
            for view, p in zip(self.trained, _parameters(model, trained=True), strict=True):
                view[slot] = p
            for view, p in zip(frozen, _parameters(model, trained=False), strict=True):
                view[slot] = p

    def write(self) -> None:
        """Put the rows back into the modules."""
        for slot, model in enumerate(self._models):
            for view, p in zip(self.trained, _parameters(model, trained=True), strict=True):
                p.copy_(view[slot])

    def second(self, layers: Chain) -> list[Tensor]:
        """Let another chain use these parameters, and give it tables of gradients of its own."""
        tables = [gradients.new_zeros(gradients.shape) for gradients in self._gradients]
        for layer, values, gradients in zip(layers.trained, self._values, tables, strict=True):
            layer.bind(values, gradients)
        for layer, values in zip(layers.frozen, self._fixed, strict=True):
            layer.bind(values, values)
        return tables

    def products(self, tables: Sequence[Tensor]) -> Tensor:
        """[K]: of each model's gradients with those of other tables."""
        both = zip(self._gradients, tables, strict=True)
        return sum((ours.mul(theirs).sum(1) for ours, theirs in both), start=tables[0].new_zeros(()))

    def step(self, recipe: Recipe | PlainRecipe, counts: Tensor) -> None:
        """One step of SGD, with momentum as torch defines it.

        Without privacy the gradients are means already, and a model that drew no point makes no step.
        """
        divisor = recipe.batch_size if isinstance(recipe, Recipe) else 1
        still = isinstance(recipe, PlainRecipe) and not bool(counts.all())
        for values, gradient, velocity in zip(self._values, self._gradients, self._velocities, strict=True):
            if not recipe.momentum:  # the gradient of no points is 0
                values.add_(gradient, alpha=-recipe.learning_rate / divisor)
                continue
            before = velocity.clone() if still else velocity
            velocity.mul_(recipe.momentum).add_(gradient, alpha=1 / divisor)
            if still:
                drew = counts[:, None] > 0
                values.sub_(velocity * drew, alpha=recipe.learning_rate)
                velocity.copy_(velocity.where(drew, before))
            else:
                values.add_(velocity, alpha=-recipe.learning_rate)


class Noise:
    """Gaussian noise on the sums of gradients, for each model from its own stream."""

    def __init__(self, recipe: Recipe, parameters: Parameters, streams: Sequence[Streams]) -> None:
        import torch

        self._deviation = recipe.noise_multiplier * recipe.max_grad_norm
        self._gradients = parameters.gradients
        device = self._gradients[0].device
        self._generators = [torch.Generator(device).manual_seed(torch_seed(stream.noise)) for stream in streams]
        self._drawn = [view.new_zeros(view.shape) for view in self._gradients]
        self._rows = [[drawn[slot] for drawn in self._drawn] for slot in range(len(streams))]

    def add(self) -> None:
        """Draw for one parameter after the other, as Opacus does: both engines give a model the same noise."""
        if not self._deviation:
            return
        for generator, rows in zip(self._generators, self._rows, strict=True):
            for row in rows:
                row.normal_(0.0, self._deviation, generator=generator)
        for gradient, drawn in zip(self._gradients, self._drawn, strict=True):
            gradient.add_(drawn)


def views(layers: Sequence[Trained], tables: Sequence[Tensor]) -> list[Tensor]:
    """The parameters of each layer, in their shapes, with a row for each slot."""
    return [view for layer, table in zip(layers, tables, strict=True) for view in layer.views(table)]


def _parameters(model: nn.Module, *, trained: bool) -> list[nn.Parameter]:
    return [p for p in model.parameters() if p.requires_grad == trained]
