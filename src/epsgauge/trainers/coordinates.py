"""Single coordinates of parameters or gradients that come as several arrays: read them, and add to them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.stats.arrays import Floats, Ints


class Coordinates:
    """Places in the vector that arrays of these shapes make, one after the other. NumPy, JAX and torch arrays."""

    def __init__(self, shapes: Sequence[tuple[int, ...]], flat: Ints) -> None:
        ends = np.cumsum([math.prod(shape) for shape in shapes])
        if len(flat) and flat.max() >= ends[-1]:
            raise InvalidInput(
                f"every model of a run must have the same parameters, and a canary is at number {flat.max()}, but an "
                f"update has {ends[-1]} numbers. Show the watch the whole update, and build one architecture."
            )
        of, self._n = np.searchsorted(ends, flat, side="right"), len(flat)
        starts = np.concatenate([[0], ends[:-1]])
        self._parts = [
            (i, np.flatnonzero(of == i), np.unravel_index(flat[of == i] - starts[i], shapes[i]) if shapes[i] else ())
            for i in np.unique(of).tolist()
        ]

    def read(self, arrays: Sequence[Any], *, stacked: bool = False) -> Floats:
        """The numbers there, [m]; of stacked arrays, which have a row for each of K models, [K, m]."""
        out = np.empty((len(arrays[0]), self._n) if stacked else self._n)
        for i, which, place in self._parts:
            index = (slice(None), *place) if stacked else place
            out[..., which] = numpy_of(arrays[i][index]).reshape(*out.shape[:-1], len(which))
        return out

    def add(self, arrays: Sequence[Any], values: Floats, *, stacked: bool = False) -> list[Any]:
        """The arrays with `values` added there: the same ones where they can be written, as those of JAX cannot."""
        out = list(arrays)
        for i, which, place in self._parts:
            index, array, more = (slice(None), *place) if stacked else place, arrays[i], values[..., which]
            if hasattr(array, "at"):  # JAX
                out[i] = array.at[index].add(more.reshape(np.shape(array[index])))
            elif hasattr(array, "new_tensor"):
                array[index] += array.new_tensor(more).reshape(array[index].shape)
            else:
                array[index] += more.reshape(np.shape(array[index]))
        return out


def flat(arrays: Sequence[Any]) -> Floats:
    """The vector that arrays make, one after the other."""
    return np.concatenate([numpy_of(array).ravel() for array in arrays])


def added(arrays: Sequence[Any], vector: Floats) -> list[Any]:
    """The arrays with such a vector added: the same ones where they can be written, as those of JAX cannot."""
    out, ends = list(arrays), np.cumsum([math.prod(array.shape) for array in arrays])
    for i, (array, part) in enumerate(zip(arrays, np.split(vector, ends[:-1]), strict=True)):
        if hasattr(array, "at"):  # JAX
            out[i] = array + part.reshape(array.shape)
        elif hasattr(array, "new_tensor"):
            array += array.new_tensor(part).reshape(array.shape)
        else:
            array += part.reshape(array.shape)
    return out


def numpy_of(array: Any) -> Floats:
    """As float64, wherever it lives."""
    if hasattr(array, "detach"):
        array = array.detach().cpu().double().numpy()
    out: Floats = np.asarray(array, dtype=np.float64)
    return out
