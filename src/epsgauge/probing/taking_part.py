"""When a record takes part: the steps whose update is another one when the record is replaced."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epsgauge.probing.pipeline import Pipeline, Replay
from epsgauge.probing.records import Records
from epsgauge.stats.arrays import Ints


@dataclass(frozen=True, eq=False)
class TakingPart:
    """Of each model and target, in which steps it took part, and how far its replacement moved an update at most."""

    steps: NDArray[np.bool_]  # [models, targets, steps]
    places: Ints  # of the targets in the training set
    farthest: float  # in clipping norms

    @property
    def first(self) -> tuple[int, int, int] | None:
        """The model, the target and the step of the earliest."""
        if not self.steps.any():
            return None
        model, target, step = np.nonzero(self.steps)
        at = int(np.argmin(step))
        return int(model[at]), int(target[at]), int(step[at])


def taking_part(pipeline: Pipeline, records: Records, base: list[Replay], stop: int) -> TakingPart:
    """One replay for each model and target; the models stand still, so that nothing but the record differs."""
    places = np.array([int(np.flatnonzero(pipeline.members == target)[0]) for target in records.targets])
    length = min(each.n_steps for each in base)
    steps = np.zeros((len(base), len(places), length), dtype=bool)
    farthest = 0.0
    for model, one in enumerate(base):
        for target, (place, other) in enumerate(zip(places, records.instead, strict=True)):
            again = pipeline.replay(model, put={int(place): int(other)}, stop=stop)
            differs = [a != b for a, b in zip(one.digests, again.digests, strict=False)]
            steps[model, target, : len(differs)] = differs[:length]
            for a, b, differ in zip(one.updates, again.updates, differs, strict=False):
                farthest = max(farthest, float(np.linalg.norm(a.astype(np.float64) - b))) if differ else farthest
    return TakingPart(steps, places, farthest)
