"""Interval: two ends with their level and what they promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from epsgauge.stats.arrays import Floats

Kind = Literal["credible", "guaranteed", "estimate"]


@dataclass(frozen=True, repr=False)
class Interval:
    """[low, high] at `level`; `kind` says what the level means (see `epsgauge.stats.methods`)."""

    low: float | Floats
    high: float | Floats
    level: float
    kind: Kind

    @property
    def width(self) -> float | Floats:
        return self.high - self.low

    def __repr__(self) -> str:
        low, high = (f"{e:.4g}" if np.ndim(e) == 0 else f"<{np.size(e)} values>" for e in (self.low, self.high))
        return f"Interval(low={low}, high={high}, level={self.level:g}, kind={self.kind!r})"
