"""Clipping: whether each record is clipped, or a batch or group, in which one record can then outweigh all others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epsgauge.probing.copies import ROUNDING, STRAIGHT, Copied, copied, length, long_ones
from epsgauge.probing.finding import Finding, consistent, not_tested, refuted
from epsgauge.probing.pipeline import Pipeline
from epsgauge.probing.records import Records
from epsgauge.probing.taking_part import TakingPart

NAME = "clipping"
# Records expected in a batch, and steps with the record that is replaced, below which too little is seen.
FEWEST, STEPS = 4, 3
# Places of a training set that are tried.
PLACES = 3


@dataclass(frozen=True)
class Clips:
    """What was found, and whether an update on copies of one record shows how many there are in its batch."""

    finding: Finding
    counts: bool


@dataclass(frozen=True)
class Moved:
    """How far one record moved an update, at least, and all records of a batch, in clipping norms."""

    name: str
    one: float
    every: float
    outweighs: bool  # one by more than its share
    adds: bool  # all of them by as much as each, so many times
    varies: bool = False  # one by less in some batches than in others, where it adds to the others


def clipping(pipeline: Pipeline, records: Records, seen: TakingPart, alike: list[Copied], stop: int) -> Clips:
    """An update on copies of one record grows with their number, unless something limits the sum of a batch.

    A sum of clipped gradients may be limited, too: then one record still moves it by C at most. If one outweighs others
    that are clipped together with it, these do not show. Then to replace one of them by it is to add it, which may
    move the update by C, not 2C.
    """
    q, n = float(pipeline.privacy.sample_rate), len(pipeline.members)
    if not all(one.straight for one in alike):
        why = "Trainings on copies of one record differ by more than their numbers of records, or fail."
        return Clips(not_tested(NAME, why), counts=True)
    rests = f"Trainings of {len(alike)} models on copies of one record, which stand still."
    constant = all(one.constant for one in alike) and (q < 1 or _same_of_half(pipeline, records, alike[0]))
    size = n * (q if seen.shifted else min(q, float(seen.direct.mean())))
    if constant and size < FEWEST:
        return Clips(not_tested(NAME, f"A batch has about {size:.2g} records: too few to tell."), counts=False)
    indices = long_ones(records) if constant else [alike[0].other]
    found = _farthest(pipeline, records, indices, _places(seen), alike, size, stop)
    if constant and found is None:
        return Clips(not_tested(NAME, "No record that was replaced took part in enough steps."), counts=False)
    if constant and found is not None and found.varies:
        text = "An update is divided by the number of records in its batch."
        return Clips(consistent(NAME, text, rests), counts=False)
    if found is None or found.adds or not (constant or found.outweighs):
        text = "An update grows with the number of records in its batch."
        return Clips(consistent(NAME, text, rests), counts=True)
    moved = (
        f"one record of about {size:.0f} moved an update by {found.one:.3g} clipping norms, all by {found.every:.3g}"
    )
    if found.one <= 1 + ROUNDING or not found.outweighs:
        text = f"Something limits the sum of a batch, but no record outweighs others: {moved}."
        return Clips(consistent(NAME, text, rests), counts=False)
    what = "The batch is" if constant else f"Groups of about {size * found.one / found.every:.2g} records are"
    text = f"{what} clipped, not each record: {moved}."
    if q == 1 and pipeline.adjacency == "substitute":
        more = " Where a record is replaced and each step has all of them, 2 is allowed."
        return Clips(consistent(NAME, text + more, rests), counts=False)
    reach = found.one if pipeline.adjacency == "add-remove" else None
    more = " Adding a record may move it by 1."
    code = "P107" if constant else "P108"
    two = {"measured": found.one, "allowed": 1.0}
    return Clips(refuted(code, text + more, rests, where=f"record {found.name}", reach=reach, **two), counts=False)


def _same_of_half(pipeline: Pipeline, records: Records, whole: Copied) -> bool:
    """With all records in each batch: whether half the records move an update as far as all."""
    half = copied(pipeline, records, 0, only=len(pipeline.members) // 2, stop=1)
    return half.straight and half.other == whole.other and abs(half.apart - whole.apart) <= ROUNDING * whole.apart


def _places(seen: TakingPart) -> Sequence[int]:
    """Of records that take part most often, in enough steps if it is known in which."""
    often = seen.direct.sum(axis=(0, 2))
    places: list[int] = seen.places[np.argsort(-often, kind="stable")][:PLACES].tolist()
    return range(PLACES) if seen.shifted or seen.adapts else places[: int((often >= STEPS).sum())]


def _farthest(
    pipeline: Pipeline,
    records: Records,
    indices: list[int],
    places: Sequence[int],
    alike: list[Copied],
    size: float,
    stop: int,
) -> Moved | None:
    """One record among copies of another: the one that moves every update that it is in the farthest."""
    best = None
    for index in indices:
        every = alike[0].apart_from(pipeline, range(len(pipeline.members)), index, 0, stop)
        for place in places:
            changes = [one.apart_from(pipeline, [place], index, model, stop) for model, one in enumerate(alike)]
            steps = [update for found in changes for update in found if length(update) > ROUNDING]
            if len(steps) < STEPS or not every or not all(np.isfinite(update).all() for update in [*steps, *every]):
                continue
            one, far = min(map(length, steps)), max(map(length, every))
            along = float(steps[0] @ every[0]) / max(length(steps[0]) * length(every[0]), ROUNDING)
            outweighs = one * size > 2 * far
            if along > 1 - STRAIGHT and not outweighs:
                varies = max(map(length, steps)) > (1 + STRAIGHT) * one
                return Moved(records.named(index), one, far, outweighs, adds=True, varies=varies)
            if best is None or (outweighs, one) > (best.outweighs, best.one):
                best = Moved(records.named(index), one, far, outweighs, adds=False)
            break
        if best is not None and best.outweighs and best.one > 1 + ROUNDING:
            break
    return best
