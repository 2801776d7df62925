"""Preparation: whether the records that a script trains on were computed with statistics of these very records."""

from __future__ import annotations

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


def preparation(seen: Prepared | None) -> Finding:
    """`seen` is None if the records cannot be read."""
    if seen is None:
        return not_tested(NAME, "The records are too many, or differ from one reading to the next.")
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
    for axes, what in ((None, "all numbers"), (1, "each channel"), (part.ndim - 1, "each channel")):
        if axes is not None and part.ndim < 3:
            continue
        flat = part.reshape(len(part), 1, -1) if axes is None else np.moveaxis(part, axes, 1)
        flat = flat.reshape(len(part), flat.shape[1], -1)
        channels = flat.shape[1]
        off = _off(np.moveaxis(flat, 1, 2).reshape(-1, channels))
        own = flat.mean(axis=2).std(axis=0)  # 0 if records are standardised one by one
        if flat.shape[2] > 1 and (off < (SEVERAL if channels >= MANY else ONE)).all() and (own > VARIES).all():
            if all(len(np.unique(flat[:, i])) > VALUES for i in range(channels)):
                return f"{what[0].upper()}{what[1:]} of the records together {'have' if axes is None else 'has'}"
    return ""


def _off(columns: Floats) -> Floats:
    """How far the mean of each column is from 0, or its standard deviation, of either kind, from 1."""
    n = len(columns)
    deviation = columns.std(axis=0)
    other = deviation * np.sqrt(n / (n - 1))
    return np.maximum(np.abs(columns.mean(axis=0)), np.minimum(np.abs(deviation - 1), np.abs(other - 1)))
