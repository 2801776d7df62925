"""The watch of a probe: it records updates, and puts others in their place, so that nothing else may differ."""

from __future__ import annotations

import gc
import hashlib
import math
import sys
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.errors import InvalidInput
from epsgauge.probing.generators import held, state
from epsgauge.stats.arrays import Floats
from epsgauge.trainers.coordinates import numpy_of
from epsgauge.trainers.trees import paths
from epsgauge.trainers.watch import Watch

Update = NDArray[np.float32]
# The clipping norm, or one for each array.
Norm = float | tuple[float, ...]
# Numbers that are kept of the updates of one training.
MOST = 2**25
# Steps at which the calling functions are searched for random generators.
SEARCHED = 2
# Updates of at most so many numbers have a script that is kept for the next replay.
SMALL = 2**14


class Enough(BaseException):
    """A replay has seen what it needs. No `except Exception` of a training loop stops it."""


class Recorder(Watch):
    """Keeps updates, in clipping norms. The model is moved by a script in their place.

    `walk` is the size of the script's numbers, the same whatever the data are; with 0 the model stands still, so that
    all steps are made at the same parameters. After `stop` steps the training ends. Of the steps `keep`, or of the
    first ones, the whole update is kept, of others a digest. `names` becomes those of the arrays, if it is empty.
    `scale` replaces the stated clipping norm and divisor.
    """

    takes_units = True
    measures = True

    def __init__(
        self,
        *,
        walk: float,
        stop: int | None,
        keep: Sequence[int] | None,
        names: list[str] | None = None,
        scale: float | None = None,
    ) -> None:
        self._walk, self._stop, self._scale = walk, stop, scale
        self._names, self._unnamed = [] if names is None else names, names == []
        self._keep = None if keep is None else frozenset(int(step) for step in keep)
        super().__init__()

    def begin(self) -> None:
        super().begin()
        self.updates: list[Update] = []
        self.kept: list[int] = []  # the steps of these updates
        self.digests: list[bytes] = []
        self.norm_at: list[Norm] = []  # of each step
        self.divisors: set[float] = set()
        self.shapes: list[tuple[int, ...]] = []
        self.states: list[bytes] = []
        self.unit = 2.0**-24

    @property
    def norms(self) -> set[Norm]:
        return set(self.norm_at)

    def __call__(self, step: Any, update: Any = None, **more: Any) -> Any:
        if update is not None and not self._names:
            self._names += paths(update)
        return super().__call__(step, update, **more)

    def _see(
        self,
        arrays: list[Any],
        max_grad_norm: Norm,
        divisor: float,
        gradients: Sequence[Any] | None,
    ) -> list[Any]:
        self._last = -np.inf  # a second training in place of one is counted, too
        if self._scale is not None:
            max_grad_norm, divisor = self._scale, 1.0
        flat = np.concatenate([numpy_of(each).ravel() for each in arrays])
        self.digests.append(hashlib.blake2b(flat.tobytes(), digest_size=16).digest())
        wanted = self._keep is None or self.n_steps in self._keep
        if wanted and (not self.updates or (len(self.updates) + 1) * len(flat) <= MOST):
            self.kept.append(self.n_steps)
            sizes = [math.prod(each.shape) for each in arrays]
            norm = np.repeat(max_grad_norm, sizes) if isinstance(max_grad_norm, tuple) else max_grad_norm
            self.updates.append((flat * (divisor / norm)).astype(np.float32))
        if self.n_steps < SEARCHED:
            self._generators = held()
        self.states.append(state(self._generators))
        self.norm_at.append(max_grad_norm)
        self.unit = max(self.unit, *(_unit(each.dtype) for each in arrays))
        self.divisors.add(divisor)
        shapes = [tuple(each.shape) for each in arrays]
        if self.shapes and shapes != self.shapes:
            raise InvalidInput(
                f"watch must be shown the same arrays at every step, but {self.shapes} became {shapes}. Show all "
                "parameters, with zeros for those that are not trained."
            )
        self.shapes = shapes
        if self._unnamed and not any(self._names) and not self.n_steps:
            self._names[:] = _layers(shapes)
        moved = self._scripted(len(flat))
        self.n_steps += 1
        if self._stop is not None and self.n_steps >= self._stop:
            raise Enough
        return _written(arrays, moved)

    @property
    def stands_still(self) -> bool:
        """Whether the model is to stay what it was."""
        return self._walk == 0

    def restore(self, state: dict[str, Any]) -> None:
        names, seen = self._names, state.pop("_names", [])
        super().restore(state)
        names[:] = seen

    def _scripted(self, size: int) -> Floats:
        if self._walk == 0:
            return np.zeros(size)
        script = _script if size <= SMALL else _script.__wrapped__
        return script(self.n_steps, self._walk, size)

    def round_off(self, relative: float) -> None:
        self.unit = max(self.unit, relative)

    def _found(self) -> dict[str, Floats]:
        return {}


def _layers(shapes: list[tuple[int, ...]]) -> list[str]:
    """Parameters of the largest module of torch that is alive and trains arrays of these shapes in this order."""
    if "torch" not in sys.modules:
        return [""] * len(shapes)
    module = sys.modules["torch"].nn.Module
    for model in sorted((thing for thing in gc.get_objects() if issubclass(type(thing), module)), key=_size)[::-1]:
        found = [(name, tuple(p.shape)) for name, p in model.named_parameters() if p.requires_grad]
        if [shape for _, shape in found] == shapes:
            return [name.removeprefix("_module.") for name, _ in found]
    return [""] * len(shapes)


def _size(model: Any) -> int:
    return sum(1 for _ in model.modules())


@lru_cache(maxsize=256)
def _script(step: int, walk: float, size: int) -> Floats:
    """Where a step moves the model: the same in every replay."""
    return np.random.default_rng(step).normal(0.0, walk, size)


@cache
def _unit(dtype: Any) -> float:
    """Half the distance from 1 to the next number of such a type."""
    name = str(dtype)
    return 2.0**-8 if "bfloat16" in name else 2.0**-11 if "float16" in name else 2.0**-24


def _written(arrays: Sequence[Any], values: Floats) -> list[Any]:
    """The arrays with these numbers: the same ones where they can be written, as those of JAX cannot."""
    out, start = [], 0
    for there in arrays:
        shape = tuple(there.shape)
        size = math.prod(shape)
        new = values[start : start + size].reshape(shape)
        start += size
        if hasattr(there, "at"):  # JAX
            out.append(there.at[...].set(new))
        elif hasattr(there, "new_tensor"):
            there.detach().copy_(there.new_tensor(new))
            out.append(there)
        else:
            there[...] = new
            out.append(there)
    return out
