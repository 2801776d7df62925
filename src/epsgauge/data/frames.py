"""Points as rows of DataFrames (pandas or Polars): a trainer gets rows of the same kind, with the same columns."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.data.content import row_keys
from epsgauge.errors import InvalidInput
from epsgauge.stats.arrays import Ints

LABELS = ("label", "labels", "target", "class", "y")  # names of a column of labels


def is_frame(thing: Any) -> bool:
    """Whether it is a DataFrame; neither library is imported for that."""
    return hasattr(thing, "columns") and hasattr(thing, "to_numpy") and hasattr(thing, "dtypes")


def is_series(thing: Any) -> bool:
    return hasattr(thing, "to_numpy") and hasattr(thing, "dtype") and not is_frame(thing)


@dataclass(frozen=True, eq=False)
class Frames:
    """Row i of each part is point i: a DataFrame, or a tuple with one and Series or arrays beside it."""

    parts: tuple[Any, ...]
    alone: bool  # whether the data are the one DataFrame itself

    def __len__(self) -> int:
        return len(self.parts[0])

    def take(self, indices: Ints) -> Any:
        rows = tuple(_rows(part, indices) for part in self.parts)
        return rows[0] if self.alone else rows

    def keys(self) -> NDArray[np.bytes_]:
        return row_keys(tuple(column for part in self.parts for column in columns_of(part)))

    def extended(self, more: Any) -> Frames:
        """With the rows of `more`, in the same form, at the end."""
        rows = (more,) if self.alone else tuple(more)
        if len(rows) != len(self.parts):
            raise InvalidInput(f"canaries must have the {len(self.parts)} parts of the data, but got {len(rows)}.")
        return Frames(tuple(_joined(old, new) for old, new in zip(self.parts, rows, strict=True)), self.alone)


def frames(raw: Any, name: str) -> Frames:
    """Of a DataFrame, or of a tuple that has one."""
    parts = raw if isinstance(raw, tuple) else (raw,)
    lengths = [len(part) for part in parts]
    if len(set(lengths)) != 1 or not lengths[0]:
        raise InvalidInput(f"data {name} must be of one length above 0, but got lengths {lengths}.")
    return Frames(tuple(parts), not isinstance(raw, tuple))


def columns_of(part: Any) -> list[NDArray[Any]]:
    """As arrays of numbers or text."""
    each = [part[column] for column in part.columns] if is_frame(part) else [part]
    return [_plain(np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)) for column in each]


def numbers_of(frame: Any) -> tuple[list[Any], NDArray[np.float64]]:
    """The names of the columns that are numbers, and these as an array."""
    names = list(frame.columns)
    arrays = dict(zip(names, columns_of(frame), strict=True))
    numeric = [name for name in names if arrays[name].dtype.kind in "uibf"]
    empty = np.empty((len(frame), 0))
    return numeric, np.column_stack([empty, *(arrays[name] for name in numeric)]).astype(np.float64)


def like(part: Any, columns: dict[Any, Sequence[Any]]) -> Any:
    """New rows of the kind of a DataFrame; a column that is not given repeats its first value."""
    n = len(next(iter(columns.values())))
    first = _rows(part, np.zeros(n, np.int64))
    for name, values in columns.items():
        fitting = _fitting(np.asarray(part[name].to_numpy()), np.asarray(values))
        if hasattr(first, "iloc"):
            first[name] = fitting
        else:
            first = first.with_columns(**{name: type(part[name])(name, fitting)})
    return first


def _fitting(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """Whole numbers stay whole, and in their range."""
    if old.dtype.kind in "uib":
        new = np.clip(np.round(new.astype(np.float64)), old.min(), old.max())
    return new.astype(old.dtype)


def _rows(part: Any, indices: Ints) -> Any:
    """A copy: what a trainer changes in place is no other model's."""
    if hasattr(part, "iloc"):
        return part.iloc[indices].reset_index(drop=True).copy()
    return part[indices]


def _joined(old: Any, new: Any) -> Any:
    if isinstance(old, np.ndarray):
        return np.concatenate([old, np.asarray(new).astype(old.dtype)])
    if hasattr(old, "iloc"):
        kinds = old.dtypes.to_dict() if is_frame(old) else old.dtype
        pandas: Any = sys.modules[type(old).__module__.partition(".")[0]]
        return pandas.concat([old, new], ignore_index=True).astype(kinds)
    return old.vstack(new) if is_frame(old) else old.append(new)


def _plain(column: NDArray[Any]) -> NDArray[Any]:
    """Python objects as their text: a column of words, of categories or with missing values."""
    return column.astype(np.str_) if column.dtype.kind not in "uibfUS" else column
