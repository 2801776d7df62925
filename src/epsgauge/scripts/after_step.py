"""Loops that add their noise to the weights after the optimiser's step: weights before and after are compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.trainers.coordinates import numpy_of
from epsgauge.trainers.watch import Watch
from epsgauge.trainers.watching import rounding

# Steps of a training by which it is seen, and the share of weights that noise changes at least.
LOOKED, CHANGED = 4, 0.5
# Changes that are nearly along the weights, or along one another, are no noise; those that repeat may be.
STRAIGHT, REPEATED = 0.9, 0.9999


class Moves:
    """Sees whether something like noise is added to the weights between a step and the next one."""

    def __init__(self, tell: Callable[[], None]) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        self._tell, self._after, self._last = tell, np.empty(0), np.empty(0)
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(lambda optimizer, *_: self._keep(optimizer))

    def _keep(self, optimizer: Any) -> None:
        self._after = _flat(_params(optimizer))

    def _before_step(self, optimizer: Any, *_: Any) -> None:
        now = _flat(_params(optimizer))
        if len(now) == len(self._after):
            change = now - self._after
            noise = (change != 0).mean() > CHANGED and _cosine(change, self._after) < STRAIGHT
            if noise and len(self._last) and not STRAIGHT <= _cosine(change, self._last) <= REPEATED:
                self._tell()
            self._last = change if noise else np.empty(0)


class ByWeights:
    """Shows a watch how far each step has moved the weights, over the learning rate, when they are next used."""

    def __init__(self, name: str, watch: Watch, max_grad_norm: float | None, after: Callable[[], None]) -> None:
        from torch.nn.modules.module import register_module_forward_pre_hook
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        self._name, self._watch, self._norm, self._then = name, watch, max_grad_norm, after
        self._params: list[Any] = []
        self._moved = False
        register_optimizer_step_pre_hook(self._before_step)
        register_optimizer_step_post_hook(self._after_step)
        register_module_forward_pre_hook(lambda *_: self.show())

    def _before_step(self, optimizer: Any, *_: Any) -> None:
        params = _params(optimizer)
        if not self._params:
            self._params, self._before = params, _copies(params)
            self._watch.follow(params)
        same = len(params) == len(self._params) and all(p is q for p, q in zip(params, self._params, strict=True))
        if not same or self._moved or any(bool((p != b).any()) for p, b in zip(params, self._before, strict=True)):
            raise InvalidInput(
                f"{self._name} adds noise to its weights after the optimizer's step, but where a step ends is not "
                "clear: weights change again before the next one, or no module of torch is called in between, or two "
                "optimizers step. Write a plan, and train inside eg.watching(watch, weights=...)."
            )
        self._rates = [float(group["lr"]) or 1.0 for group in optimizer.param_groups for _ in group["params"]]

    def _after_step(self, *_: Any) -> None:
        self._moved = True

    def show(self) -> None:
        """The step that was made, if it was not shown."""
        import torch

        if not self._moved:
            return
        self._moved = False
        with torch.no_grad():
            moved = [b - p.detach() for b, p in zip(self._before, self._params, strict=True)]
            self._watch.round_off(rounding(self._before, moved))
            update = [m / rate for m, rate in zip(moved, self._rates, strict=True)]
            used = self._watch(self._watch.n_steps, update, max_grad_norm=self._norm)
            for p, b, u, rate in zip(self._params, self._before, used, self._rates, strict=True):
                p.copy_(b - rate * u)
            self._before = _copies(self._params)
        self._then()


def _params(optimizer: Any) -> list[Any]:
    return [p for group in optimizer.param_groups for p in group["params"]]


def _copies(params: Iterable[Any]) -> list[Any]:
    return [p.detach().clone() for p in params]


def _flat(params: Iterable[Any]) -> Any:
    return np.concatenate([numpy_of(p.detach()).ravel().astype(np.float64) for p in params])


def _cosine(one: Any, other: Any) -> float:
    size = float(np.linalg.norm(one) * np.linalg.norm(other))
    return abs(float(one @ other)) / size if size else 0.0
