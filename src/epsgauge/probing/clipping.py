"""Clipping: whether each record is clipped, or the batch, in which one record can then outweigh all others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsgauge.probing.copies import ROUNDING, STRAIGHT, Copied, copied, length, long_ones
from epsgauge.probing.finding import Finding, not_tested
from epsgauge.probing.pipeline import Pipeline
from epsgauge.probing.records import Records

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

    one: float
    every: float
    outweighs: bool  # one by more than its share
    adds: bool  # all of them by as much as each, so many times


def clipping(pipeline: Pipeline, records: Records, alike: list[Copied], stop: int) -> Clips:
    """An update on copies of one record grows with their number, unless something limits the sum of a batch.

    A sum of clipped gradients may be limited, too: then one record still moves it by C at most. Where the number of
    records in a batch does not show, replacing one is as good as adding it, which may move the update by C, not 2C.
    """
    q, n = float(pipeline.privacy.sample_rate), len(pipeline.members)
    if not all(one.straight for one in alike):
        why = "Trainings on copies of one record differ by more than their numbers of records, or fail."
        return Clips(not_tested(NAME, why), counts=True)
    rests = f"{2 * len(alike)} trainings on copies of one record; the model stands still."
    grows = Finding(NAME, "consistent", "An update grows with the number of records in its batch.", rests)
    if not all(one.constant for one in alike) or (q == 1 and not _same_of_half(pipeline, records, alike[0])):
        return Clips(grows, counts=True)
    if q * n < FEWEST:
        return Clips(
            not_tested(NAME, f"A batch has about {q * n:.2g} records, which are too few to tell."), counts=False
        )
    found = _farthest(pipeline, records, alike, stop)
    if found is None:
        return Clips(not_tested(NAME, "No record that was replaced took part in enough steps."), counts=False)
    if found.adds:
        return Clips(grows, counts=True)
    one, every = found.one, found.every
    moved = f"one record of about {q * n:.0f} moved an update by {one:.3g} clipping norms, all of them by {every:.3g}"
    if one <= 1 + ROUNDING or not found.outweighs:
        text = f"Something limits the sum of a batch, but no record outweighs others: {moved}."
        return Clips(Finding(NAME, "consistent", text, rests), counts=False)
    text = f"The batch is clipped, not each record: {moved}."
    if q == 1 and pipeline.adjacency == "substitute":
        more = " Where a record is replaced and each step has all of them, 2 is allowed."
        return Clips(Finding(NAME, "consistent", text + more, rests), counts=False)
    reach = one if pipeline.adjacency == "add-remove" else None
    more = " Adding a record may move it by 1."
    return Clips(Finding(NAME, "refuted", text + more, rests, reach=reach), counts=False)


def _same_of_half(pipeline: Pipeline, records: Records, whole: Copied) -> bool:
    """With all records in each batch: whether half the records move an update as far as all."""
    half = copied(pipeline, records, 0, only=len(pipeline.members) // 2, stop=1)
    return half.straight and half.other == whole.other and abs(half.apart - whole.apart) <= ROUNDING * whole.apart


def _farthest(pipeline: Pipeline, records: Records, alike: list[Copied], stop: int) -> Moved | None:
    """One record among copies of another: the one that moves every update that it is in the farthest."""
    best, n = None, len(pipeline.members)
    for index in long_ones(records):
        every = alike[0].apart_from(pipeline, range(n), index, 0, stop)
        for place in range(PLACES):
            changes = [one.apart_from(pipeline, [place], index, model, stop) for model, one in enumerate(alike)]
            steps = [update for found in changes for update in found if length(update) > ROUNDING]
            if len(steps) < STEPS or not every or not all(np.isfinite(update).all() for update in [*steps, *every]):
                continue
            one, far = min(map(length, steps)), max(map(length, every))
            along = float(steps[0] @ every[0]) / max(length(steps[0]) * length(every[0]), ROUNDING)
            outweighs = one > 2 * far / (n * pipeline.privacy.sample_rate)
            if along > 1 - STRAIGHT and not outweighs:
                return Moved(one, far, outweighs, adds=True)
            if best is None or (outweighs, one) > (best.outweighs, best.one):
                best = Moved(one, far, outweighs, adds=False)
            break
        if best is not None and best.outweighs and best.one > 1 + ROUNDING:
            break
    return best
