"""What a canary needs to know of data: features and labels of all points, and how to write new points."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from epsgauge.data.frames import LABELS, columns_of, is_frame, like, numbers_of
from epsgauge.errors import InvalidInput

Kind = Literal["numbers", "tokens", "text"]
# Points that are looked at; the directions and labels that they use are those of all.
MOST = 5000


@dataclass(frozen=True)
class Record:
    """A point that need not be in the data: its features, in their shape, and its label."""

    x: Any
    y: Any


@dataclass(frozen=True, eq=False)
class View:
    """Features [n, …] and labels [n] of some points, and what else a point has, which canaries take as it is."""

    x: NDArray[Any]
    y: NDArray[Any] | None
    write: Callable[[Sequence[Record]], Any]  # points in the format of the data

    @property
    def kind(self) -> Kind:
        """Whole numbers in flat rows are tokens; of more dimensions, they are images."""
        if self.x.dtype.kind in "US":
            return "text"
        return "tokens" if self.x.dtype.kind in "ui" and self.x.ndim == 2 else "numbers"

    @cached_property
    def flat(self) -> NDArray[np.float64]:
        """Features as rows of real numbers."""
        return self.x.reshape(len(self.x), -1).astype(np.float64)

    @cached_property
    def mean(self) -> NDArray[np.float64]:
        return np.asarray(self.flat.mean(axis=0))

    @cached_property
    def size(self) -> float:
        """The median length of a point."""
        return float(np.median(np.linalg.norm(self.flat, axis=1))) or 1.0

    @cached_property
    def labels(self) -> tuple[Any, Any]:
        """The rarest label and the most frequent one; of numbers that are no classes, the smallest and the largest."""
        if self.y is None:
            return None, None
        found, counts = np.unique(self.y, return_counts=True)
        if self.y.dtype.kind == "f" and len(found) > 20:
            return found[0], found[-1]
        order = np.argsort(counts, kind="stable")
        return found[order[0]], found[order[-1]]

    def at(self, flat: NDArray[np.float64], label: Any) -> Record:
        """A record with these features, as the data would hold them: whole numbers stay in their range."""
        x = np.asarray(flat, dtype=np.float64).reshape(self.x.shape[1:])
        if self.x.dtype.kind in "uib":
            x = np.clip(np.round(x), self.x.min(), self.x.max())
        return Record(x.astype(self.x.dtype), label)


def view_of(raw: Any) -> View:
    """Of what a plan's data gives: an array, a tuple of arrays, or a dataset whose points are such."""
    if is_frame(raw) or (isinstance(raw, tuple) and raw and is_frame(raw[0])):
        return _of_frames(raw)
    if isinstance(raw, np.ndarray):
        raw = (raw,)
    if isinstance(raw, tuple) and raw and all(hasattr(column, "__array__") for column in raw):
        columns = {i: np.asarray(column) for i, column in enumerate(raw)}
        return _view(columns, lambda rows: tuple(np.stack([row[i] for row in rows]) for i in columns))
    return _of_dataset(raw)


def _of_frames(raw: Any) -> View:
    """Features are the columns of numbers of the first frame. Labels are the flat part beside it, or one of its columns
    that is called so.
    """
    frame, beside = (raw[0], raw[1:]) if isinstance(raw, tuple) else (raw, ())
    names, x = numbers_of(frame)
    called = next((name for name in names if str(name).lower() in LABELS), None)
    if beside:
        (y,), called = columns_of(beside[-1]), None
    elif called is not None:
        y = np.asarray(frame[called].to_numpy())
    if called is not None:
        x, names = np.delete(x, names.index(called), axis=1), [name for name in names if name != called]
    if not names:
        raise InvalidInput(f"{_NO_CANARIES}, but the DataFrame has no column of numbers. {_REMEDY}")

    def write(records: Sequence[Record]) -> Any:
        columns = dict(zip(names, np.stack([r.x for r in records]).T, strict=True))
        if called is not None:
            columns[called] = np.array([r.y for r in records])
        rows = like(frame, columns)
        if not beside:
            return rows
        others = [_repeated(part, len(records)) for part in beside[:-1]]
        return (rows, *others, _labels_like(beside[-1], [r.y for r in records]))

    return View(x, y if beside or called is not None else None, write)


def _labels_like(part: Any, values: Sequence[Any]) -> Any:
    return type(part)(np.array(values)) if hasattr(part, "to_numpy") else np.array(values)


def _repeated(part: Any, n: int) -> Any:
    first = np.zeros(n, np.int64)
    return part.iloc[first].reset_index(drop=True) if hasattr(part, "iloc") else part[first]


def _of_dataset(dataset: Any) -> View:
    first = dataset[0]
    mapping, alone = isinstance(first, Mapping), not isinstance(first, Mapping | tuple | list)
    keys: list[Any] = list(first) if mapping else [0] if alone else list(range(len(first)))
    step = max(1, len(dataset) // MOST)

    def parts(item: Any) -> list[Any]:
        return [item] if alone else [item[key] for key in keys]

    items = [parts(dataset[i]) for i in range(0, len(dataset), step)]
    try:
        columns = {key: np.stack([np.asarray(item[j]) for item in items]) for j, key in enumerate(keys)}
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{_NO_CANARIES}, but its points differ in shape ({error}). {_REMEDY}") from None

    def write(rows: Sequence[Mapping[Any, Any]]) -> list[Any]:
        kinds = parts(first)
        out: list[Any] = []
        for row in rows:
            values = [_like(kind, row[key]) for key, kind in zip(keys, kinds, strict=True)]
            out.append(dict(zip(keys, values, strict=True)) if mapping else values[0] if alone else tuple(values))
        return out

    return _view(columns, write)


def _view(columns: Mapping[Any, NDArray[Any]], write: Callable[[Sequence[Mapping[Any, Any]]], Any]) -> View:
    """Features are the first column with more than one dimension, or of text; labels the last flat one."""
    if any(column.dtype == object for column in columns.values()):
        raise InvalidInput(f"{_NO_CANARIES}, but it has Python objects. {_REMEDY}")
    of_x, of_y = features_and_label({key: c[0] for key, c in columns.items()})
    others = {key: c.max(axis=0) for key, c in columns.items() if key not in (of_x, of_y) and c.dtype.kind in "uibf"}
    first = {key: c[0] for key, c in columns.items() if key not in (of_x, of_y) and key not in others}

    def written(records: Sequence[Record]) -> Any:
        return write([{**first, **others, of_x: r.x, **({} if of_y is None else {of_y: r.y})} for r in records])

    return View(columns[of_x], None if of_y is None else columns[of_y], written)


def features_and_label(point: Mapping[Any, Any]) -> tuple[Any, Any]:
    """Which parts of a point these are: the first with dimensions, or of text, and the last number beside it."""
    parts = {key: np.asarray(part) for key, part in point.items()}
    wide = [key for key, part in parts.items() if part.ndim > 0 or part.dtype.kind in "US"]
    of_x = wide[0] if wide else next(iter(parts))
    flat = [key for key, part in parts.items() if key != of_x and part.ndim == 0 and part.dtype.kind in "uibf"]
    return of_x, flat[-1] if flat else None


def _like(old: Any, new: Any) -> Any:
    """A value of the type that points of the data have."""
    if type(old).__module__.startswith("torch"):
        import torch

        return torch.as_tensor(np.asarray(new)).to(old.dtype)
    if isinstance(old, np.ndarray | np.generic):
        return np.asarray(new).astype(old.dtype)
    if isinstance(old, bool | int | float | str):
        return type(old)(new)
    raise InvalidInput(f"{_NO_CANARIES}, but a point has a {type(old).__name__}. {_REMEDY}")


_NO_CANARIES = 'canaries = "auto" needs data of arrays, tensors, numbers or text'
_REMEDY = 'Give canaries of your own as "module:attr", or say challenge = "average".'
