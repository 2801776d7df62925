"""Interval: two ends with their level and what they promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from epsgauge.stats.arrays import Floats

Kind = Literal["credible", "guaranteed", "estimate"]


@dataclass(frozen=True)
class Interval:
    """[low, high] at `level`; `kind` says what the level means (see `epsgauge.stats.methods`)."""

    low: float | Floats
    high: float | Floats
    level: float
    kind: Kind

    @property
    def width(self) -> float | Floats:
        return self.high - self.low
