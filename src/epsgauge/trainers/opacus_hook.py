"""The hook by which a watch sees the steps of an optimizer of Opacus, in a user's loop or in ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from epsgauge.errors import InvalidInput
from epsgauge.trainers.opacus_patches import Hook
from epsgauge.trainers.tensors import tensors
from epsgauge.trainers.watch import Watch
from epsgauge.trainers.watches import RecordCanaries

if TYPE_CHECKING:
    from torch import Tensor, nn


def hook(
    watch: Watch,
    model: Any,
    *,
    loss: Callable[[Any, Any], Any] | None,
    read: Callable[[Any], tuple[Any, Any]] | None,
) -> Hook:
    """Opacus calls it when clipped gradients are summed, noised and scaled, before the weights move."""

    def seen(optimizer: Any) -> None:
        if not hasattr(optimizer, "max_grad_norm") or not hasattr(optimizer, "expected_batch_size"):
            raise InvalidInput(
                f"watch(optimizer) needs an optimizer of Opacus, but got {type(optimizer).__name__}. In other loops "
                "call watch(step, update, max_grad_norm=...)."
            )
        params = optimizer.params
        watch.follow(params)
        mean = optimizer.loss_reduction == "mean"
        watch(
            watch.n_steps,
            [p.grad for p in params],
            max_grad_norm=optimizer.max_grad_norm,
            divisor=optimizer.expected_batch_size * optimizer.accumulated_iterations if mean else 1.0,
            gradients=_gradients(watch, model, params, loss, read) if isinstance(watch, RecordCanaries) else None,
        )

    seen.watches_steps = True  # type: ignore[attr-defined]
    return seen


def _gradients(
    watch: RecordCanaries,
    model: Any,
    params: Sequence[nn.Parameter],
    loss: Callable[[Any, Any], Any] | None,
    read: Callable[[Any], tuple[Any, Any]] | None,
) -> list[list[Tensor]]:
    """Of the loss of each record, one backward pass each."""
    import torch
    from opacus.grad_sample import AbstractGradSampleModule
    from torch.nn.functional import cross_entropy

    if model is None:
        raise InvalidInput(
            "canaries that are records need the model, to compute their gradients, but the watch has none. Use "
            "optimizer.attach_step_hook(watch.of(model))."
        )
    if not isinstance(model, AbstractGradSampleModule):
        raise InvalidInput(
            f"watch.of(model) needs the model that make_private returned, but got {type(model).__name__}. Pass "
            "that one: its hooks can be switched off for the gradients of canaries."
        )
    x, y = tensors(watch.records, params[0].device) if read is None else read(watch.records)
    found = []
    with _apart(model), torch.enable_grad():
        for i in range(len(y)):
            value = (loss or cross_entropy)(model(x[i : i + 1]), y[i : i + 1]).sum()
            given = torch.autograd.grad(value, params, allow_unused=True)
            found.append([torch.zeros_like(p) if g is None else g for g, p in zip(given, params, strict=True)])
    return found


@contextmanager
def _apart(model: Any) -> Iterator[None]:
    """Opacus' hooks do not see what is computed inside, and layers draw nothing at random."""
    modes = [(module, module.training) for module in model.modules()]
    switch = hasattr(model, "disable_hooks")
    if switch:
        model.disable_hooks()
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
        if switch:
            model.enable_hooks()
