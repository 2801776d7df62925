"""The watches of a group: what they add to the sums of gradients, and what they see of all models at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from epsgauge.stats.arrays import Floats
from epsgauge.trainers.adaptive import AdaptiveRecords
from epsgauge.trainers.coordinates import numpy_of
from epsgauge.trainers.recipe import Recipe
from epsgauge.trainers.stacked.axes import split
from epsgauge.trainers.stacked.chain import chain
from epsgauge.trainers.stacked.tables import Parameters, views
from epsgauge.trainers.watch import Watch
from epsgauge.trainers.watches import GradientCanaries, RecordCanaries

if TYPE_CHECKING:
    from torch import Tensor, nn

Records = tuple["Tensor", "Tensor"]
W = TypeVar("W", bound=Watch)


class Watching(Generic[W]):
    """Of any watches, one model at a time; two kinds of them do better below. None is a slot without a model."""

    def __init__(self, watches: Sequence[W | None], recipe: Recipe, parameters: Parameters) -> None:
        self._watches = [(slot, watch) for slot, watch in enumerate(watches) if watch is not None]
        self._norm, self._parameters = recipe.max_grad_norm, parameters

    def start(self) -> None:
        """Before the first step."""

    def step(self, number: int) -> None:
        """When gradients are summed and noised, before the weights move."""
        for slot, watch in self._watches:
            watch(number, [view[slot] for view in self._parameters.gradients], max_grad_norm=self._norm)

    def end(self) -> None:
        """After the last step."""


class OfGradients(Watching[GradientCanaries]):
    """Canaries of all models stand in the same coordinates, which are written and read together."""

    def __init__(self, watches: Sequence[GradientCanaries | None], recipe: Recipe, parameters: Parameters) -> None:
        super().__init__(watches, recipe, parameters)
        shapes = [tuple(view.shape[1:]) for view in parameters.gradients]
        self._places = self._watches[0][1].places(shapes)
        self._added: Floats = 0.0 * self._places.read(parameters.gradients, stacked=True)

    def start(self) -> None:
        values = self._places.read(self._parameters.trained, stacked=True)
        for slot, watch in self._watches:
            watch.started(values[slot])

    def step(self, number: int) -> None:
        for slot, watch in self._watches:
            self._added[slot] = watch.drawn()
        self._places.add(self._parameters.gradients, self._norm * self._added, stacked=True)
        values = self._places.read(self._parameters.gradients, stacked=True) / self._norm
        for slot, watch in self._watches:
            watch.saw(values[slot])

    def end(self) -> None:
        values = self._places.read(self._parameters.trained, stacked=True)
        for slot, watch in self._watches:
            watch.ended(values[slot])


class OfRecords(Watching[RecordCanaries]):
    """Gradients of the records of all models, one record of each at a time, by a second chain without dropout."""

    def __init__(
        self,
        watches: Sequence[RecordCanaries | None],
        recipe: Recipe,
        parameters: Parameters,
        module: nn.Module,
        records: Sequence[Records | None],
        size: int,
    ) -> None:
        import torch

        super().__init__(watches, recipe, parameters)
        some = next(r for r in records if r is not None)
        each = [some if slot >= len(records) else records[slot] or some for slot in range(size)]
        self._chain = chain(module, some[0], dropout=False)
        self._second = parameters.second(self._chain)
        self._views = views(self._chain.trained, self._second)
        self._rows = split(self._chain.prepared(torch.cat([x for x, _ in each])), 0, (size, len(some[0])))
        self._labels = torch.stack([y for _, y in each])
        self._real = torch.ones((size, 1), dtype=torch.bool, device=some[0].device)

    def step(self, number: int) -> None:
        import torch

        products, squares = [], []
        for _ in self._each():
            products.append(self._parameters.products(self._second))
            squares.append(sum((table.square().sum(1) for table in self._second), start=products[0].new_zeros(())))
        found = [numpy_of(torch.stack(numbers, dim=1)) / self._norm**2 for numbers in (products, squares)]
        for slot, watch in self._watches:
            watch.saw(found[0][slot], found[1][slot])

    def _each(self) -> Iterator[int]:
        """Record by record: the clipped gradients of all models are in the second tables."""
        for i in range(self._labels.shape[1]):
            at = slice(i, i + 1)
            g = self._chain.outputs(self._rows[:, at], self._real).softmax(1)
            g.scatter_add_(1, self._labels[:, None, at], g.new_full((), -1.0).expand(len(g), 1, 1))
            self._chain.back(g)
            norms = self._chain.squared_norms().sqrt_()
            weights = norms.add_(1e-6).reciprocal_().mul_(self._norm).clamp_(max=1.0)
            for layer in self._chain.trained:
                layer.put_gradients(weights, add=False)
            yield i


class OfChoices(OfRecords):
    """The same gradients, of which each watch chooses: it adds to its model's update, so that it sees all of it."""

    def step(self, number: int) -> None:
        seen = [
            np.concatenate([numpy_of(view).reshape(len(view), -1) for view in self._views], axis=1)
            for _ in self._each()
        ]
        for slot, watch in self._watches:
            update, given = [view[slot] for view in self._parameters.gradients], [of[slot] for of in seen]
            watch(number, update, max_grad_norm=self._norm, gradients=given)


def watching(
    watches: Sequence[Watch | None],
    recipe: Recipe,
    parameters: Parameters,
    module: nn.Module,
    records: Sequence[Records | None],
    size: int,
) -> Watching[Any]:
    """What suits the watches of a group, which are all of one kind."""
    some = next(watch for watch in watches if watch is not None)
    if isinstance(some, GradientCanaries):
        return OfGradients(_those(watches, GradientCanaries), recipe, parameters)
    if isinstance(some, RecordCanaries):
        kind = OfChoices if isinstance(some, AdaptiveRecords) else OfRecords
        return kind(_those(watches, RecordCanaries), recipe, parameters, module, records, size)
    return Watching(watches, recipe, parameters)


def _those(watches: Sequence[Watch | None], kind: type[W]) -> list[W | None]:
    return [watch if isinstance(watch, kind) else None for watch in watches]
