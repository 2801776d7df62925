"""Scales of the pictures on the web: from values to places, round ticks, and their names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.numbers import grouped


@dataclass(frozen=True)
class Scale:
    """From values to places: `low` is drawn at `start`, `high` at `end`."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """The place of a value; one beyond the axis is put at its end."""
        v, low, high = (math.log10(max(u, 1e-300)) if self.log else u for u in (value, self.low, self.high))
        share = min(max((v - low) / (high - low), 0.0), 1.0)
        return self.start + share * (self.end - self.start)

    def holds(self, value: float) -> bool:
        return self.low <= value <= self.high

    def all(self, values: ArrayLike) -> list[float]:
        """The places of many values, also beyond the axis: a clip cuts them."""
        v = np.asarray(values, np.float64)
        low, high = self.low, self.high
        if self.log:
            v, low, high = np.log10(np.maximum(v, 1e-300)), math.log10(low), math.log10(high)
        share = np.clip((v - low) / (high - low), -3.0, 4.0)
        out: list[float] = (self.start + share * (self.end - self.start)).tolist()
        return out

    @property
    def length(self) -> float:
        return abs(self.end - self.start)

    @property
    def text(self) -> str:
        """Five numbers, from which a place can be read as a value."""
        return f"{self.low:.6g} {self.high:.6g} {self.start:g} {self.end:g} {int(self.log)}"


def ticks(low: float, high: float, most: int) -> list[float]:
    """Round numbers between both, at most so many of them."""
    if not high > low:
        return [low]
    raw = (high - low) / max(most, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    for factor in (1, 2, 5, 10, 20, 50):
        step = factor * power
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first + 1 <= most:
            return [k * step + 0.0 for k in range(first, last + 1)]
    return [low, high]


def decades(low: float, high: float, most: int = 6) -> list[float]:
    """Powers of ten between both, at most so many of them; the last one always."""
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    step = max(1, math.ceil((last - first + 1) / most))
    return sorted(10.0**k for k in range(last, first - 1, -step))


def tick_names(values: Sequence[float]) -> list[str]:
    """All with the decimals that tell them apart."""
    if len(values) < 2:
        return [f"{v:g}" for v in values]
    step = min(abs(b - a) for a, b in pairwise(values))
    if max(abs(v) for v in values) >= 1e6 or step < 1e-5:
        return [f"{v:.4g}" for v in values]
    decimals = max(0, -math.floor(math.log10(step) + 1e-9))
    return [grouped(v) if decimals == 0 else f"{v:.{decimals}f}".replace("-", "−") for v in values]


_SUPER = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def power_name(value: float) -> str:
    """A power of ten: 1, 0.1, 0.01, and 10⁻³ below."""
    exponent = round(math.log10(value))
    return f"{value:g}" if -2 <= exponent <= 3 else "10" + str(exponent).translate(_SUPER)
