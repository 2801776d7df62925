"""Points by index: arrays of equal length or a map-style dataset, with a user's canaries as appended indices."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from epsgauge.data.content import SIZE, copied, row_keys, thing_key
from epsgauge.data.frames import Frames, frames, is_frame
from epsgauge.errors import InvalidInput
from epsgauge.stats.arrays import Ints

Keys = NDArray[np.bytes_]  # a digest of each point's content


class Points(Protocol):
    """What a game needs of data: how many, some of them for the trainer, and which are equal."""

    def __len__(self) -> int: ...

    def take(self, indices: Ints) -> Any: ...

    def keys(self) -> Keys: ...

    def extended(self, more: Any) -> Points: ...


@dataclass(frozen=True, eq=False)
class Arrays:
    """Row i of each column is point i; a trainer gets a tuple of rows."""

    columns: tuple[NDArray[Any], ...]

    def __len__(self) -> int:
        return len(self.columns[0])

    def take(self, indices: Ints) -> tuple[NDArray[Any], ...]:
        return tuple(column[indices] for column in self.columns)  # copies, as always with an array of indices

    def keys(self) -> Keys:
        return row_keys(self.columns)

    def extended(self, more: Any) -> Arrays:
        """With the rows of `more`, which has the same columns, at the end."""
        rows = _columns(more, "canaries")
        if len(rows) != len(self.columns):
            raise InvalidInput(f"canaries must have the {len(self.columns)} columns of the data, but got {len(rows)}.")
        for i, (old, new) in enumerate(zip(self.columns, rows, strict=True)):
            if old.shape[1:] != new.shape[1:]:
                raise InvalidInput(
                    f"canaries must have the shape of the data's points, {old.shape[1:]} in column {i}, but got "
                    f"{new.shape[1:]}."
                )
        return Arrays(tuple(_joined(old, new) for old, new in zip(self.columns, rows, strict=True)))


@dataclass(frozen=True, eq=False)
class Mapped:
    """Item i of a map-style dataset is point i; a trainer gets a `torch.utils.data.Subset`, or a list without torch."""

    dataset: Any
    extra: tuple[Any, ...] = ()

    def __len__(self) -> int:
        return len(self.dataset) + len(self.extra)

    def __getitem__(self, index: int) -> Any:
        """A copy: what a trainer changes in place is no other model's."""
        return copied(self._item(index))

    def _item(self, index: int) -> Any:
        inside = index < len(self.dataset)
        return self.dataset[index] if inside else self.extra[index - len(self.dataset)]

    def take(self, indices: Ints) -> Any:
        try:
            from torch.utils.data import Subset
        except ImportError:
            return [self[int(i)] for i in indices]
        return Subset(self, [int(i) for i in indices])  # type: ignore[arg-type]

    def keys(self) -> Keys:
        return np.array([thing_key(self._item(i)) for i in range(len(self))], dtype=f"S{2 * SIZE}")

    def extended(self, more: Any) -> Mapped:
        return Mapped(self.dataset, (*self.extra, *more))


def as_points(raw: Any, name: str) -> Points:
    """What a user's data function returned, as points; `name` is that of the function."""
    if isinstance(raw, (Arrays, Mapped, Frames)):
        return raw
    if is_frame(raw) or (isinstance(raw, tuple) and any(is_frame(part) for part in raw)):
        return frames(raw, name)
    if isinstance(raw, np.ndarray):
        return Arrays(_columns((raw,), name))
    if isinstance(raw, tuple) and raw and all(hasattr(column, "__array__") for column in raw):
        return Arrays(_columns(raw, name))
    if hasattr(raw, "__getitem__") and hasattr(raw, "__len__") and not isinstance(raw, (str, bytes, dict)):
        return Mapped(raw)
    raise InvalidInput(
        f"data {name} must give an array, a DataFrame, a tuple of these of equal length or a map-style dataset, but "
        f"gave {type(raw).__name__}."
    )


def digest(keys: Keys) -> str:
    """SHA-256 of the content of all points in their order."""
    return hashlib.sha256(keys.tobytes()).hexdigest()


def first_of_each(keys: Keys) -> Ints:
    """Indices of points whose content has not come before."""
    _, first = np.unique(keys, return_index=True)
    return np.sort(first).astype(np.int64)


def _joined(old: NDArray[Any], new: NDArray[Any]) -> NDArray[Any]:
    """Both in the type of the first, unless that would change what the second says."""
    if old.dtype.kind in "US":  # texts may become longer
        return np.concatenate([old, new])
    cast = new.astype(old.dtype)
    close = np.issubdtype(old.dtype, np.floating) and np.allclose(cast, new, rtol=1e-6, atol=0, equal_nan=True)
    if not close and not np.array_equal(cast, new):
        where = int(np.flatnonzero((cast != new).reshape(len(new), -1).any(axis=1))[0])
        raise InvalidInput(
            f"canaries must fit the type of the data's points, {old.dtype}, but canary {where} does not: it would be "
            "changed. Give the data a wider type."
        )
    return np.concatenate([old, cast])


def _columns(raw: Sequence[Any], name: str) -> tuple[NDArray[Any], ...]:
    if isinstance(raw, np.ndarray):
        raw = (raw,)
    columns = tuple(np.asarray(column) for column in raw)
    if any(c.dtype == object for c in columns):
        raise InvalidInput(f"data {name} must be arrays of numbers or text, but a column holds Python objects.")
    lengths = [len(c) if c.ndim else 0 for c in columns]
    if not columns or len(set(lengths)) != 1 or not lengths[0]:
        raise InvalidInput(f"data {name} must be arrays of one length above 0, but got lengths {lengths}.")
    return columns
