"""A point's content: its digest, so that equal points are known wherever they stand, and copies of it."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.errors import InvalidInput

SIZE = 16  # bytes, written as hexadecimal digits: chance makes no two points equal before there are about 2^64


def row_keys(columns: tuple[NDArray[Any], ...]) -> NDArray[np.bytes_]:
    """One digest for each row of arrays of equal length."""
    flat = [np.ascontiguousarray(c).reshape(len(c), -1) for c in columns]
    keys = []
    for rows in zip(*flat, strict=True):
        state = hashlib.blake2b(digest_size=SIZE)
        for row in rows:
            state.update(row.tobytes())
        keys.append(state.hexdigest())
    return np.array(keys, dtype=f"S{2 * SIZE}")


def thing_key(item: Any) -> str:
    """The digest of one item of a dataset: numbers, text, bytes, arrays, tensors, and tuples and dicts of them."""
    state = hashlib.blake2b(digest_size=SIZE)
    _feed(state, item)
    return str(state.hexdigest())


def _feed(state: Any, item: Any) -> None:
    if isinstance(item, Mapping):
        for name in sorted(item):
            _feed(state, str(name))
            _feed(state, item[name])
    elif isinstance(item, (tuple, list)):
        state.update(f"({len(item)}".encode())
        for part in item:
            _feed(state, part)
    elif isinstance(item, (str, bytes)):
        raw = item.encode("utf-8", "surrogatepass") if isinstance(item, str) else item
        state.update(f"t{len(raw)}:".encode() + raw)
    elif hasattr(item, "__array__") or isinstance(item, (int, float, bool, np.generic)):
        array = np.ascontiguousarray(item.detach().cpu().numpy() if hasattr(item, "detach") else item)
        if array.dtype == object:
            raise InvalidInput(f"points of data must be numbers, text or arrays, but got {type(item).__name__}.")
        state.update(f"{array.shape}{array.dtype.kind}".encode() + array.tobytes())
    else:
        raise InvalidInput(f"points of data must be numbers, text or arrays, but got {type(item).__name__}.")


_UNCHANGING = (str, bytes, int, float, complex, bool, type(None), np.generic)


def copied(item: Any) -> Any:
    """An item of a dataset for a trainer to change as it likes, without any other model's seeing it."""
    if isinstance(item, _UNCHANGING):
        return item
    if type(item) in (tuple, list):
        return type(item)(copied(part) for part in item)
    if type(item) is dict:
        return {name: copied(part) for name, part in item.items()}
    if isinstance(item, tuple) and hasattr(item, "_fields"):  # a named tuple
        return type(item)(*(copied(part) for part in item))
    if isinstance(item, np.ndarray):
        return item.copy()
    if hasattr(item, "detach"):  # a tensor; deepcopy would copy all of which it may be a part
        return item.detach().clone().requires_grad_(item.requires_grad)
    return copy.deepcopy(item)
