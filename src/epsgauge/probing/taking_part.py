"""When a record takes part: the steps whose update is another one when the record is replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.probing.pipeline import Pipeline
from epsgauge.probing.records import Records
from epsgauge.stats.arrays import Floats, Ints

# A record that moves an update by less than this share of the farthest that it moves any is in it by others' gradients.
DIRECT = 0.1


@dataclass(frozen=True, eq=False)
class TakingPart:
    """Of each model and target, in which steps it took part, and how far its replacement moved an update at most."""

    steps: NDArray[np.bool_]  # [models, targets, steps]: another record gives another update
    direct: NDArray[np.bool_]  # the same, by a gradient of its own
    moves: Floats  # the same, in clipping norms; not finite for an update that was not kept
    places: Ints  # of the targets in the training set
    unit: float  # relative rounding of an update's numbers
    shifted: bool  # other random numbers were drawn because of a record
    adapts: bool  # the clipping norm varies with the data; then what follows the first step with a record is left out
    norms: tuple[float, float] | None  # of one step, with one record of its batch and with another

    @property
    def first(self) -> tuple[int, int, int] | None:
        """The model, the target and the step of the earliest."""
        if not self.direct.any():
            return None
        model, target, step = np.nonzero(self.direct)
        at = int(np.argmin(step))
        return int(model[at]), int(target[at]), int(step[at])

    @property
    def farthest(self) -> tuple[float, int]:
        """How far a replacement moved an update, and of which target."""
        seen = np.where(np.isfinite(self.moves), self.moves, 0.0).max(axis=(0, 2))
        return float(seen.max()), int(np.argmax(seen))

    @property
    def tried(self) -> NDArray[np.bool_]:
        """The steps that count: up to the first one with the record, if the clipping norm varies."""
        before: NDArray[np.bool_] = np.cumsum(self.steps, axis=2) - self.steps == 0
        return before if self.adapts else np.ones_like(before)

    def idle(self, targets: Sequence[int]) -> tuple[float, float]:
        """How far these targets moved updates without a gradient of their own, from the least to the most."""
        moves = self.moves[:, targets][(self.steps & ~self.direct)[:, targets]]
        return float(moves.min(initial=np.inf)), float(moves.max(initial=0.0))


def taking_part(pipeline: Pipeline, records: Records, models: int, *, stop: int, walk: float) -> TakingPart:
    """One replay for each model and target; all follow one script, so that nothing but the record differs."""
    base = [pipeline.replay(model, stop=stop, walk=walk) for model in range(models)]
    places = np.array([int(np.flatnonzero(pipeline.members == target)[0]) for target in records.targets])
    moves = np.zeros((len(base), len(places), min(each.n_steps for each in base)))
    steps, shifted, norms = np.zeros(moves.shape, dtype=bool), False, None
    adapts = not all(one.clipped_like(base[0]) for one in base)  # norms of a schedule are the same with every seed
    for model, one in enumerate(base):
        for target, (place, other) in enumerate(zip(places, records.instead, strict=True)):
            again = pipeline.replayed(model, put={int(place): int(other)}, stop=stop, walk=walk)
            if again is None or not one.drew_like(again):  # it may refuse huge records, or leave them out
                again = pipeline.replay(model, put={int(place): int(records.instead[0])}, stop=stop, walk=walk)
            shifted |= not one.drew_like(again)
            adapts |= not one.clipped_like(again)
            differs = [a != b for a, b in zip(one.digests, again.digests, strict=False)][: moves.shape[2]]
            steps[model, target, : len(differs)] = differs
            moves[model, target] = np.where(steps[model, target], np.inf, 0.0)  # of an update that is not kept
            for step, a, b in zip(range(moves.shape[2]), one.updates, again.updates, strict=False):
                moves[model, target, step] = (
                    moved_by(a.astype(np.float64), b, one.unit) if steps[model, target, step] else 0
                )
            first = int(np.argmax(steps[model, target]))
            if steps[model, target].any() and one.norm_at[first] != again.norm_at[first]:
                both = zip(np.ravel(one.norm_at[first]), np.ravel(again.norm_at[first]), strict=True)
                norms = next((float(x), float(y)) for x, y in both if x != y)
    if adapts:  # by noisy numbers of the steps before
        later = (np.cumsum(steps, axis=2) - steps) > 0
        steps, moves = steps & ~later, np.where(later, 0.0, moves)
    seen = np.where(np.isfinite(moves), moves, 0.0)
    direct = steps & (moves >= DIRECT * seen.max(axis=(0, 2), keepdims=True))
    return TakingPart(steps, direct, moves, places, base[0].unit, shifted, adapts, norms)


def moved_by(x: NDArray[Any], y: NDArray[Any], unit: float) -> float:
    """How far apart two updates were at least before they were rounded."""
    return max(0.0, float(np.linalg.norm(x - y)) - unit * float(np.linalg.norm(x) + np.linalg.norm(y)))
