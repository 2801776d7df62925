"""What a script does to its records before the training: transformers of scikit-learn, and which records they met."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.probing.preparation import MOST, Prepared, standardised
from epsgauge.scripts.frames import Place, calling
from epsgauge.trainers.after_import import AfterImport
from epsgauge.trainers.protocol import seed_everything

# Records that are replaced, at most.
TRIED = 12
# Fitted rows that are the script's records, at least this share of these.
SHARE = 0.5
# Numbers are compared to this many parts of their column's spread.
FINE = 1e4


@dataclass(frozen=True, eq=False)
class Fit:
    """One call of a `fit`."""

    estimator: Any
    rows: Any
    more: tuple[Any, ...]
    named: dict[str, Any]
    place: Place

    @property
    def name(self) -> str:
        return f"{type(self.estimator).__name__} {self.place}"


class Fits(list[Fit]):
    """Those of the script, without those that they call themselves."""

    def __init__(self) -> None:
        super().__init__()
        self._inside = False

    def install(self) -> None:
        """As soon as the script imports scikit-learn."""
        if "sklearn.base" in sys.modules:
            self._follow(sys.modules["sklearn.base"])
        else:
            finder: Any = AfterImport({"sklearn.base": self._follow})
            sys.meta_path.insert(0, finder)

    def _follow(self, base: Any) -> None:
        """Every `fit` is decorated by this function of scikit-learn (1.3 or later)."""
        make = getattr(base, "_fit_context", None)
        if make is None:
            return

        @functools.wraps(make)
        def context(**settings: Any) -> Callable[..., Any]:
            decorate = make(**settings)
            return lambda fit: self._noted(decorate(fit))

        base._fit_context = context

    def _noted(self, fit: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fit)
        def noted(estimator: Any, *args: Any, **named: Any) -> Any:
            place = None if self._inside else calling("fit")
            if place is None:
                return fit(estimator, *args, **named)
            self._inside = True
            try:
                return fit(estimator, *args, **named)
            finally:
                self._inside = False
                rows = args[0] if args else named.get("X")
                self.append(Fit(estimator, rows, args[1:], {k: v for k, v in named.items() if k != "X"}, place))

        return noted


def prepared(data: Any, fits: Sequence[Fit]) -> Prepared | None:
    """Of a data set whose records are read twice; None if there are too many, or they differ."""
    if len(data) > MOST:
        return None
    parts = _parts(data)
    if parts is None:
        return None
    for fit in fits[::-1]:
        try:
            if _gave(fit, parts) and (changed := _depends(fit)):
                return Prepared(len(data), fit.name, changed)
        except Exception:  # of the user's own classes
            continue
    whole = data  # of which the records may be a part
    while hasattr(whole, "indices") and hasattr(whole, "dataset"):
        whole = whole.dataset
    found = standardised(parts)
    if not found and whole is not data and len(whole) <= MOST and (of_all := _parts(whole)) is not None:
        found = standardised(of_all)
    return Prepared(len(data), columns=found)


def _parts(data: Any) -> list[NDArray[Any]] | None:
    """Columns of the numbers in all records; None if these are not the same twice, as augmented ones."""
    try:
        first, again = [_numbers(data[0]) for _ in range(2)]
        if any(not np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in zip(first, again, strict=True)):
            return None
        rows = [_numbers(data[i]) for i in range(len(data))]
        return [np.stack(column) for column in zip(*rows, strict=True)]
    except (TypeError, ValueError):
        return None


def _numbers(record: Any) -> list[NDArray[Any]]:
    parts = list(record.values()) if isinstance(record, dict) else record
    parts = parts if isinstance(parts, list | tuple) else [parts]
    arrays = [np.asarray(part.detach() if hasattr(part, "detach") else part) for part in parts]
    return [array for array in arrays if array.dtype.kind in "fiub"]


def _gave(fit: Fit, parts: list[NDArray[Any]]) -> bool:
    """Whether what it gives for the rows that it was fitted to are the records."""
    if not hasattr(fit.estimator, "transform"):
        return False
    given = _dense(fit.estimator.transform(fit.rows))
    for part in parts:
        records = part.reshape(len(part), -1).astype(np.float64)
        if given.ndim != 2 or given.shape[1] != records.shape[1]:
            continue
        scale = FINE / np.maximum(records.std(axis=0), 1e-12)
        known = {row.tobytes() for row in np.rint(given.astype(np.float32) * scale).astype(np.int64)}
        mine = {row.tobytes() for row in np.rint(records.astype(np.float32) * scale).astype(np.int64)}
        if len(mine) > SHARE * len(records) and len(mine & known) > SHARE * len(mine):
            return True
    return False


def _dense(given: Any) -> NDArray[np.float64]:
    return np.asarray(given.toarray() if hasattr(given, "toarray") else given, dtype=np.float64)


def _depends(fit: Fit) -> str:
    """How what it gives changes if one row is replaced by another one; empty if it does not."""
    from sklearn.base import clone
    from sklearn.utils import _safe_indexing

    n = fit.rows.shape[0] if hasattr(fit.rows, "shape") else len(fit.rows)

    def given(rows: NDArray[np.int64]) -> NDArray[np.float64]:
        seed_everything(0)
        own = clone(fit.estimator)
        more = [_safe_indexing(each, rows) if _is_column(each, n) else each for each in fit.more]
        named = {k: _safe_indexing(v, rows) if _is_column(v, n) else v for k, v in fit.named.items()}
        own.fit(_safe_indexing(fit.rows, rows), *more, **named)
        return _dense(own.transform(fit.rows))

    everything = np.arange(n)
    usual = given(everything)
    if not _alike(usual, given(everything)):
        return ""
    for row in _extremes(fit.rows, n):
        other = everything.copy()
        other[row] = (row + n // 2) % n
        now = given(other)
        if not _alike(usual, now):
            number = n if usual.shape != now.shape else int((~np.isclose(usual, now).all(axis=1)).sum())
            return f"with another record in place of number {row + 1}, {number:,} of {n:,} change"
    return ""


def _is_column(thing: Any, n: int) -> bool:
    return hasattr(thing, "__len__") and not isinstance(thing, str | dict) and len(thing) == n


def _alike(one: NDArray[np.float64], other: NDArray[np.float64]) -> bool:
    return one.shape == other.shape and bool(np.allclose(one, other, equal_nan=True))


def _extremes(rows: Any, n: int) -> list[int]:
    """The first record, and those with the largest numbers."""
    found = [0]
    if isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype.kind in "fiu":
        found += [int(i) for i in (*rows.argmax(axis=0), *rows.argmin(axis=0))]
    return list(dict.fromkeys([*found, n - 1]))[:TRIED]
