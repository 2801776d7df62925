"""Checks of arguments at the public edge: one sentence with name, rule and value."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.errors import InvalidInput
from epsgauge.stats.arrays import Bools, Floats, Ints

# The largest count for which the accuracy of the posterior has been checked.
MAX_COUNT = 10**9
# Sharper priors put mass at rates that double precision cannot tell from 0.
MIN_PRIOR = 0.1
# Quantiles further out than this cannot be had to the promised accuracy.
SMALLEST_TAIL = 1e-12
# What a sentence shows of a value that is no number.
MOST_SAID = 200


def floats(name: str, value: ArrayLike) -> Floats:
    """`value` as an array of floats, none of which loses a part: a mask, an imaginary part, a date."""
    if masked(value):
        raise InvalidInput(f"{name} must have a value everywhere, but some are masked. Fill them in.")
    try:
        array = np.asarray(detached(value))
        if array.dtype.kind in "cmM" or (array.dtype.kind == "O" and any(map(np.iscomplexobj, array.flat))):
            raise TypeError
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError, OverflowError, RuntimeError):
        raise InvalidInput(f"{name} must be a number or an array of numbers, but got {_said(value)}.") from None


def detached(value: Any) -> Any:
    """A tensor that gradients flow through, or that NumPy has no type for (bfloat16), as its values; a list of them."""
    if hasattr(value, "detach"):
        tensor = value.detach().cpu()
        return tensor.double() if tensor.is_floating_point() else tensor
    if isinstance(value, (list, tuple)) and value and hasattr(value[0], "detach"):
        return [detached(part) for part in value]
    return value


def masked(value: object) -> bool:
    """Whether NumPy would take numbers that are behind a mask."""
    parts = value if isinstance(value, (list, tuple)) else (value,)
    return any(isinstance(part, np.ndarray) and hasattr(part, "mask") and np.any(part.mask) for part in parts)


def numbers(name: str, value: ArrayLike) -> Floats:
    """`value` as an array of floats without NaN."""
    if (type(value) is float and value == value) or (type(value) is int and abs(value) < MAX_COUNT):  # usual, at once
        return np.array(value, dtype=np.float64)
    array = floats(name, value)
    if np.isnan(array).any():
        raise InvalidInput(f"{name} must not be NaN, but got {_show(value, np.isnan(array))}.")
    return array


def within(name: str, value: ArrayLike, rule: str, good: Bools) -> None:
    """Raise unless `good` holds everywhere; `rule` completes the sentence "<name> must be ..."."""
    if np.count_nonzero(good) < good.size:
        raise InvalidInput(f"{name} must be {rule}, but got {_show(value, ~good)}.")


def counts(name: str, value: ArrayLike) -> Ints:
    if isinstance(value, (int, np.integer)) and 0 <= value <= MAX_COUNT:  # the usual case, at once
        return np.array(value, dtype=np.int64)
    array = numbers(name, value)
    within(name, value, "a whole number, 0 or more", (array >= 0) & (array == np.floor(array)))
    within(name, value, f"at most {MAX_COUNT:.0e}", array <= MAX_COUNT)
    return array.astype(np.int64)


def whole(name: str, value: object, least: int) -> None:
    """One whole number, which says how many or which."""
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise InvalidInput(f"{name} must be a whole number, {least} or more, but got {_said(value)}.")


def delta(value: ArrayLike, name: str = "delta") -> Floats:
    array = numbers(name, value)
    within(name, value, "in [0, 1)", (array >= 0) & (array < 1))
    return array


def eps(value: ArrayLike, name: str = "eps") -> Floats:
    array = numbers(name, value)
    within(name, value, "finite, 0 or more", (array >= 0) & np.isfinite(array))
    return array


def positive(name: str, value: float) -> float:
    """One finite number above 0."""
    if type(value) is float and 0.0 < value < np.inf:  # the usual case, at once
        return value
    array = eps(value, name)
    number = one(name, array)
    within(name, value, "above 0", np.asarray(array > 0))
    return number


def level(value: float, name: str = "level") -> float:
    array = numbers(name, value)
    number = one(name, array)
    within(name, value, "in (0, 1)", (array > 0) & (array < 1))
    within(name, value, f"at least {2 * SMALLEST_TAIL:g} away from 0 and 1", _away(array, 2 * SMALLEST_TAIL))
    return number


def tail(value: ArrayLike, name: str) -> Floats:
    """A probability at which quantiles can be had."""
    array = numbers(name, value)
    within(name, value, "in [0, 1]", (array >= 0) & (array <= 1))
    far = (array == 0) | (array == 1) | _away(array, SMALLEST_TAIL)
    within(name, value, f"0, 1 or at least {SMALLEST_TAIL:g} away from both", far)
    return array


def _away(array: Floats, distance: float) -> Bools:
    return np.minimum(array, 1.0 - array) >= 0.999 * distance


def one(name: str, array: Floats | Ints) -> float:
    """The only number of an array without dimensions."""
    if array.ndim:
        raise InvalidInput(f"{name} must be one number, but got an array of shape {array.shape}.")
    return float(array)


def rate(name: str, value: ArrayLike) -> Floats:
    array = numbers(name, value)
    within(name, value, "in [0, 1]", (array >= 0) & (array <= 1))
    return array


def prior(value: tuple[float, float]) -> tuple[float, float]:
    """The two shapes of a Beta prior."""
    array = numbers("prior", value)
    if array.shape != (2,):
        raise InvalidInput(f"prior must be the two shapes (a, b) of a Beta distribution, but got {value!r}.")
    good = (array >= MIN_PRIOR) & (array <= MAX_COUNT)
    within("prior", value, f"two shapes from {MIN_PRIOR:g} to {MAX_COUNT:.0e}", good)
    return float(array[0]), float(array[1])


def broadcast(**arrays: Floats | Ints) -> tuple[int, ...]:
    """The common shape of named arrays."""
    shapes = {a.shape for a in arrays.values()}
    try:
        return np.broadcast_shapes(*shapes) if len(shapes) > 1 else shapes.pop()
    except ValueError:
        found = ", ".join(f"{name} {a.shape}" for name, a in arrays.items())
        raise InvalidInput(f"shapes must broadcast together, but got {found}.") from None


def _show(value: ArrayLike, bad: Bools) -> str:
    """The value itself, or the first bad entry of an array and where it stands."""
    if bad.ndim == 0:
        return str(value)
    where = tuple(int(i) for i in np.argwhere(bad)[0])
    at = where[0] if len(where) == 1 else where
    return f"{floats('it', value)[where]:g} at index {at}"


def _said(value: object) -> str:
    """The value as a sentence can have it; Python writes no number of more than 4,300 digits."""
    try:
        text = repr(value)
    except ValueError:
        return "a number of more digits than can be written"
    return text if len(text) <= MOST_SAID else f"{text[:MOST_SAID]}…"
