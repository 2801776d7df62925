"""Preparation: whether the records that a script trains on were computed with statistics of these very records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.probing.finding import Finding, consistent, not_tested, refuted
from epsgauge.stats.arrays import Floats

NAME = "preparation"
# A column with fewer values may have mean 0 and deviation 1 by design, such as one of -1 and 1.
VALUES = 10
# How near to 0 and 1 the mean and the standard deviation of one column are, or those of so many.
ONE, SEVERAL, MANY = 1e-6, 1e-5, 3
# Means of records vary at least so much, unless each record was standardised by itself.
VARIES = 1e-3
# Records that are read, at most.
MOST = 20_000
# What follows for a reader.
SO = "Each record depends on all others, and the accountant covers the training only."
REMEDY = "Use public numbers, or noisy ones that are accounted for."


@dataclass(frozen=True)
class Prepared:
    """What was seen of the records of a script."""

    n: int
    fitted: str = ""  # a transformer that was fitted to them, and where
    changed: str = ""  # how its output changes with one of them
    columns: str = ""  # which of their numbers have mean 0 and standard deviation 1


class Prepares(ABC):
    """A trainer of ours that knows what was done to its records before the training."""

    @abstractmethod
    def prepared(self) -> Prepared | None:
        """None if the records cannot be read."""


def preparation(seen: Prepared | None) -> Finding:
    """`seen` is None if the records cannot be read."""
    if seen is None:
        text = (
            f"Records must be arrays of one shape, {MOST:,} at most, not augmented. Probe with such a part of the data."
        )
        return not_tested(NAME, text)
    rests = f"All {seen.n:,} records as the training gets them, and the transformers of scikit-learn that were fitted."
    if seen.fitted:
        text = f"{seen.fitted} was fitted to the records that the script trains on: {seen.changed}. {SO} {REMEDY}"
        return refuted("P160", text, rests, where=seen.fitted)
    if seen.columns:
        text = f"{seen.columns} mean 0 and standard deviation 1 over the records of the training, to rounding: they "
        text += f"were standardised by their own statistics. {SO} {REMEDY}"
        return refuted("P160", text, rests, where=seen.columns.removesuffix(" have").removesuffix(" has"))
    return consistent(NAME, "Nothing shows that the records were computed with statistics of themselves.", rests)


def standardised(parts: Sequence[NDArray[Any]]) -> str:
    """Which numbers of records have mean 0 and standard deviation 1; `parts` are columns of all records."""
    for part in parts:
        if part.dtype.kind == "f" and len(part) > VALUES and np.isfinite(part).all():
            rows = part.reshape(len(part), -1).astype(np.float64)
            if found := _columns(rows) or _channels(part.astype(np.float64)):
                return found
    return ""


def _columns(rows: Floats) -> str:
    off = _off(rows)
    several = np.flatnonzero(off < SEVERAL)
    several = several[[len(np.unique(rows[:, i])) > VALUES for i in several]] if len(several) else several
    if len(several) >= MANY or (off[several] < ONE).any():
        named = f"Number {several[0] + 1}" if len(several) == 1 else f"{len(several)} numbers"
        return f"{named} of {rows.shape[1]} in each record {'has' if len(several) == 1 else 'have'}"
    return ""


def _channels(part: Floats) -> str:
    """All numbers together, or each channel of images and series."""
    if part.ndim == 1:
        return ""
    whole = part.reshape(len(part), 1, -1)
    if _together(whole):
        return "All numbers of the records together have"
    channels = (np.moveaxis(part, axis, 1) for axis in (1, part.ndim - 1) if part.ndim > 2)
    found = any(_together(each.reshape(*each.shape[:2], -1)) for each in channels)
    return "Each channel of the records has" if found else ""


def _together(part: Floats) -> bool:
    """Whether each of some channels [records, channels, numbers] is standardised, but not in each record by itself."""
    channels, size = part.shape[1:]
    if size == 1 or (part.mean(axis=2).std(axis=0) <= VARIES).any():
        return False
    rows = np.moveaxis(part, 1, 2).reshape(-1, channels)
    near = SEVERAL if channels >= MANY else ONE
    return bool((_off(rows) < near).all()) and all(len(np.unique(column)) > VALUES for column in rows.T)


def _off(columns: Floats) -> Floats:
    """How far the mean of each column is from 0, or its standard deviation, of either kind, from 1."""
    n = len(columns)
    deviation = columns.std(axis=0)
    other = deviation * np.sqrt(n / (n - 1))
    apart: Floats = np.minimum(np.abs(deviation - 1), np.abs(other - 1))
    off: Floats = np.maximum(np.abs(columns.mean(axis=0)), apart)
    return off
