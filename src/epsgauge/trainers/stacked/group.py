"""How many models are trained together, and how wide their padded batches are."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from epsgauge.trainers.protocol import Group
from epsgauge.trainers.recipe import Recipe
from epsgauge.trainers.stacked.plain import PlainRecipe

if TYPE_CHECKING:
    from torch import Tensor, nn

_DEVIATIONS = 3.5  # of the size of a Poisson batch that padding leaves room for; more goes into a further piece
# Measured on one core: seconds for a product of two numbers and its gradients, and for a model beside that.
_SECONDS_A_PRODUCT, _SECONDS_A_MODEL = 4e-10, 2e-3
_MOST_FLAT, _MOST_IMAGES = 100, 8  # models whose tensors still fit into caches


def group_for(module: nn.Module, x: Tensor, recipe: Recipe | PlainRecipe) -> Group:
    """A group that takes about a second on one core; the same on every machine. `x` are some points."""
    width = width_for(recipe)
    seconds = _SECONDS_A_PRODUCT * _products(module, x[:1]) * width * recipe.steps + _SECONDS_A_MODEL
    most = _MOST_IMAGES if x.ndim > 2 else _MOST_FLAT
    return Group(size=min(max(1, round(1 / seconds)), most), width=width)


def width_for(recipe: Recipe | PlainRecipe) -> int:
    """Points that a padded batch has room for; a function of the constants alone."""
    if isinstance(recipe, PlainRecipe):
        return recipe.batch_size
    spread = math.sqrt(recipe.batch_size * (1 - recipe.sample_rate))
    return 4 * math.ceil((recipe.batch_size + _DEVIATIONS * spread) / 4)


def _products(module: nn.Module, point: Tensor) -> int:
    """Numbers that the linear layers and convolutions multiply for one point."""
    import torch
    from torch import nn

    found = 0

    def count(layer: nn.Linear | nn.Conv2d, inputs: object, outputs: Tensor) -> None:
        nonlocal found
        found += outputs.numel() * layer.weight[0].numel()

    hooks = [m.register_forward_hook(count) for m in module.modules() if isinstance(m, (nn.Linear, nn.Conv2d))]
    was_training = module.training
    try:
        with torch.no_grad():
            module.eval()(point)
    finally:
        module.train(was_training)
        for hook in hooks:
            hook.remove()
    return found
