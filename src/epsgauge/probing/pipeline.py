"""The pipeline that is probed, and its replays: trainings with the same seeds, of which one thing alone differs."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.data.points import Points
from epsgauge.errors import EpsgaugeError
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.probing.calibration import calibrated_once
from epsgauge.probing.contents import contents
from epsgauge.probing.recorder import Enough, Norm, Recorder, Update
from epsgauge.references import users_code
from epsgauge.stats.arrays import Ints
from epsgauge.trainers.known_start import knowing_start
from epsgauge.trainers.protocol import Observer, Trainer, knows_size, seed_everything, seed_for

# Numbers of updates, from which on memory is cleared, and after how many replays.
LARGE, OFTEN = 10**6, 4
# Points on which a whole training's model is compared.
COMPARED = 50


@dataclass(frozen=True, eq=False)
class Replay:
    """What was seen of one training; `model` is all that came out of it, where it was trained to its end."""

    updates: list[Update]  # in clipping norms
    kept: list[int]  # the steps of these
    digests: list[bytes]  # of the updates of all steps
    norm_at: list[Norm]  # the clipping norm of each step
    divisors: set[float]
    shapes: list[tuple[int, ...]]
    n_steps: int
    model: dict[str, bytes] | None
    states: list[bytes]  # of random generators at every step
    unit: float  # relative rounding of an update's numbers
    stated: bool = True  # whether the training states a clipping norm
    fleeting: frozenset[str] = frozenset()  # parts of the model that differ whatever the data

    @property
    def norms(self) -> set[Norm]:
        return set(self.norm_at)

    def clipped_like(self, other: Replay) -> bool:
        """Whether both have the same clipping norms, as by a schedule, and not by what the data choose."""
        return all(a == b for a, b in zip(self.norm_at, other.norm_at, strict=False))

    def over(self, unit: float) -> Replay:
        """The same with updates in a unit that is so many times as large."""
        return replace(self, updates=[(update / unit).astype(np.float32) for update in self.updates])

    def drew_like(self, other: Replay) -> bool:
        """Whether both drew the same random numbers."""
        return all(a == b for a, b in zip(self.states, other.states, strict=False))


@dataclass(frozen=True, eq=False)
class Pipeline:
    """A trainer that takes `watch`, the points that it is trained on, and what the accountant assumes of it."""

    trainer: Trainer | Observer
    quiet: Trainer | Observer | None  # the same without its noise
    points: Points  # the data, crafted records at their end
    members: Ints  # of the training set
    privacy: DPSGD
    adjacency: Adjacency
    seed: int
    told: Callable[[int], None] = lambda count: None  # how many replays there were, after each
    count: list[int] = field(default_factory=lambda: [0])  # of replays
    scale: list[float] = field(default_factory=list)  # how far a record moves an update; empty if it is as stated
    names: list[str] = field(default_factory=list)  # of the arrays of an update
    shapes: list[tuple[int, ...]] = field(default_factory=list)

    def array(self, i: int) -> str:
        """One array of an update, for people."""
        shape = "×".join(map(str, self.shapes[i])) or "1"
        name = self.names[i] if i < len(self.names) else ""
        return f"array {i + 1} of {len(self.shapes)} ({f'{name}, ' if name else ''}{shape})"

    def replay(
        self,
        seed: int = 0,
        *,
        put: dict[int, int] | None = None,
        leave_out: int | None = None,
        only: int | None = None,
        quiet: bool = False,
        stop: int | None = None,
        walk: float = 0.0,
        keep: Sequence[int] | None = None,
    ) -> Replay:
        """Train once. `put` places points of these indices at positions of the training set; `only` so many are left.

        Without `walk` the model stands still. Errors of the user's code are said in one sentence.
        """
        members = self.members.copy()
        for place, index in (put or {}).items():
            members[place] = index
        if leave_out is not None:
            members = np.delete(members, leave_out)
        members = members[:only]
        trainer = _apart(self.quiet if quiet and self.quiet is not None else self.trainer)
        scale = next(iter(self.scale), None)
        watch = Recorder(walk=walk, stop=stop, keep=keep, names=self.names, scale=scale)
        self.count[0] += 1
        with users_code("the trainer", line=True), knowing_start(), calibrated_once():
            model = self._trained(trainer, members, seed, watch)
        self.shapes[:] = self.shapes or watch.shapes
        self.told(self.count[0])
        if sum(update.size for update in watch.updates) > LARGE and self.count[0] % OFTEN == 0:
            gc.collect()  # models of torch hold on to each other
        return Replay(
            updates=watch.updates,
            kept=watch.kept,
            digests=watch.digests,
            norm_at=watch.norm_at,
            divisors=watch.divisors,
            shapes=watch.shapes,
            n_steps=watch.n_steps,
            model=model,
            states=watch.states,
            unit=watch.unit,
            stated=watch.stated,
        )

    def _trained(
        self, trainer: Trainer | Observer, members: Ints, seed: int, watch: Recorder
    ) -> dict[str, bytes] | None:
        own = int(np.random.SeedSequence([self.seed, seed]).generate_state(1, np.uint64)[0]) >> 1
        seed_everything(own)
        more: dict[str, Any] = {"watch": watch, **seed_for(trainer, own)}
        more |= {"size": len(self.members)} if knows_size(trainer) else {}
        asked = self.points.take(self.members[:COMPARED])
        watch.begin()
        try:
            if isinstance(trainer, Trainer):
                model = trainer.train(self.points.take(members), **more)
                return contents(model) | _seen(trainer.losses(model, asked))
            return _seen(trainer.observe(self.points.take(members), asked, **more))
        except Enough:
            return None

    def replayed(self, seed: int = 0, **how: Any) -> Replay | None:
        """None where the pipeline refuses such records, as it may."""
        try:
            return self.replay(seed, **how)
        except EpsgaugeError:
            return None


def _apart(trainer: Trainer | Observer) -> Trainer | Observer:
    """A copy where one can be had, so that what a training leaves on its trainer does not reach the next."""
    try:
        return copy.deepcopy(trainer)
    except Exception:
        return trainer


def _seen(raw: Any) -> dict[str, bytes]:
    """What a model says of points."""
    return {name.replace("model", "its losses", 1): part for name, part in contents(raw).items()}
