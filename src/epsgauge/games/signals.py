"""What the adversary saw: of one model an Outcome, of many a table of Signals."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.stats.arrays import Bools, Floats, Ints

COLUMNS = ("models", "bits", "pairs", "loss0", "loss1", "reference")
Sees = Literal["pair", "z0"]

# A larger reference set is kept as so many of its order statistics.
SKETCH_SIZE = 1000


@dataclass(frozen=True, eq=False)
class Outcome:
    """One model of a run: its bits and pairs, and what was seen of it or why it failed."""

    index: int
    seed: int  # of its training
    bits: Ints  # [m]
    pairs: Ints  # [m, 2] indices of z0 and z1; z0 is −1 in an add-remove game
    seconds: float
    loss0: Floats | None = None  # [m]; NaN in an add-remove game
    loss1: Floats | None = None  # [m]
    reference: Floats | None = None  # [r], ascending
    error: str | None = None  # a traceback or a sentence; then the losses are None


@dataclass(frozen=True, eq=False)
class Signals:
    """Signals of many models of one run; row i is of model `models[i]`, in ascending order."""

    models: Ints  # [n]
    bits: Ints  # [n, m]
    pairs: Ints  # [n, m, 2]
    loss0: Floats  # [n, m]
    loss1: Floats  # [n, m]
    reference: Floats  # [n, r], each row ascending
    adjacency: Adjacency
    sees: Sees

    def __len__(self) -> int:
        return len(self.models)

    def __getitem__(self, rows: Bools) -> Signals:
        """The models of these rows."""
        return replace(self, **{name: getattr(self, name)[rows] for name in COLUMNS})


def sketch(losses: Floats) -> Floats:
    """Sorted; above SKETCH_SIZE, the order statistics that split it into SKETCH_SIZE + 1 parts as equal as can be."""
    ordered = np.sort(losses)
    size = len(ordered)
    if size <= SKETCH_SIZE:
        return ordered
    ranks = np.round(np.arange(1, SKETCH_SIZE + 1) * (size + 1) / (SKETCH_SIZE + 1)).astype(np.int64)
    return ordered[ranks - 1]
