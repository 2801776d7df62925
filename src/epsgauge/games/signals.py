"""What the adversary saw, as named channels: of one model an Outcome, of many a table of Signals."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from epsgauge.adjacency import Adjacency
from epsgauge.errors import InvalidInput
from epsgauge.stats.arrays import Bools, Floats, Ints
from epsgauge.trainers.watch import CHANNELS

Sees = Literal["pair", "z0"]

# A larger reference set is kept as so many of its order statistics.
SKETCH_SIZE = 1000


@dataclass(frozen=True, eq=False)
class Outcome:
    """One model of a run: its bits and pairs, and what was seen of it or why it failed."""

    index: int
    seed: int  # of its training
    bits: Ints  # [m]
    pairs: Ints  # [m, 2] indices of z0 and z1; z0 is −1 in an add-remove game, and both are for gradients
    seconds: float
    channels: Mapping[str, Floats] | None = None  # those of `Signals`, without their first axis
    error: str | None = None  # a traceback or a sentence; then there are no channels
    machine: Mapping[str, Any] | None = None  # on which it was trained


@dataclass(frozen=True, eq=False)
class Signals:
    """Signals of many models of one run; row i is of model `models[i]`, in ascending order.

    `signals["loss"]` is [n, m, 2], the losses of z0 and z1; NaN for the z0 of an add-remove game, and for gradients.
    `signals["reference"]` is [n, r], the model's losses on reference points, each row ascending.
    `signals["population"]` has all of them in the order of the points, in a game that keeps these.
    Other channels are what the trainer gave, [n, m, 2, …] of pairs or one array for each model, and what the watch saw:
    `signals["llr"]`, `signals["alignment"]` and `signals["displacement"]` are [n, m]. A trainer without `losses` gives
    the last ones alone.
    """

    models: Ints  # [n]
    bits: Ints  # [n, m]
    pairs: Ints  # [n, m, 2]
    channels: Mapping[str, Floats]
    adjacency: Adjacency
    sees: Sees
    rehearsal: Signals | None = None  # of models set apart, whose bits an attack may see

    @classmethod
    def of(
        cls, outcomes: Sequence[Outcome], adjacency: Adjacency, sees: Sees, rehearsal: Signals | None = None
    ) -> Signals:
        """Of models that are done, at least one, in ascending order."""
        seen = [outcome.channels or {} for outcome in outcomes]
        return cls(
            np.array([outcome.index for outcome in outcomes]),
            np.stack([outcome.bits for outcome in outcomes]),
            np.stack([outcome.pairs for outcome in outcomes]),
            {name: np.stack([channels[name] for channels in seen]) for name in seen[0]},
            adjacency,
            sees,
            rehearsal,
        )

    def __len__(self) -> int:
        return len(self.models)

    @overload
    def __getitem__(self, key: str) -> Floats: ...

    @overload
    def __getitem__(self, key: Bools | Ints) -> Signals: ...

    def __getitem__(self, key: str | Bools | Ints) -> Floats | Signals:
        """A channel by its name, or the models of some rows."""
        if isinstance(key, str):
            self.check_channels([key], "this")
            return self.channels[key]
        return replace(
            self,
            models=self.models[key],
            bits=self.bits[key],
            pairs=self.pairs[key],
            channels={name: values[key] for name, values in self.channels.items()},
        )

    def blind(self) -> Signals:
        """What an attack may see: the bits are −1, and nothing can be written."""

        def locked(values: NDArray[Any]) -> NDArray[Any]:
            view = values.view()
            view.flags.writeable = False
            return view

        channels = {name: locked(values) for name, values in self.channels.items()}
        hidden = locked(np.full_like(self.bits, -1))
        return replace(self, models=locked(self.models), bits=hidden, pairs=locked(self.pairs), channels=channels)

    def check_channels(self, names: Iterable[str], who: str) -> None:
        """Raise where a channel that `who` needs is not there."""
        missing = [name for name in names if name not in self.channels]
        if not missing:
            return
        needs = f"{who} needs the channel {missing[0]!r}"
        if not self.channels:
            raise InvalidInput(f"{needs}, but no model of this run is done. Run it first.")
        sees = CHANNELS.get(missing[0])
        remedy = "Let the trainer give it beside its losses" if sees is None else f'Set adversary.sees = "{sees}"'
        if missing[0] == "population":
            remedy = "Set population = true in [game]"
        raise InvalidInput(
            f"{needs}, but this run has only {', '.join(self.channels)}. {remedy}, and run with a new --out."
        )


def joined(parts: Sequence[Signals]) -> Signals:
    """Signals of different models of one run, in the order of the parts."""
    return replace(
        parts[0],
        models=np.concatenate([part.models for part in parts]),
        bits=np.concatenate([part.bits for part in parts]),
        pairs=np.concatenate([part.pairs for part in parts]),
        channels={name: np.concatenate([part[name] for part in parts]) for name in parts[0].channels},
    )


def sketch(losses: Floats) -> Floats:
    """Sorted; above SKETCH_SIZE, the order statistics that split it into SKETCH_SIZE + 1 parts as equal as can be."""
    ordered = np.sort(losses)
    size = len(ordered)
    if size <= SKETCH_SIZE:
        return ordered
    ranks = np.round(np.arange(1, SKETCH_SIZE + 1) * (size + 1) / (SKETCH_SIZE + 1)).astype(np.int64)
    return ordered[ranks - 1]
