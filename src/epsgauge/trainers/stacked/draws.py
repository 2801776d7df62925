"""Which points each model takes at each step, as padded tables of row numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from epsgauge.stats.arrays import Ints
from epsgauge.trainers.protocol import Group
from epsgauge.trainers.recipe import Recipe
from epsgauge.trainers.stacked.plain import PlainRecipe

_AT_ONCE = 2**20  # uniforms that are drawn for a model at a time


@dataclass(frozen=True, eq=False)
class Draws:
    """Some steps. A model that drew more points than the width has the rest of them in further pieces."""

    rows: Ints  # [steps, pieces, K, width], of the table of all points; 0 where there is no point
    counts: Ints  # [steps, K]

    def pieces(self, step: int) -> Ints:
        """[pieces, K, width]; at least one piece, so that a step without points is a step too."""
        width = self.rows.shape[-1]
        return self.rows[step, : max(1, -(-int(self.counts[step].max()) // width))]


def draws(
    recipe: Recipe | PlainRecipe, generators: Sequence[np.random.Generator], places: Sequence[Ints], group: Group
) -> Iterator[Draws]:
    """The steps of a group, some at a time; slots without a model draw nothing.

    `places` says for each model in which rows of the table its points are. Row 0 is for padding.
    """
    longest = max(1, *(len(p) for p in places))
    at_once = max(1, _AT_ONCE // longest) if isinstance(recipe, Recipe) else recipe.batches
    for start in range(0, recipe.steps, at_once):
        steps = min(at_once, recipe.steps - start)
        drawn = [
            _poisson(recipe, generator, len(p), steps)
            if isinstance(recipe, Recipe)
            else _shuffled(recipe, generator, len(p))
            for generator, p in zip(generators, places, strict=True)
        ]
        counts = np.zeros((steps, group.size), np.int64)
        for slot, (_, sizes) in enumerate(drawn):
            counts[:, slot] = sizes
        n_pieces = max(1, -(-int(counts.max()) // group.width))
        rows = np.zeros((steps, n_pieces, group.size, group.width), np.int64)
        for slot, (points, sizes) in enumerate(drawn):
            step = np.repeat(np.arange(steps), sizes)
            at = np.arange(len(points)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            rows[step, at // group.width, slot, at % group.width] = places[slot][points]
        yield Draws(rows, counts)


def _poisson(recipe: Recipe, generator: np.random.Generator, n: int, steps: int) -> tuple[Ints, Ints]:
    """Points of all steps, and how many each step has: each point with probability `sample_rate`, on its own.

    The uniforms are those of the Opacus engine, in the same order.
    """
    drawn = np.flatnonzero(generator.random(steps * n) < recipe.sample_rate)
    sizes = np.diff(np.searchsorted(drawn, np.arange(steps + 1) * n))
    return drawn % max(n, 1), sizes


def _shuffled(recipe: PlainRecipe, generator: np.random.Generator, n: int) -> tuple[Ints, Ints]:
    """The same for an epoch of shuffled batches, as np.array_split cuts them."""
    larger = n % recipe.batches
    return generator.permutation(n), n // recipe.batches + (np.arange(recipe.batches) < larger)
