"""Records in the company of others like them, of one direction and many lengths: what each adds is its own affair."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from epsgauge.probing.pipeline import Pipeline
from epsgauge.probing.records import Ladder, Records
from epsgauge.probing.taking_part import TakingPart, moved_by
from epsgauge.stats.arrays import Floats

# Places of the training set that are tried, and models.
PLACES, SEEDS = 3, 16
# A rung from which on gradients are about as long as the clipping norm: so near to the longest.
NEAR = 0.7
# Rungs from there on, and how many rungs below others are that are about a quarter as long.
ABOVE, BELOW = 4, 4


@dataclass(frozen=True)
class Rung:
    """The rung of a ladder from which on gradients are clipped."""

    ladder: Ladder
    number: int

    def up(self, by: int) -> int:
        """The index of a record so many rungs above, or of the last."""
        return self.ladder.rungs[int(np.clip(self.number + by, 0, len(self.ladder.rungs) - 1))]


def first_clipped(pipeline: Pipeline, records: Records, place: int, model: int, step: int, walk: float) -> Rung | None:
    """By halves: the ladder whose longest record moves an update farthest from the shortest, and where it stays."""

    def update(index: int) -> Floats | None:
        again = pipeline.replayed(model, put={place: index}, stop=step + 1, keep=[step], walk=walk)
        return again.updates[0].astype(np.float64) if again is not None and again.kept == [step] else None

    best: tuple[float, Ladder, Floats] | None = None
    for ladder in records.ladders:
        short, long = update(ladder.rungs[0]), update(ladder.rungs[-1])
        if short is not None and long is not None:
            far = float(np.linalg.norm(long - short))
            if np.isfinite(far) and far > 0 and (best is None or far > best[0]):
                best = far, ladder, short
    if best is None:
        return None
    far, ladder, short = best
    low, high = 0, len(ladder.rungs) - 1
    while high - low > 1:
        middle = (low + high) // 2
        there = update(ladder.rungs[middle])
        if there is None:
            return None
        low, high = (low, middle) if np.linalg.norm(there - short) >= NEAR * far else (middle, high)
    return Rung(ladder, high)


def among_alike(pipeline: Pipeline, records: Records, seen: TakingPart, rung: Rung | None, stop: int) -> float:
    """How far one record moves an update among others that are alike, if it is replaced by one as unlike as can be.

    Long and short records of one direction, in turn: what depends on the batch as a whole, such as a median of norms,
    changes by as much as it can there. Or copies of the shortest record: a batch may be filled up to its longest one.
    """
    n = len(pipeline.members)
    if rung is not None:
        others = {i: rung.up(-BELOW * (i % 2)) for i in range(n)}
        tried = (rung.ladder.rungs[0], rung.ladder.rungs[-1])
    elif records.lengths is not None:
        others, tried = dict.fromkeys(range(n), records.lengths[0]), records.lengths
    else:
        return 0.0
    far = 0.0
    for model in range(len(seen.steps)):
        often = seen.direct[model].sum(axis=1)
        place = int(seen.places[int(np.argmax(often))])
        if not often.any():
            continue
        replays = [pipeline.replayed(model, put=others | {place: index}, stop=stop) for index in tried]
        for a, b in itertools.combinations([each for each in replays if each is not None], 2):
            if a.drew_like(b):
                moves = [moved_by(x.astype(np.float64), y, a.unit) for x, y in zip(a.updates, b.updates, strict=False)]
                far = max([far, *moves])
    return far


def by_content(pipeline: Pipeline, seen: TakingPart, one: int, other: int, stop: int) -> bool:
    """Whether the training orders its records itself: among copies of one record, another one may be in any place.

    Of models until one draws that record: first the one of which it is known that it draws its place.
    """
    if seen.first is None or pipeline.privacy.sample_rate == 1:
        return False
    n, (first, target, _) = len(pipeline.members), seen.first
    places = [int(seen.places[target]), *np.linspace(0, n - 1, PLACES).astype(np.int64).tolist()]
    for model in [first, *(i for i in range(SEEDS) if i != first)]:
        found = set()
        for put in ({place: other} for place in places):
            again = pipeline.replayed(model, put=dict.fromkeys(range(n), one) | put, stop=stop)
            found.add(None if again is None else tuple(again.digests))
            if len(found) > 1 or None in found:
                return False
        without = pipeline.replayed(model, put=dict.fromkeys(range(n), one), stop=stop)
        if without is None or tuple(without.digests) not in found:
            return without is not None
    return False
