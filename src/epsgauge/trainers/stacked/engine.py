"""Train K models together, in place: Poisson batches, clipped gradients and noise of each as if it were alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from epsgauge.trainers.protocol import Group
from epsgauge.trainers.recipe import Recipe
from epsgauge.trainers.stacked.chain import Chain, chain
from epsgauge.trainers.stacked.draws import draws
from epsgauge.trainers.stacked.memory import keep_freed_memory
from epsgauge.trainers.stacked.plain import PlainRecipe
from epsgauge.trainers.stacked.tables import Noise, Parameters, Points
from epsgauge.trainers.stacked.watching import Records, watching
from epsgauge.trainers.streams import Streams, torch_seed
from epsgauge.trainers.watch import Watch

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn


def fit_many(
    models: Sequence[nn.Module],
    datas: Sequence[tuple[Tensor, Tensor]],
    recipe: Recipe | PlainRecipe,
    *,
    streams: Sequence[Streams],
    group: Group,
    watches: Sequence[Watch | None] | None = None,
    records: Sequence[Records | None] = (),
) -> None:
    """Train `models`, which have one architecture and their first weights, on a data set each.

    Batches and noise are those that the other engines draw from the same streams. Shapes are those of the group,
    however many models there are, so that a model comes out the same with any neighbours, bit for bit. `watches` see
    steps with noise; `records` are points whose gradients they want, as many for each model.
    """
    import torch

    if not 0 < len(models) <= group.size:
        raise ValueError(f"a group of {group.size} was given {len(models)} models")
    keep_freed_memory()
    with torch.no_grad():
        layers = chain(models[0], datas[0][0])
        points = Points(datas, layers)
        layers.seed([_generator(stream, datas[0][0].device) for stream in streams])
        parameters = Parameters(models, layers, group.size)
        noise = Noise(recipe, parameters, streams) if isinstance(recipe, Recipe) else None
        watch = None
        if watches is not None and isinstance(recipe, Recipe):
            watch = watching(watches, recipe, parameters, models[0], records, group.size)
            watch.start()
        generators = [np.random.default_rng(stream.batches) for stream in streams]
        device = datas[0][0].device
        columns = torch.arange(group.width, device=device)
        number = 0
        for some in draws(recipe, generators, points.places, group):
            for step, drawn in enumerate(torch.from_numpy(some.counts).to(device)):
                for piece, rows in enumerate(torch.from_numpy(some.pieces(step)).to(device)):
                    real = columns < (drawn - piece * group.width)[:, None]
                    _put_gradients(layers, points.take(rows), real, drawn, recipe, add=piece > 0)
                if noise is not None:
                    noise.add()
                if watch is not None:
                    watch.step(number)
                    number += 1
                parameters.step(recipe, drawn)
        if watch is not None:
            watch.end()
        parameters.write()


def _put_gradients(
    layers: Chain,
    points: tuple[Tensor, Tensor],
    real: Tensor,
    drawn: Tensor,
    recipe: Recipe | PlainRecipe,
    *,
    add: bool,
) -> None:
    """The sum of the clipped gradients of the real points of one piece, or their part of the mean gradient."""
    x, y = points
    g = layers.outputs(x, real).softmax(1)
    g.scatter_add_(1, y[:, None], g.new_full((), -1.0).expand(len(g), 1, g.shape[2]))
    layers.back(g)
    if isinstance(recipe, PlainRecipe):
        weights = real / drawn.clamp(min=1)[:, None]
    else:
        norms = layers.squared_norms().sqrt_()
        weights = norms.add_(1e-6).reciprocal_().mul_(recipe.max_grad_norm).clamp_(max=1.0).mul_(real)  # as Opacus
    for layer in layers.trained:
        layer.put_gradients(weights, add=add)


def _generator(streams: Streams, device: torch.device) -> torch.Generator:
    """What layers draw comes from a child of the stream of the initialisation."""
    import torch

    start = streams.initialisation
    child = np.random.SeedSequence(start.entropy, spawn_key=(*start.spawn_key, 0), pool_size=start.pool_size)
    return torch.Generator(device).manual_seed(torch_seed(child))
