"""What Opacus does otherwise in a training that is watched: it chains hooks, and an ε without noise is infinite."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.trainers.after_import import AfterImport

Hook = Callable[[Any], None]
Counted = tuple[float, float, int]  # noise multiplier, sampling rate and number of steps, as Opacus keeps them

_accountants: list[Any] | None = None  # that have counted steps, while somebody wants to know


@functools.cache
def prepare() -> None:
    """For all trainings of this process, once it imports Opacus."""
    hooks: dict[str, Callable[[Any], None]] = {
        "opacus.optimizers.optimizer": _chain_hooks,
        "opacus.optimizers.adaclipoptimizer": _keep_norms,
        "opacus.accountants": _follow,
    }
    AfterImport(hooks).start()


@contextmanager
def counting() -> Iterator[list[Any]]:
    """The accountants that count steps inside."""
    global _accountants
    prepare()
    _accountants = []
    try:
        yield _accountants
    finally:
        _accountants = None


def counted(history: Sequence[Counted]) -> DPSGD:
    """What an accountant has counted: with several noise multipliers the least, with several rates the largest."""
    sigmas, rates, steps = zip(*history, strict=True)
    return DPSGD(sample_rate=float(max(rates)), noise_multiplier=float(min(sigmas)), steps=int(sum(steps)))


class Chained:
    """The hook of a watch, after the one that was there: that of the accountant, which counts steps."""

    def __init__(self, before: Hook, watch: Hook) -> None:
        self.before, self.watch = before, watch

    def __call__(self, optimizer: Any) -> None:
        self.before(optimizer)
        self.watch(optimizer)


def _chain_hooks(module: Any) -> None:
    """An optimizer of Opacus has one place for a hook: a watch that is attached there takes the accountant's along."""
    attach = module.DPOptimizer.attach_step_hook

    @functools.wraps(attach)
    def attach_step_hook(optimizer: Any, fn: Hook) -> None:
        there = optimizer.step_hook
        before = there.before if isinstance(there, Chained) else there
        chains = getattr(fn, "watches_steps", False) and before is not None
        attach(optimizer, Chained(before, fn) if chains else fn)

    module.DPOptimizer.attach_step_hook = attach_step_hook


def _keep_norms(module: Any) -> None:
    """An optimizer that adapts its clipping norm forgets the one of a step before the weights move."""
    update = module.AdaClipDPOptimizer.update_max_grad_norm

    @functools.wraps(update)
    def update_max_grad_norm(optimizer: Any) -> None:
        optimizer.norm_of_step = float(optimizer.max_grad_norm)
        update(optimizer)

    module.AdaClipDPOptimizer.update_max_grad_norm = update_max_grad_norm


def _follow(module: Any) -> None:
    for name in ("RDPAccountant", "PRVAccountant", "GaussianAccountant"):
        _follow_one(getattr(module, name))


def _follow_one(accountant: Any) -> None:
    step, get_epsilon = accountant.step, accountant.get_epsilon

    @functools.wraps(step)
    def stepped(self: Any, *args: Any, **more: Any) -> Any:
        if _accountants is not None and all(self is not other for other in _accountants):
            _accountants.append(self)
        return step(self, *args, **more)

    @functools.wraps(get_epsilon)
    def epsilon(self: Any, *args: Any, **more: Any) -> float:
        """Infinite without noise, as in the models of a control, where Opacus fails."""
        return math.inf if any(not sigma for sigma, *_ in self.history) else get_epsilon(self, *args, **more)

    accountant.step, accountant.get_epsilon = stepped, epsilon
