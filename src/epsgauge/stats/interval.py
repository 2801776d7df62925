"""Interval: two ends with their level and what they promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from epsgauge.stats.arrays import Floats

Kind = Literal["credible", "guaranteed", "estimate"]


@dataclass(frozen=True, repr=False, eq=False)
class Interval:
    """[low, high] at `level`; `kind` says what the level means (see `epsgauge.methods`)."""

    low: float | Floats
    high: float | Floats
    level: float
    kind: Kind

    @property
    def width(self) -> float | Floats:
        return self.high - self.low

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Interval):
            return NotImplemented
        same = np.array_equal(self.low, other.low) and np.array_equal(self.high, other.high)
        return same and (self.level, self.kind) == (other.level, other.kind)

    def __hash__(self) -> int:
        return hash((np.asarray(self.low).tobytes(), np.asarray(self.high).tobytes(), self.level, self.kind))

    def __repr__(self) -> str:
        low, high = (f"{e:.4g}" if np.ndim(e) == 0 else f"<{np.size(e)} values>" for e in (self.low, self.high))
        return f"Interval(low={low}, high={high}, level={self.level:g}, kind={self.kind!r})"
