"""Sensitivity: how far one record can move an update, whatever the record."""

from __future__ import annotations

import itertools

import numpy as np

from epsgauge.probing.finding import Finding, not_tested
from epsgauge.probing.pipeline import Pipeline
from epsgauge.probing.records import Records
from epsgauge.probing.taking_part import TakingPart

# In clipping norms: two clipped gradients are at most so far apart.
ALLOWED = 2.0
# Sums in float32 are rounded.
ROUNDING = 1e-3


def sensitivity(pipeline: Pipeline, records: Records, seen: TakingPart) -> Finding:
    """The same step with each of the crafted records in one place: all updates are within 2C of each other."""
    name, at = "sensitivity", seen.first
    if at is None:
        return not_tested(name, "No record that was replaced took part in a step that was seen.")
    model, target, step = at
    place = int(seen.places[target])
    updates = {}
    for what, index in records.crafted.items():
        again = pipeline.replayed(model, put={place: index}, stop=step + 1)
        if again is not None and len(again.updates) > step:
            updates[what] = again.updates[step].astype(np.float64)
    far, who = seen.farthest, "an ordinary record by another one"
    spoilt = [what for what, update in updates.items() if not np.isfinite(update).all()]
    for (a, x), (b, y) in itertools.combinations(updates.items(), 2):
        moved = float(np.linalg.norm(x - y)) if a not in spoilt and b not in spoilt else 0.0
        if moved > far:
            far, who = moved, f"record {a} by {b}"
    rests = f"One seed; {len(updates)} crafted records at one step, and {seen.steps.sum()} steps with ordinary ones."
    text = f"Replacing {who} moved an update by {far:.3g} clipping norms"
    if spoilt:
        return Finding(
            name,
            "refuted",
            f"Record {spoilt[0]} makes an update NaN or infinite, which clipping would not.",
            rests,
            noise=0.0,
        )
    if far > ALLOWED * (1 + ROUNDING):
        return Finding(name, "refuted", f"{text}; clipped gradients allow {ALLOWED:g}.", rests, reach=far / ALLOWED)
    return Finding(
        name, "consistent", f"{text}, of {ALLOWED:g} allowed.{_with_nan(pipeline, records, at, place)}", rests
    )


def _with_nan(pipeline: Pipeline, records: Records, at: tuple[int, int, int], place: int) -> str:
    if records.spoilt is None:
        return ""
    model, _, step = at
    again = pipeline.replayed(model, put={place: records.spoilt}, stop=step + 1)
    if again is None or len(again.updates) <= step or np.isfinite(again.updates[step]).all():
        return ""
    return " A record with NaN would spoil the whole update: keep such records out."
