"""DP-SGD by Opacus: its per-example gradients, its clipping and its noise."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from epsgauge.errors import InvalidInput, MissingExtra
from epsgauge.trainers.optimisers import made
from epsgauge.trainers.recipe import Recipe
from epsgauge.trainers.watch import Watch

if TYPE_CHECKING:
    import torch
    from torch import nn

# Opacus reads the gradients of a layer's outputs only, so that it does not matter that the first layer's inputs have
# none, which is what torch warns of.
_NO_INPUT_GRADIENT = (
    "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require"
)
# The PRV accountant asks the RDP one for a range in which to look; that its bound is loose does not matter there.
_RDP_ORDER = "Optimal order is the {} alpha. Please consider expanding the range of alphas"
# It counts this much on top of every ε, so that no noise is enough for a target near it.
ACCOUNTANT_ERROR = 0.01


def need_opacus() -> None:
    try:
        import opacus  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "this needs Opacus. Install it with: pip install '.[torch]' in the folder of epsgauge"
        ) from None


def fit(
    model: nn.Module,
    x: torch.Tensor,
    y: torch.Tensor,
    recipe: Recipe,
    *,
    batches: np.random.Generator,
    noise: torch.Generator,
    watch: Watch | None = None,
    read: Callable[[Any], tuple[torch.Tensor, torch.Tensor]] | None = None,
) -> None:
    """Train `model` in place. Every step draws each point with probability `sample_rate`, on its own.

    A step that draws no point is a step all the same: it adds its noise. With `physical_batch` the points of a step are
    clipped and added in pieces. `watch` sees steps with noise; `read` makes tensors of points that it has.
    """
    need_opacus()
    import torch
    from opacus.grad_sample import GradSampleModule
    from opacus.optimizers import DPOptimizer
    from torch.nn.functional import cross_entropy

    check_layers(model)
    try:
        hooks = GradSampleModule(model, loss_reduction="mean")
    except NotImplementedError as error:
        raise InvalidInput(f"the model must be one that Opacus can train, but: {error}.") from error
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not named:
        raise InvalidInput("the model must have parameters to train, but it has none.")
    optimiser = DPOptimizer(
        made(recipe.optimiser, named.values(), learning_rate=recipe.learning_rate, momentum=recipe.momentum),
        noise_multiplier=recipe.noise_multiplier,
        max_grad_norm=recipe.max_grad_norm,
        expected_batch_size=recipe.batch_size,
        loss_reduction="mean",
        generator=noise,
    )
    if watch is not None:
        optimiser.attach_step_hook(watch.of(hooks, read=read))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=_NO_INPUT_GRADIENT, category=UserWarning)
        for _ in range(recipe.steps):
            drawn = torch.from_numpy(np.flatnonzero(batches.random(len(x)) < recipe.sample_rate)).to(x.device)
            pieces = torch.split(drawn, recipe.physical_batch or max(1, len(drawn)))
            for number, piece in enumerate(pieces, 1):
                optimiser.zero_grad(set_to_none=True)  # sums of clipped gradients are kept until the step is made
                if len(piece):
                    cross_entropy(model(x[piece]), y[piece]).backward()  # type: ignore[no-untyped-call]
                    check_reached(named, len(piece))
                else:  # the mean loss of no points is NaN; the sum of their gradients is 0
                    for p in named.values():
                        p.grad_sample = p.new_zeros((0, *p.shape))  # type: ignore[attr-defined]
                optimiser.signal_skip_step(do_skip=number < len(pieces))
                optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    hooks.cleanup()


def check_layers(model: nn.Module) -> None:
    """No layer mixes points of a batch, or is unknown to Opacus.

    Opacus' own check passes over a batch normalisation without weights of its own, which mixes points all the same.
    """
    from opacus.validators import ModuleValidator
    from torch.nn.modules.batchnorm import _BatchNorm

    for name, layer in model.named_modules():
        trained = any(p.requires_grad for p in layer.parameters(recurse=False))
        validate = ModuleValidator.VALIDATORS.get(type(layer))
        if validate is None or not (trained or isinstance(layer, _BatchNorm)):
            continue
        errors = validate(layer)
        if errors:
            reason = str(errors[0]).split(". ")[0].rstrip(".")
            raise InvalidInput(
                f"the model must be one that Opacus can train, but its layer {name or 'itself'} is a "
                f"{type(layer).__name__}: {reason}. Replace the layer (GroupNorm for BatchNorm), or return "
                "opacus.validators.ModuleValidator.fix(model) from the function that builds it."
            )


def check_reached(named: dict[str, nn.Parameter], n_points: int) -> None:
    """Every parameter has a gradient for each point."""
    missed = [name for name, p in named.items() if p.grad_sample is None]  # type: ignore[attr-defined]
    if missed:
        raise InvalidInput(
            f"every parameter to train must take part in the model's output, but {', '.join(missed)} does not. "
            "Remove it, or set requires_grad = False."
        )
    mixed = [name for name, p in named.items() if len(p.grad_sample) != n_points]  # type: ignore[attr-defined]
    if mixed:
        raise InvalidInput(
            f"every layer to train must see the points along the first axis of its input, but that of {mixed[0]} does "
            "not: its gradients cannot be told apart. Give it one row per point, or set requires_grad = False."
        )


@functools.lru_cache(maxsize=64)
def calibrated_noise(*, eps: float, delta: float, sample_rate: float, steps: int) -> float:
    """The noise multiplier for (ε, δ), add/remove adjacency, by Opacus' default accountant (PRV) and tolerance."""
    if eps < 2 * ACCOUNTANT_ERROR:
        raise InvalidInput(
            f"target_eps must be at least {2 * ACCOUNTANT_ERROR:g}, as Opacus' accountant is exact to "
            f"{ACCOUNTANT_ERROR:g}, but got {eps:g}. Set noise_multiplier instead."
        )
    need_opacus()
    from opacus.accountants.utils import get_noise_multiplier

    try:
        with warnings.catch_warnings():
            for order in ("largest", "smallest"):
                warnings.filterwarnings("ignore", message=_RDP_ORDER.format(order), category=UserWarning)
            noise = get_noise_multiplier(
                target_epsilon=eps, target_delta=delta, sample_rate=sample_rate, steps=steps, accountant="prv"
            )
    except (ValueError, RuntimeError, OverflowError) as error:
        raise InvalidInput(
            f"target_eps must be one that Opacus can calibrate noise for, but got {eps:g} at target_delta = {delta:g}: "
            f"{str(error).rstrip('.')}. Set noise_multiplier instead."
        ) from error
    return float(noise)
