"""Points as NumPy arrays, from the tuple of arrays or the map-style dataset that a game hands over."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.data.frames import LABELS, is_frame
from epsgauge.errors import InvalidInput

Column = NDArray[Any]


def arrays(data: Any) -> tuple[Column, ...]:
    """One array for each part of a point, all of the same length.

    A dataset's items (x, y) are read one by one and kept in memory: each is read many times in training.
    """
    if is_frame(data):
        data = _split(data)
    if isinstance(data, tuple):
        columns = tuple(np.asarray(part) for part in data)
    elif hasattr(data, "__len__") and hasattr(data, "__getitem__"):
        columns = _stacked(data)
    else:
        raise InvalidInput(
            f"data must be a tuple of arrays or a dataset with len() and indices, but got {type(data).__name__}."
        )
    if not columns or any(c.ndim == 0 for c in columns) or len({len(c) for c in columns}) != 1:
        shapes = ", ".join(str(c.shape) for c in columns)
        raise InvalidInput(f"data must be arrays of equal length, but got the shapes {shapes or 'of none'}.")
    return columns


def _split(frame: Any) -> tuple[Any, Any]:
    """Features and labels of one DataFrame."""
    names = list(frame.columns)
    found = [name for name in names if str(name).lower() in LABELS]
    if len(found) != 1 or len(names) < 2:
        raise InvalidInput(
            f"a DataFrame needs one column called {', '.join(LABELS[:-1])} or {LABELS[-1]}, but has "
            f"{', '.join(map(str, names))}. Or give data as (features, labels)."
        )
    return frame[[name for name in names if name != found[0]]], frame[found[0]]


def labelled(data: Any) -> tuple[Column, Column]:
    """Features and labels."""
    columns = arrays(data)
    if len(columns) != 2 or columns[1].ndim != 1:
        raise InvalidInput(
            "data must be two arrays, x with one row per point and y with one label per point, but got the shapes "
            f"{', '.join(str(c.shape) for c in columns)}."
        )
    return columns[0], columns[1]


def _stacked(dataset: Any) -> tuple[Column, ...]:
    items = [dataset[i] for i in range(len(dataset))]
    if not items:
        raise InvalidInput("data must have at least one point, but the dataset is empty.")
    if not all(isinstance(item, (tuple, list)) for item in items):
        odd = next(item for item in items if not isinstance(item, (tuple, list)))
        raise InvalidInput(f"an item of a dataset must be a tuple such as (x, y), but got {type(odd).__name__}.")
    try:
        return tuple(np.stack([np.asarray(part) for part in column]) for column in zip(*items, strict=True))
    except ValueError:
        raise InvalidInput(
            "items of a dataset must all have the same number of parts, each of the same shape, but these differ. "
            "Give the dataset a transform that makes them equal."
        ) from None
