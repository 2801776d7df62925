"""`eg.watching`: a watch sees the steps of a training loop that is not edited for it."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.trainers.coordinates import numpy_of
from epsgauge.trainers.tensors import need_torch
from epsgauge.trainers.trees import leaves, like
from epsgauge.trainers.watch import Watch

if TYPE_CHECKING:
    from torch import Tensor, nn
    from torch.optim import Optimizer

Steps = Callable[..., Any]


@contextmanager
def watching(
    watch: Watch | None, *, max_grad_norm: float | None = None, divisor: float = 1.0, weights: Any = None
) -> Iterator[Steps]:
    """Show a watch every step of the loop inside.

    Without `weights`, these are the steps of torch optimizers: the watch sees the gradients just before a step, and the
    step is made with what the watch returns. With Opacus, only the private optimizer's steps count, and its clipping
    norm and divisor are used.

    With `weights`, the block gets a function to call at the end of each step. The update is the weights before the step
    minus those after it, so it has the sign of a gradient and the learning rate as a factor.

    Parameters
    ----------
    watch
        The watch that `train` was given. With None, nothing happens.
    max_grad_norm
        The norm to which gradients are clipped. A probe measures it unless it is given; an audit needs it.
    divisor
        What the sum of clipped gradients was divided by. With `weights`, divide it by the learning rate.
    weights
        The weights at the start, as arrays in lists, tuples and dicts: for a loop that changes them itself, or adds
        noise after the optimizer's step.

    Examples
    --------
    A loop that uses an optimizer of torch, with Opacus or without::

        def train(self, data, *, seed, watch=None):
            with eg.watching(watch, max_grad_norm=1.0):
                return my_training(data)

    A loop that changes weights itself. Arrays of torch and NumPy are changed in place::

        with eg.watching(watch, weights=model.parameters()) as steps:
            for batch in batches:
                ...
                steps()

    Arrays that cannot be changed, as those of JAX, are returned: `params = steps(params)`.
    """
    if watch is None:
        yield _unwatched
        return
    if weights is not None:
        moved = _Moved(watch, weights, max_grad_norm, divisor)
        yield moved
        watch.end(moved.before)
        return
    need_torch()
    from torch.optim.optimizer import register_optimizer_step_pre_hook

    seen = _Seen(watch, max_grad_norm, divisor)
    handle = register_optimizer_step_pre_hook(seen)
    _inside.append(seen)
    try:
        yield _without_weights
    finally:
        _inside.remove(seen)
        handle.remove()


_inside: list[_Seen] = []  # nested blocks; the innermost one sees steps


class _Seen:
    """The hook that torch calls before every step of every optimizer."""

    def __init__(self, watch: Watch, max_grad_norm: float | None, divisor: float) -> None:
        self._watch = watch
        self._scale: dict[str, Any] = {"max_grad_norm": max_grad_norm, "divisor": divisor}
        self._private = False  # whether an optimizer of Opacus made a step: others are public
        self._shapes: list[tuple[int, ...]] | None = None
        self._all: list[nn.Parameter] = []
        self._trained: list[nn.Parameter] = []

    def __call__(
        self, optimizer: Optimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        if _inside[-1] is not self or _holds_another(optimizer):
            return None
        private = _private_caller()
        if private is not None:
            self._private = True
            self._see_private(private)
            return None
        if self._private:
            return None
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if closure is None:
            self._see(optimizer)
            return None
        watched = self._after(closure, optimizer)
        if len(args) > 1:
            return (args[0], watched, *args[2:]), kwargs
        return args, {**kwargs, "closure": watched}

    def _after(self, closure: Callable[[], Any], optimizer: Optimizer) -> Callable[[], Any]:
        """The closure that computes a loss and gradients, and then shows these."""
        from torch.optim import LBFGS

        called = False

        def watched() -> Any:
            nonlocal called
            if called or isinstance(optimizer, LBFGS):
                raise InvalidInput(
                    f"eg.watching sees optimizers that compute one gradient in a step, but {type(optimizer).__name__} "
                    "calls its closure several times. DP-SGD has no account of that: use SGD or Adam."
                )
            called = True
            loss = closure()
            self._see(optimizer)
            return loss

        return watched

    def _see(self, optimizer: Optimizer) -> None:
        import torch

        params = [p for group in optimizer.param_groups for p in group["params"]]
        shapes = [tuple(p.shape) for p in params]
        if self._shapes is not None and shapes != self._shapes:
            raise InvalidInput(
                "eg.watching sees one optimizer, but two with other parameters made steps, and it cannot know whether "
                "both belong to one private step. Give watching the weights of all and call steps() at the end of each "
                "step, or call watch(step, update, ...) before the private optimizer's step."
            )
        if self._shapes is None or [id(p) for p in params] != [id(p) for p in self._all]:
            # a parameter that is not trained has no noise either, so that a canary there would be seen by anybody
            self._trained = [p for p in params if self._watch.measures or p.grad is not None]
        self._shapes, self._all = shapes, params
        trained = self._trained
        with torch.no_grad():
            shown = [torch.zeros_like(p) if p.grad is None else p.grad for p in trained]
            self._watch.follow(trained)
            used: list[Tensor] = self._watch(self._watch.n_steps, shown, **self._scale)
            for p, new in zip(trained, used, strict=True):
                if p.grad is not None or (p.requires_grad and bool(new.any())):
                    p.grad = new

    def _see_private(self, optimizer: Any) -> None:
        """An optimizer of Opacus, whose accountant has counted the step. One that adapts has its next norm by now."""
        after = optimizer.max_grad_norm
        optimizer.max_grad_norm = getattr(optimizer, "norm_of_step", after)
        try:
            self._watch(optimizer)
        finally:
            optimizer.max_grad_norm = after


def _holds_another(optimizer: Optimizer) -> bool:
    """Whether it wraps an optimizer, whose step comes later."""
    from torch.optim import Optimizer

    return any(isinstance(part, Optimizer) for part in vars(optimizer).values())


def _private_caller() -> Any:
    """The optimizer of Opacus whose step this one's step is; None without one."""
    frame = sys._getframe(2)
    while frame is not None:
        caller = frame.f_locals.get("self")
        if hasattr(type(caller), "pre_step") and hasattr(caller, "max_grad_norm"):
            return caller
        if isinstance(caller, _Seen):
            return None
        frame = frame.f_back  # type: ignore[assignment]  # the last one has none
    return None


class _Moved:
    """Called at the end of each step: shows how weights moved, and puts them where the watch says."""

    def __init__(self, watch: Watch, weights: Any, max_grad_norm: float | None, divisor: float) -> None:
        is_tree = isinstance(weights, Mapping | list | tuple) or hasattr(weights, "shape")
        self._watch, self._weights = watch, weights if is_tree else list(weights)  # parameters() is an iterator
        self._scale: dict[str, Any] = {"max_grad_norm": max_grad_norm, "divisor": divisor}
        self.before = [_copy(array) for array in self._arrays(self._weights)]
        watch.start(self.before)

    def __call__(self, weights: Any = None) -> Any:
        given = self._weights if weights is None else weights
        arrays = self._arrays(given)
        if [tuple(a.shape) for a in arrays] != [tuple(b.shape) for b in self.before]:
            raise InvalidInput(
                "steps() needs the weights that eg.watching got, but their shapes are others. Pass the same ones."
            )
        update = [b - _copy(a) for a, b in zip(arrays, self.before, strict=True)]
        self._watch.round_off(rounding(self.before, update))
        used = self._watch(self._watch.n_steps, update, **self._scale)
        self.before = [b - u for b, u in zip(self.before, used, strict=True)]
        put = [_put(array, new, given=weights is not None) for array, new in zip(arrays, self.before, strict=True)]
        return like(given, iter(put))

    @staticmethod
    def _arrays(weights: Any) -> list[Any]:
        arrays = leaves(weights)
        if not arrays or not all(hasattr(array, "shape") for array in arrays):
            got = next((type(array).__name__ for array in arrays if not hasattr(array, "shape")), "none")
            raise InvalidInput(f"weights must be arrays of torch, NumPy or JAX, but got {got}. Pass all weights.")
        return arrays


def _copy(array: Any) -> Any:
    if hasattr(array, "detach"):
        return array.detach().clone()
    return array if hasattr(array, "at") else np.array(array)


def _put(array: Any, new: Any, *, given: bool) -> Any:
    """The array with other numbers: the same one where it can be written."""
    if hasattr(array, "detach"):
        array.detach().copy_(new)
        return array
    if isinstance(array, np.ndarray):
        array[...] = new
        return array
    if not given:
        raise InvalidInput("arrays of JAX cannot be changed in place. Call params = steps(params) at each step.")
    return new


def rounding(before: list[Any], update: list[Any]) -> float:
    """How far a difference of weights is from the update, relative to it."""
    moved = math.sqrt(sum(float(np.sum(numpy_of(u) ** 2)) for u in update))
    if not moved:
        return 0.0
    squares = sum(float(np.sum(numpy_of(b) ** 2)) * _half_digit(b) ** 2 for b in before)
    return 2 * math.sqrt(squares) / moved


def _half_digit(array: Any) -> float:
    """Half the distance from 1 to the next number of such a type."""
    bits = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}
    return 2.0 ** -next((n for name, n in bits.items() if name in str(array.dtype)), 53)


def _unwatched(weights: Any = None) -> Any:
    return weights


def _without_weights(weights: Any = None) -> Any:
    raise InvalidInput("steps() needs the weights: eg.watching(watch, weights=model.parameters()) as steps.")
