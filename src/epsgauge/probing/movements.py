"""Movements: how far one record moves each array of an update, for noise that differs between arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from epsgauge.probing.pipeline import Pipeline
from epsgauge.probing.records import Records
from epsgauge.probing.sensitivity import ALLOWED, updates_with
from epsgauge.stats.arrays import Floats

# Places of the training set in which a record is replaced, until an update changes.
PLACES = 8
# What is less far, in clipping norms, is rounding; sums in float32 are rounded, too.
LEAST, ROUNDING = 1e-5, 1e-3


def movements(pipeline: Pipeline, records: Records, stop: int) -> Iterator[Floats]:
    """How far one crafted record moves an update from another, in each array [arrays], in clipping norms.

    In the first step whose update shows one of some records. What moves it farther than clipped gradients may is left
    to other tests.
    """
    base, where = pipeline.replay(0, stop=stop, keep=[0]), []
    ends = np.cumsum([math.prod(shape) for shape in base.shapes])[:-1]
    first = next(iter(records.crafted.values()))
    for place in range(min(PLACES, len(pipeline.members))):
        other = pipeline.replayed(0, put={place: first}, stop=stop, keep=[])
        pairs = zip(base.digests, other.digests, strict=False) if other is not None else ()
        where += [(step, place) for step, (a, b) in enumerate(pairs) if a != b][:1]
    if not where:
        return
    step, place = min(where)
    found = updates_with(pipeline, records.crafted, (0, place, step), 0.0)
    for x, y in itertools.combinations((each for each in found.values() if np.isfinite(each).all()), 2):
        sure = np.maximum(np.abs(x - y) - base.unit * (np.abs(x) + np.abs(y)), 0.0)
        parts = np.array([np.linalg.norm(each) for each in np.split(sure, ends)])
        if np.linalg.norm(parts) <= ALLOWED["replacing"] * (1 + ROUNDING):
            yield np.where(parts > LEAST, parts, 0.0)
