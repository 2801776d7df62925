"""When a record takes part: the steps whose update is another one when the record is replaced."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.probing.pipeline import Pipeline
from epsgauge.probing.recorder import Norm
from epsgauge.probing.records import Records
from epsgauge.stats.arrays import Ints

# A record that moves an update by less than this share of the farthest that it moves any is in it by others' gradients.
DIRECT = 0.1
# No batch has more records than are expected by so many times their root.
MANY = 5.0


@dataclass(frozen=True, eq=False)
class TakingPart:
    """Of each model and target, in which steps it took part, and how far its replacement moved an update at most."""

    steps: NDArray[np.bool_]  # [models, targets, steps]: another record gives another update
    direct: NDArray[np.bool_]  # the same, by a gradient of its own
    places: Ints  # of the targets in the training set
    farthest: float  # in clipping norms
    unit: float  # relative rounding of an update's numbers
    shifted: bool  # other random numbers were drawn because of a record

    @property
    def first(self) -> tuple[int, int, int] | None:
        """The model, the target and the step of the earliest."""
        if not self.direct.any():
            return None
        model, target, step = np.nonzero(self.direct)
        at = int(np.argmin(step))
        return int(model[at]), int(target[at]), int(step[at])


def taking_part(pipeline: Pipeline, records: Records, models: int, *, stop: int, walk: float) -> TakingPart:
    """One replay for each model and target; all follow one script, so that nothing but the record differs."""
    base = [pipeline.replay(model, stop=stop, walk=walk) for model in range(models)]
    places = np.array([int(np.flatnonzero(pipeline.members == target)[0]) for target in records.targets])
    moves = np.zeros((len(base), len(places), min(each.n_steps for each in base)))
    steps, shifted = np.zeros(moves.shape, dtype=bool), False
    size = len(pipeline.members) * float(pipeline.privacy.sample_rate)
    most = size + MANY * math.sqrt(size)
    for model, one in enumerate(base):
        for target, (place, other) in enumerate(zip(places, records.instead, strict=True)):
            again = pipeline.replay(model, put={int(place): int(other)}, stop=stop, walk=walk)
            shifted |= any(a != b for a, b in zip(one.states, again.states, strict=False))
            differs = [a != b for a, b in zip(one.digests, again.digests, strict=False)][: moves.shape[2]]
            steps[model, target, : len(differs)] = differs
            moves[model, target] = np.where(steps[model, target], np.inf, 0.0)  # of an update that is not kept
            for step, a, b in zip(range(moves.shape[2]), one.updates, again.updates, strict=False):
                if steps[model, target, step]:
                    moved = moved_by(a.astype(np.float64), b, one.unit)
                    by_norm = _by_norm(one.norm_at[step], again.norm_at[step], most)
                    moves[model, target, step] = moved - by_norm
                    steps[model, target, step] = moved > by_norm or by_norm == 0
    seen = np.where(np.isfinite(moves), moves, 0.0)
    direct = steps & (moves >= DIRECT * seen.max(axis=(0, 2), keepdims=True))
    return TakingPart(steps, direct, places, float(seen.max()), base[0].unit, shifted)


def _by_norm(one: Norm, other: Norm, records: float) -> float:
    """How far another clipping norm moves an update, at most: the gradient of each record by the ratio of both norms.

    A norm that adapts is another one when a record took part before. Noise is in proportion to it.
    """
    return records * float(np.max(np.abs(np.divide(one, other) - 1)))


def moved_by(x: NDArray[Any], y: NDArray[Any], unit: float) -> float:
    """How far apart two updates were at least before they were rounded."""
    return max(0.0, float(np.linalg.norm(x - y)) - unit * float(np.linalg.norm(x) + np.linalg.norm(y)))
