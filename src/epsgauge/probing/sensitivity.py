"""Sensitivity: how far one record can move an update, whatever the record."""

from __future__ import annotations

import itertools

import numpy as np

from epsgauge.probing.finding import Finding, not_tested
from epsgauge.probing.pipeline import Pipeline
from epsgauge.probing.records import Records
from epsgauge.probing.taking_part import TakingPart, moved_by
from epsgauge.stats.arrays import Floats

# In clipping norms: two clipped gradients are at most so far apart.
ALLOWED = 2.0
# Crafted records that are tried late in a training, too.
LATE = ["huge", "large-norm (z1)", "large-norm (z0)", "outlier (z1)", "opposite (z1)", "opposite (z0)"]
# Sums in float32 are rounded.
ROUNDING = 1e-3
# Records of which it is seen when they take part in a whole training.
TARGETS = 3
Where = tuple[int, int, int | None]  # a model, a place in its training set, and a step


def sensitivity(pipeline: Pipeline, records: Records, seen: TakingPart, walk: float) -> Finding:
    """The same step with each of the crafted records in one place: all updates are within 2C of each other.

    At the first step at which a record takes part, and at the last one of a whole training.
    """
    name, at = "sensitivity", seen.first
    if at is None:
        return not_tested(name, "No record that was replaced took part in a step that was seen.")
    model, target, step = at
    first, last = (model, int(seen.places[target]), step), _last(pipeline, records, seen, walk)
    far, who, tried = seen.farthest, "an ordinary record by another one", 0
    for where, names in ((first, list(records.crafted)), (last, LATE)):
        updates = _updates(pipeline, {n: records.crafted[n] for n in names if n in records.crafted}, where, walk)
        tried += len(updates)
        rests = f"One seed; {tried} crafted records, and {seen.direct.sum()} steps with ordinary ones."
        spoilt = [what for what, update in updates.items() if not np.isfinite(update).all()]
        if spoilt:
            text = f"Record {spoilt[0]} makes an update NaN or infinite, which clipping would not."
            return Finding(name, "refuted", text, rests, noise=0.0)
        for (a, x), (b, y) in itertools.combinations(updates.items(), 2):
            moved = moved_by(x, y, seen.unit)
            if moved > far:
                far, who = moved, f"record {a} by {b}"
    text = f"Replacing {who} moved an update by {far:.3g} clipping norms"
    if far > ALLOWED * (1 + ROUNDING):
        return Finding(name, "refuted", f"{text}; clipped gradients allow {ALLOWED:g}.", rests, reach=far / ALLOWED)
    spoils = _with_nan(pipeline, records, first, walk)
    return Finding(name, "consistent", f"{text}, of {ALLOWED:g} allowed.{spoils}", rests)


def _updates(pipeline: Pipeline, crafted: dict[str, int], at: Where, walk: float) -> dict[str, Floats]:
    """Of one step, with each of these records in a place of a model's training set; without those that it refuses."""
    out: dict[str, Floats] = {}
    model, place, step = at
    if step is None:
        return out
    for what, index in crafted.items():
        again = pipeline.replayed(model, put={place: index}, stop=step + 1, keep=[step], walk=walk)
        if again is not None and again.kept == [step]:
            out[what] = again.updates[0].astype(np.float64)
    return out


def _last(pipeline: Pipeline, records: Records, seen: TakingPart, walk: float) -> Where:
    """The last step of a whole training at which one of some targets takes part, if it was not seen before."""
    usual = pipeline.replay(0, walk=walk, keep=[])
    found: Where = (0, 0, None)
    for place, other in zip(seen.places[:TARGETS].tolist(), records.instead.tolist(), strict=False):
        changed = pipeline.replay(0, put={place: other}, walk=walk, keep=[])
        steps = [i for i, (a, b) in enumerate(zip(usual.digests, changed.digests, strict=False)) if a != b]
        if steps and steps[-1] >= max(seen.steps.shape[2], (found[2] or 0) + 1):
            found = 0, place, steps[-1]
    return found


def _with_nan(pipeline: Pipeline, records: Records, at: Where, walk: float) -> str:
    updates = {} if records.spoilt is None else _updates(pipeline, {"NaN": records.spoilt}, at, walk)
    if all(np.isfinite(update).all() for update in updates.values()):
        return ""
    return " A record with NaN would spoil the whole update: keep such records out."
