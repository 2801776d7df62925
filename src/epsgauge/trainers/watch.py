"""What a trainer shows the adversary who sees more than losses: `watch(step, update)` at every step."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.stats import checks
from epsgauge.stats.arrays import Floats
from epsgauge.stats.checks import positive
from epsgauge.trainers.opacus_patches import Hook, prepare
from epsgauge.trainers.trees import leaves, like

# Channels that a watch gives, and what the adversary of the plan must see for them.
CHANNELS = {"llr": "updates", "alignment": "updates", "chosen": "updates", "displacement": "model"}


class Watch:
    """Given to a `train` that takes `watch`. It keeps a few numbers of each update, and never the update.

    Opacus: `optimizer.attach_step_hook(watch)`. Any other loop: `update = watch(step, update, max_grad_norm=C)` at
    every step, with the sum of clipped gradients and noise, before the optimiser. Train with what it returns: a
    gradient canary is added there, in place where that can be done. `eg.watching` needs no edit of the loop.
    """

    takes_units = False  # whether max_grad_norm may have a number for each array
    watches_steps = True  # as a hook of Opacus, it is called after the one that was there
    measures = False  # whether it finds the clipping norm itself, and sees parameters that are not trained, too

    def __init__(self) -> None:
        prepare()
        self.begin()

    def begin(self) -> None:
        """Forget what was seen: a training begins."""
        self.n_steps = 0  # that were seen
        self.stated = True  # whether the clipping norm was given at the last step
        self._last: float = -np.inf
        self._live: Sequence[Any] | None = None  # parameters that Opacus trains in place

    def __call__(
        self,
        step: Any,
        update: Any = None,
        *,
        max_grad_norm: float | Sequence[float] | None = None,
        divisor: float = 1.0,
        gradients: Sequence[Any] | None = None,
    ) -> Any:
        """See one update, an array or arrays in lists, tuples and dicts, and return the one to use.

        `max_grad_norm` is the clipping norm, which a probe measures unless it is given. If the noise differs between
        arrays, give a probe one number for each, in the form of the update: the standard deviation of its noise over
        the noise multiplier. `divisor` is what the sum was divided by, where it is a mean. For canaries that are
        records, `gradients` are those of each of `records` at the same parameters, in the form of the update.
        """
        if update is None:
            return self.of(None)(step)  # a hook of Opacus gets the optimizer
        self.stated = max_grad_norm is not None
        if max_grad_norm is None and not self.measures:
            raise InvalidInput(
                "an audit needs max_grad_norm, the norm to which gradients are clipped, but got none. Call watch(step, "
                "update, max_grad_norm=...) or eg.watching(watch, max_grad_norm=...)."
            )
        arrays = leaves(update)
        norm = 1.0 if max_grad_norm is None else self._norm(max_grad_norm, len(arrays))
        positive("divisor", divisor)
        number = checks.one("step", checks.numbers("step", step))
        if number <= self._last:
            raise InvalidInput(
                f"step must be above {self._last:g}, the last one that was shown, but got {number:g}. Call watch once "
                "at every step, when the noise is in the update."
            )
        self._last = number
        given = None if gradients is None else [leaves(gradient) for gradient in gradients]
        return like(update, iter(self._see(arrays, norm, float(divisor), given)))

    def _norm(self, given: Any, n_arrays: int) -> Any:
        """One number, or, for a watch that takes them, a tuple with one for each array."""
        parts = leaves(given.tolist() if hasattr(given, "tolist") else given)
        if len(parts) == 1 and not isinstance(given, Mapping | list | tuple):
            return float(positive("max_grad_norm", parts[0]))
        if not self.takes_units:
            raise InvalidInput(
                f"max_grad_norm must be one number for an adversary who sees updates, but got {len(parts)}. Only a "
                "probe takes one for each array."
            )
        if len(parts) != n_arrays:
            raise InvalidInput(
                f"max_grad_norm must be one number, or one for each of the {n_arrays} arrays of the update, but got "
                f"{len(parts)}."
            )
        return tuple(float(positive("max_grad_norm", part)) for part in parts)

    def of(
        self,
        model: Any,
        *,
        loss: Callable[[Any, Any], Any] | None = None,
        read: Callable[[Any], tuple[Any, Any]] | None = None,
    ) -> Hook:
        """The hook for an optimizer of Opacus that trains `model`, which canaries that are records need.

        `loss(outputs, labels)` is cross-entropy unless given. `read(points)` makes inputs and labels of points of the
        data. Opacus has one place for a hook: that of its accountant, which counts steps there, is called first.
        """
        from epsgauge.trainers.opacus_hook import hook

        return hook(self, model, loss=loss, read=read)

    def start(self, parameters: Any) -> None:
        """The parameters before the first step, for an adversary who sees the last model."""

    def end(self, parameters: Any) -> None:
        """The parameters after the last step."""

    def follow(self, parameters: Sequence[Any]) -> None:
        """Parameters that are trained in place: what they are at the end can be read from them."""
        if self._live is None:
            self.start(parameters)
        self._live = parameters

    def round_off(self, relative: float) -> None:
        """Updates that come next are rounded by this share of their length, as differences of weights are."""

    def state(self) -> dict[str, Any]:
        """What was seen, for another process."""
        if self._live is not None:
            self.end(list(self._live))
        return {name: value for name, value in vars(self).items() if name != "_live"}

    def restore(self, state: dict[str, Any]) -> None:
        """Have seen what a watch with this state has."""
        vars(self).update(state)

    def channels(self) -> dict[str, Floats]:
        """What was seen in a whole training, one number per pair in each channel."""
        if not self.n_steps:
            raise InvalidInput(
                "a trainer that takes watch must call it at every step, but it was never called. Call "
                "watch(step, update, max_grad_norm=...), or train inside eg.watching(watch, max_grad_norm=...)."
            )
        found = self._found()
        self._live = None
        for name, values in found.items():
            if not np.isfinite(values).all():
                raise InvalidInput(
                    f"channel {name} must be finite, but what the watch saw is not. The training may have diverged: "
                    "try a smaller learning rate."
                )
        return found

    def _see(
        self, arrays: list[Any], max_grad_norm: float, divisor: float, gradients: Sequence[Any] | None
    ) -> list[Any]:
        """Keep what is wanted of an update, count it, and say which to use."""
        raise NotImplementedError

    def _found(self) -> dict[str, Floats]:
        raise NotImplementedError
