"""Opacus in a script: where its private training begins, and how the steps of that training are seen."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from epsgauge.probing.recorder import Enough, Recorder
from epsgauge.trainers.protocol import seed_everything

if TYPE_CHECKING:
    from epsgauge.scripts.stage import Stage, Training


def install(stage: Stage) -> None:
    """Hold the script at its first call of `make_private`, which `make_private_with_epsilon` calls too."""
    if find_spec("opacus") is None:
        return
    from opacus import PrivacyEngine

    original = PrivacyEngine.make_private

    def make_private(engine: Any, **given: Any) -> Any:
        loader = given["data_loader"]

        def go_on(training: Training) -> Any:
            if training.seed is not None:
                _reseed(training.seed)
            if training.data is not None:
                given["data_loader"] = _with(loader, training.data, training.seed)
            made = original(engine, **given)
            stage.model = made[0]
            _follow_accountant(stage, engine)
            _watch(stage, training, engine, made[1])
            return made

        return stage.hold(loader.dataset, go_on)

    PrivacyEngine.make_private = make_private


def _reseed(seed: int) -> None:
    """Seeds that the script sets later depend on this one: else all trainings would draw the same noise."""
    import random

    import numpy as np
    import torch

    seed_everything(seed)
    for library, name, most in ((torch, "manual_seed", 2**63), (np.random, "seed", 2**32), (random, "seed", 2**63)):
        setattr(library, name, _depending_on(seed, getattr(library, name), most))


def _depending_on(seed: int, function: Callable[..., Any], most: int) -> Callable[..., Any]:
    def seeded(own: Any = None, *more: Any, **named: Any) -> Any:
        return function((int(own) + seed) % most if isinstance(own, int) else seed % most, *more, **named)

    return seeded


def _with(loader: Any, data: Any, seed: int | None) -> Any:
    """The same loader of other records."""
    import torch
    from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler

    generator = loader.generator
    if generator is not None and seed is not None:
        generator = torch.Generator().manual_seed(seed)
    more: dict[str, Any] = {"collate_fn": loader.collate_fn, "generator": generator}
    if hasattr(loader, "sample_rate"):  # of Opacus
        return type(loader)(data, sample_rate=loader.sample_rate, **more)
    if type(loader.batch_sampler) is not BatchSampler:  # the user's own, or none
        if loader.batch_sampler is not None:
            return DataLoader(data, batch_sampler=loader.batch_sampler, **more)
        return DataLoader(data, batch_size=None, sampler=loader.sampler, **more)
    more |= {"batch_size": loader.batch_size, "drop_last": loader.drop_last}
    if isinstance(loader.sampler, RandomSampler | SequentialSampler):
        return DataLoader(data, shuffle=isinstance(loader.sampler, RandomSampler), **more)
    return DataLoader(data, sampler=loader.sampler, **more)


def _watch(stage: Stage, training: Training, engine: Any, optimizer: Any) -> None:
    """Before and after each step of the innermost optimiser, which moves the weights."""
    watch, inner = training.watch, optimizer
    while hasattr(inner, "original_optimizer"):
        inner = inner.original_optimizer
    if training.quiet:
        optimizer.noise_multiplier = 0.0
        engine.accountant.get_epsilon = lambda *_, **__: 0.0
    still: list[Any] = []
    watch.begin()

    def before(*_: Any) -> None:
        params = optimizer.params
        for p in params:
            if p.grad is None:
                p.grad = p.detach().new_zeros(p.shape)
        mean = optimizer.loss_reduction == "mean"
        divisor = optimizer.expected_batch_size * optimizer.accumulated_iterations if mean else 1.0
        if isinstance(watch, Recorder) and watch.stands_still:
            still[:] = [p.detach().clone() for p in params]
        try:
            watch(watch.n_steps, [p.grad for p in params], max_grad_norm=optimizer.max_grad_norm, divisor=divisor)
        except Enough:
            stage.leave(enough=True)

    def after(*_: Any) -> None:
        for p, old in zip(optimizer.params, still, strict=False):
            p.detach().copy_(old)

    inner.register_step_pre_hook(before)
    inner.register_step_post_hook(after)


def _follow_accountant(stage: Stage, engine: Any) -> None:
    """Which ε the script asks its accountant for."""
    stage.accountant = engine.accountant
    original = engine.accountant.get_epsilon

    def get_epsilon(*args: Any, **more: Any) -> float:
        spent = float(original(*args, **more))
        delta = more.get("delta", args[0] if args else None)
        stage.facts.update(spent=spent, delta=None if delta is None else float(delta))
        return spent

    engine.accountant.get_epsilon = get_epsilon
