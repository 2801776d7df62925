"""Outputs of a mechanism, whatever they are: numbers, arrays, lists of any length, texts, None, errors.

An output is flattened into places. Each place has a number, or none, and a key that says bit by bit what stands there.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Awaitable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.errors import InvalidInput
from epsgauge.stats.arrays import Floats, Ints

Keys = NDArray[np.uint64]

MOST_PLACES = 4096
NOTHING = np.uint64(0x9E3779B97F4A7C15)  # the key of a place that an output does not have
WHOLE = 2.0**53  # from here on, floats do not hold every whole number
NUMBERS = (bool, int, float, np.number, np.bool_, Fraction, Decimal)
MAY_BE = (
    "an output must be a number, a text, None, an array, or a list, tuple, set or dict of these, or an object whose "
    "repr shows what it holds"
)
MIX = np.uint64(0x100000001B3)


@dataclass(frozen=True)
class Raised:
    """The mechanism raised an error of this kind instead of returning."""

    kind: str


@dataclass(frozen=True, eq=False)
class Outputs:
    """Sample by place."""

    numbers: Floats  # NaN where there is none
    keys: Keys
    n_raised: int = 0
    order: Ints | None = None  # in which the rows were made, if it is not their own

    @classmethod
    def of(cls, found: Any) -> Outputs:
        """From an array whose first axis is the sample, or a list of one output per sample."""
        array = _numeric(found)
        if array is not None:
            return cls._of_numbers(array)
        try:
            rows = [list(_flat(one)) for one in found]
        except RecursionError:
            raise InvalidInput(
                "an output must hold a fixed number of values, but one holds itself or is nested too deeply. Return "
                "its values as a flat list."
            ) from None
        width = max([1, *map(len, rows)])
        _check(width)
        numbers, keys = np.full((len(rows), width), np.nan), np.full((len(rows), width), NOTHING)
        for at, row in enumerate(rows):
            for place, (number, key) in enumerate(row):
                numbers[at, place], keys[at, place] = number, key
        is_plain = ~np.isnan(numbers) & (keys == NOTHING)
        keys[is_plain] = _bits(numbers)[is_plain]
        return cls(numbers, keys, sum(isinstance(one, Raised) for one in found))

    @classmethod
    def _of_numbers(cls, array: NDArray[Any]) -> Outputs:
        if not array.size:
            return cls(np.full((len(array), 1), np.nan), np.full((len(array), 1), NOTHING))
        flat = array.reshape(len(array), -1)
        _check(flat.shape[1])
        numbers = flat.astype(np.float64)
        keys = _bits(numbers)
        if array.dtype.kind in "iu":
            large = np.abs(numbers) >= WHOLE
            exact = np.array([_number(one)[1] for one in flat[large].tolist()], np.uint64)
            keys[large] = np.where(exact == NOTHING, keys[large], exact)
        return cls(numbers, keys)

    @classmethod
    def joined(cls, parts: Sequence[Outputs]) -> Outputs:
        width = max((part.width for part in parts), default=0)
        wide = [part.with_width(width) for part in parts]
        numbers, keys = (np.concatenate([getattr(part, name) for part in wide]) for name in ("numbers", "keys"))
        return cls(numbers, keys, sum(part.n_raised for part in parts))

    @property
    def width(self) -> int:
        """How many places the longest has."""
        return int(self.numbers.shape[1])

    def with_width(self, width: int) -> Outputs:
        """With so many places: further ones are empty, and what is beyond them is left out."""
        n, more = len(self), width - self.width
        if more <= 0:
            return self if not more else Outputs(self.numbers[:, :width], self.keys[:, :width], self.n_raised)
        numbers = np.concatenate([self.numbers, np.full((n, more), np.nan)], axis=1)
        return Outputs(numbers, np.concatenate([self.keys, np.full((n, more), NOTHING)], axis=1), self.n_raised)

    @cached_property
    def whole(self) -> Keys:
        """The key of each output as a whole; places that it does not have do not matter."""
        out = np.full(len(self), NOTHING)
        for place in range(self.width):
            key = self.keys[:, place]
            mixed = (out ^ (key ^ (key >> np.uint64(29)))) * MIX
            out = np.where(key == NOTHING, out, mixed ^ (mixed >> np.uint64(32)))
        return out

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, rows: Any) -> Outputs:
        return Outputs(self.numbers[rows], self.keys[rows], 0)


def _numeric(found: Any) -> NDArray[Any] | None:
    """As an array of numbers, if that is what all outputs are and none of them loses digits by it."""
    try:
        array = found if isinstance(found, np.ndarray) else np.array(found)
    except Exception:  # of different lengths, or of a library that will not have it
        return None
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        return None
    mixed = array is not found and array.dtype.kind == "f"  # whole numbers may have been among them
    return None if mixed and np.any(np.isfinite(array) & (np.abs(array) >= WHOLE)) else array


def _flat(one: Any) -> Iterator[tuple[float, Any]]:
    """Number and key of each place of one output."""
    if isinstance(one, NUMBERS) and not isinstance(one, np.complexfloating):
        yield _number(one)
    elif isinstance(one, np.ndarray):
        for inner in one.ravel():
            yield from _flat(inner)
    elif isinstance(one, Mapping):
        for name in sorted(one, key=_said):
            yield np.nan, _of_text(f"key {_said(name)}")
            yield from _flat(one[name])
    elif isinstance(one, list | tuple):
        for inner in one:
            yield from _flat(inner)
    elif isinstance(one, Set):
        yield from _flat(sorted(one, key=_said))
    elif hasattr(one, "tolist") and not isinstance(one, np.generic):  # of other array libraries
        yield from _flat(one.tolist())
    else:
        yield np.nan, _of_text(f"{type(one).__name__} {_said(one)}")


def _number(one: Any) -> tuple[float, Any]:
    """Its float, and a key of its own if that is not all of it."""
    exact = one.item() if isinstance(one, np.generic) else one
    try:
        value = float(exact)
    except OverflowError:
        value = np.inf if exact > 0 else -np.inf
    except (TypeError, ValueError):  # of a span of time, or a NaN that signals
        return np.nan, _of_text(f"{type(exact).__name__} {_said(exact)}")
    if value != value:
        return np.nan, _of_text("nan")
    return value, NOTHING if value == exact else _of_text(f"{type(exact).__name__} {_said(exact)}")


def _said(one: Any) -> str:
    """What anybody sees of it; refuses what shows only where it is in memory, or that it was not read."""
    try:
        text = f"{one:x}" if isinstance(one, int) else repr(one)
    except RecursionError:
        raise
    except Exception as error:
        raise InvalidInput(f"{MAY_BE}, but the repr of {type(one).__name__} failed with {error!r}.") from error
    if isinstance(one, str | bytes) or not (isinstance(one, Iterator | Awaitable) or " at 0x" in text):
        return text
    if inspect.iscoroutine(one):
        one.close()
    raise InvalidInput(f"{MAY_BE}, but got an object of type {type(one).__name__}. Return the values that it holds.")


@lru_cache(maxsize=65_536)
def _of_text(text: str) -> np.uint64:
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big"))


def _bits(numbers: Floats) -> Keys:
    """−0 and 0 differ, as anybody can see; all NaN are one."""
    out = np.ascontiguousarray(numbers).view(np.uint64) ^ np.uint64(0x5851F42D4C957F2D)
    return np.where(np.isnan(numbers), _of_text("nan"), out)


def _check(width: int) -> None:
    if width > MOST_PLACES:
        raise InvalidInput(
            f"an output must have at most {MOST_PLACES} numbers, but one has {width}. Let the mechanism return those "
            "that matter, or statistics of them."
        )
