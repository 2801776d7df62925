"""Records that a probe puts into a training set: ordinary ones, crafted ones, and ones that no data should have."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsgauge.data.canaries.table import AUTO, canaries_of
from epsgauge.data.canaries.view import Record, View, view_of
from epsgauge.data.points import Points
from epsgauge.errors import InvalidInput
from epsgauge.stats.arrays import Ints

# Points of which it is seen in which steps they take part.
TARGETS = 6
# Columns that are searched for groups, and how many values such a column has at most.
COLUMNS, GROUPS = 200, 10
# How many times larger than others a huge record is.
HUGE = 1e4
# Records whose length is looked at.
SIZED = 5000
# One record in many lengths: two of them differ by a factor of 1.43.
LENGTHS = np.geomspace(1e-3, 1e3, 40)


@dataclass(frozen=True)
class Ladder:
    """One record in many lengths, from short to long, and a huge one in the opposite direction."""

    rungs: range
    opposite: int


@dataclass(frozen=True, eq=False)
class Records:
    """The points with crafted ones at their end, and the indices of those."""

    points: Points
    crafted: dict[str, int]
    spoilt: int | None  # a record with NaN
    targets: Ints  # of points of the data
    instead: Ints  # what is put in the place of each target: see `_instead`
    ladders: tuple[Ladder, ...] = ()
    lengths: tuple[int, int] | None = None  # of records of unequal length the shortest and the longest

    def named(self, index: int) -> str:
        return next((name for name, at in self.crafted.items() if at == index), str(index))


def records(raw: Any, points: Points, rng: np.random.Generator, most: int) -> Records:
    """Those that can be made of such data, with `most` targets; where none can, points of the data stand for them."""
    n = len(points)
    try:
        view = view_of(raw)
        names, zeros, ones = canaries_of(AUTO, raw)
    except (InvalidInput, np.linalg.LinAlgError):  # data that have no canaries, or NaN
        some = rng.permutation(n)[: min(2 * TARGETS, most)]
        half = len(some) // 2
        crafted = {f"point {i}": int(i) for i in some}
        return Records(points, crafted, None, some[:half], some[half : 2 * half], lengths=_lengths(raw, n))
    crafted = {}
    for kind, given in (("z1", ones), ("z0", zeros)):
        crafted |= {f"{name} ({kind})": len(points) + i for i, name in enumerate(names)}
        points = points.extended(given)
    spoilt, ladders = None, []
    if view.x.dtype.kind == "f":
        for what, label in (("huge", _label(view, 0)), ("huge, other label", _other_label(view, 0))):
            crafted[what] = len(points)
            points = points.extended(view.write([_times(view, 0, by, label) for by in (HUGE, *LENGTHS, -HUGE)]))
            ladders.append(Ladder(range(crafted[what] + 1, len(points) - 1), len(points) - 1))
        spoilt = len(points)
        points = points.extended(view.write([Record(np.full_like(view.x[0], np.nan), _label(view, 0))]))
    rows = _targets(view, rng)[:most]
    start = len(points)
    points = points.extended(view.write([_instead(view, rows, i) for i in range(len(rows))]))
    step = max(1, n // len(view.x))  # a view of very many points has some of them
    return Records(points, crafted, spoilt, rows * step, start + np.arange(len(rows)), tuple(ladders))


def _lengths(raw: Any, n: int) -> tuple[int, int] | None:
    """The shortest record and the longest, by how much is in their parts; None if all are as long."""
    where = np.unique(np.linspace(0, n - 1, min(n, SIZED)).astype(np.int64)).tolist()
    try:
        found = [_length(raw[i]) for i in where]
    except Exception:  # of the user's own class
        return None
    ends = int(np.argmin(found)), int(np.argmax(found))
    return None if found[ends[0]] == found[ends[1]] else (where[ends[0]], where[ends[1]])


def _length(part: Any) -> int:
    if isinstance(part, Mapping):
        part = list(part.values())
    if isinstance(part, list | tuple):
        return sum(_length(each) for each in part)
    return len(part) if isinstance(part, str) else math.prod(getattr(part, "shape", ()))


def _times(view: View, row: int, by: float, label: Any) -> Record:
    return Record((by * view.x[row]).astype(view.x.dtype), label)


def _instead(view: View, rows: Ints, i: int) -> Record:
    """Other features for every other one, another label for the rest, of which some are huge, in both directions."""
    row = int(rows[i])
    if i % 2 == 0:
        return Record(_other(view, row), _label(view, row))
    if i == 1 or view.x.dtype.kind != "f":
        return Record(_other(view, row), _other_label(view, row))
    return _times(view, int(rows[3]), HUGE if i % 4 == 1 else -HUGE, _other_label(view, row))


def _targets(view: View, rng: np.random.Generator) -> Ints:
    """One with the rarest label, one with the most frequent, one of the rarest group, and others by chance."""
    found = [] if view.y is None else [int(rng.choice(np.flatnonzero(view.y == label))) for label in view.labels]
    found += [] if view.kind == "text" else [int(rng.choice(rows)) for rows in _rarest_group(view)]
    rest = [int(i) for i in rng.permutation(len(view.x)) if int(i) not in found]
    return np.array(list(dict.fromkeys(found + rest))[:TARGETS], dtype=np.int64)


def _rarest_group(view: View) -> list[Ints]:
    """The rows with the rarest value of any column that has few values, if there is one."""
    groups: list[Ints] = []
    for column in view.flat.T[:COLUMNS]:
        values, counts = np.unique(column, return_counts=True)
        if 2 <= len(values) <= GROUPS:
            groups.append(np.flatnonzero(column == values[int(np.argmin(counts))]))
    return sorted(groups, key=len)[:1]


def _other(view: View, row: int) -> Any:
    """Features that are unlike those of this row."""
    if view.kind == "text":
        return next((x for x in view.x if x != view.x[row]), view.x[row])
    return view.x[int(np.argmax(((view.flat - view.flat[row]) ** 2).sum(axis=1)))]


def _other_label(view: View, row: int) -> Any:
    if view.y is None:
        return None
    return next((label for label in view.labels if label != view.y[row]), view.y[row])


def _label(view: View, row: int) -> Any:
    return None if view.y is None else view.y[row]
