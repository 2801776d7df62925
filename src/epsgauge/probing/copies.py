"""Copies: trainings on one record again and again, whose updates differ by their noise and their number of copies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.numbers import told_apart
from epsgauge.probing.finding import SHARE, Finding, consistent, not_tested, refuted
from epsgauge.probing.pipeline import Pipeline, Replay
from epsgauge.probing.recorder import Update
from epsgauge.probing.records import Records
from epsgauge.stats import special
from epsgauge.stats.arrays import Floats

# Crafted records that are tried.
TRIED = 12
# Lengths are rounded, too.
ROUNDING = 1e-3
# Records whose copies are compared with those of an ordinary one: of the longest gradients first.
LONG = ("huge", "huge, other label", "large-norm (z1)", "large-norm (z0)")
# Differences of two trainings that are not on one line hold more than the number of copies.
STRAIGHT = 1e-2


@dataclass(frozen=True, eq=False)
class Copied:
    """A training on copies of an ordinary record. The model stands still.

    `sizes` are those of its batches, in an unknown unit: the same steps on copies of another record differ by that many
    times the difference of the two clipped gradients, and their noise cancels. Where they differ by more, all are 1.
    """

    replay: Replay
    ordinary: int  # the record, and the other one
    other: int
    sizes: Floats
    straight: bool  # whether the differences are multiples of one another
    apart: float  # the longest of them, in clipping norms

    @property
    def constant(self) -> bool:
        """Whether all batches with records move an update by the same."""
        return self.straight and float(np.ptp(self.sizes[self.sizes != 0])) <= ROUNDING * self.apart

    def over(self, unit: float) -> Copied:
        """The same in a unit that is so many times as large."""
        return replace(self, replay=self.replay.over(unit), sizes=self.sizes / unit, apart=self.apart / unit)

    def noise_between(self, i: int, j: int) -> Floats:
        """Of two of its steps, so weighted that copies cancel: numbers of N(0, σ²), or further from 0 than such."""
        return without_copies(self.replay.updates[i], self.sizes[i], self.replay.updates[j], self.sizes[j])

    def apart_from(self, pipeline: Pipeline, places: Iterable[int], index: int, seed: int, stop: int) -> list[Update]:
        """What it changes in each update to have another record in these places: noise cancels.

        Empty where that cannot be known.
        """
        other = self.again(pipeline, places, index, seed, stop)
        return [] if other is None or not other.drew_like(self.replay) else apart(self.replay, other)

    def again(self, pipeline: Pipeline, places: Iterable[int], index: int, seed: int, stop: int) -> Replay | None:
        """The training with another record in these places."""
        put = dict.fromkeys(range(len(pipeline.members)), self.ordinary) | dict.fromkeys(places, index)
        return pipeline.replayed(seed, put=put, stop=stop)


def without_copies(x: NDArray[Any], x_size: float, y: NDArray[Any], y_size: float) -> Floats:
    """Two updates on x_size and y_size copies of one record: their difference is N(0, σ²) where noise is their own."""
    a, b = (y_size, x_size) if x_size or y_size else (1.0, 1.0)
    scale = float(np.hypot(a, b))
    return np.subtract(a / scale * x, b / scale * y, dtype=np.float64)


def copied(pipeline: Pipeline, records: Records, seed: int, **how: Any) -> Copied:
    """Where the training refuses copies of one record, or no other one moves it farther, sizes are not known."""
    ordinary, everywhere = int(records.targets[0]), range(len(pipeline.members))
    found = pipeline.replayed(seed, put=dict.fromkeys(everywhere, ordinary), **how)
    if found is None or not found.updates or not all(np.isfinite(update).all() for update in found.updates):
        found = pipeline.replay(seed, **how)
        return Copied(found, ordinary, ordinary, np.ones(len(found.updates)), straight=False, apart=0.0)
    for index in long_ones(records):
        other = pipeline.replayed(seed, put=dict.fromkeys(everywhere, index), **how)
        if other is not None and other.kept == found.kept and other.drew_like(found):
            sizes, straight = _sizes(apart(found, other))
            if np.isfinite(sizes).all() and sizes.any():
                sizes = sizes if straight else np.ones_like(sizes)
                return Copied(found, ordinary, index, sizes, straight, float(sizes.max()))
    return Copied(found, ordinary, ordinary, np.ones(len(found.updates)), straight=False, apart=0.0)


def long_ones(records: Records) -> list[int]:
    names = [*(name for name in LONG if name in records.crafted), *records.crafted]
    return [records.crafted[name] for name in dict.fromkeys(names)][:TRIED]


def _sizes(moves: list[Update]) -> tuple[Floats, bool]:
    """How long differences are along the line of the longest, and whether all are on it."""
    lengths = np.array([length(update) for update in moves])
    farthest = int(np.argmax(lengths))
    if not 0 < lengths[farthest] < np.inf:
        return np.zeros(len(lengths)), False
    line = moves[farthest].astype(np.float64) / lengths[farthest]
    sizes = np.array([float(update @ line) for update in moves])
    off = np.sqrt(np.maximum(lengths**2 - sizes**2, 0.0))
    return sizes, len(line) > 1 and bool((off <= STRAIGHT * lengths[farthest]).all())


def apart(found: Replay, other: Replay) -> list[Update]:
    """Of two trainings with one seed."""
    return [b - a for a, b in zip(found.updates, other.updates, strict=False)]


def length(update: Update) -> float:
    return float(np.linalg.norm(update.astype(np.float64)))


def copies(pipeline: Pipeline, records: Records, stop: int) -> dict[str, Floats]:
    """The length of each sum of clipped gradients, in clipping norms: that of one, times the copies in a batch."""
    out: dict[str, Floats] = {}
    if pipeline.quiet is None:
        return out
    for name, index in list(records.crafted.items())[-TRIED:]:
        found = pipeline.replayed(put=dict.fromkeys(range(len(pipeline.members)), index), quiet=True, stop=stop)
        if found is not None and len(found.updates) > 1:
            out[name] = np.array([length(update) for update in found.updates])
    return out


def one_record(pipeline: Pipeline, sums: dict[str, Floats], moved: float | None = None) -> Finding:
    """A clipped gradient is no longer than C: all sums together have at most so many terms, but for a small chance.

    Without a switch for the noise, there is what one record `moved` an update by at least.
    """
    name, q, n = "one record", float(pipeline.privacy.sample_rate), len(pipeline.members)
    if not sums and moved:
        text = f"Of the crafted records, one has a clipped gradient of at least {moved:.5g} clipping norms"
        rests = "All crafted records in one place: no update is nearer to all of theirs."
        if moved > 1 + ROUNDING:
            return refuted("P109", f"{text}; 1 is allowed.", rests, measured=moved, allowed=1.0)
        text = text.replace(f"{moved:.5g}", f"{moved:.3g}")
        return consistent(name, f"{text}, of 1 allowed.", rests, measured=moved, allowed=1.0)
    if not sums:
        return not_tested(name, "A training without noise on copies of one record was not possible.")
    lengths = {}
    for what, found in sums.items():
        trials = n * len(found)
        terms = trials if q == 1 else int(special.bdtrik(1 - SHARE / len(sums), trials, q)) + 1
        lengths[what] = float(found.sum()) / terms
    longest = max(lengths, key=lambda what: lengths[what])
    length, rests = lengths[longest], f"{len(sums)} trainings without noise on copies of one record; batches by coins."
    number = told_apart(length, 1.0)[0] if length > 1 + ROUNDING else f"{length:.3g}"
    text = f"The clipped gradient of record {longest} has a length of at least {number} clipping norms"
    if length > 1 + ROUNDING:
        two = {"measured": length, "allowed": 1.0}
        return refuted("P109", f"{text}; 1 is allowed.", rests, exact=False, where=f"record {longest}", **two)
    return consistent(name, f"{text}, of 1 allowed.", rests, exact=False, measured=length, allowed=1.0)
