"""How a store keeps the channels of a model: one blob, and a table that says which channels are in it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsgauge.stats.arrays import Floats

VERSION = 1  # of what a row of the table means; a reader refuses a later one
DTYPE = "<f8"


@dataclass(frozen=True)
class Layout:
    """Names and shapes of a model's channels, in the order in which they stand in its blob."""

    shapes: dict[str, tuple[int, ...]]

    @classmethod
    def of(cls, channels: Mapping[str, Floats]) -> Layout:
        return cls({name: values.shape for name, values in channels.items()})

    @classmethod
    def from_rows(cls, rows: Iterable[tuple[Any, ...]]) -> Layout:
        """From name, version, dtype and shape of each channel; ValueError or TypeError for what nobody wrote."""
        shapes = {}
        for name, version, dtype, shape in rows:
            lengths = tuple(json.loads(shape))
            if (version, dtype) != (VERSION, DTYPE) or not all(type(n) is int and 0 <= n < 2**31 for n in lengths):
                raise ValueError(f"channel {name} has no layout that this version knows")
            shapes[str(name)] = lengths
        return cls(shapes)

    def rows(self) -> list[tuple[int, str, int, str, str]]:
        """Place, name, version, dtype and shape of each channel."""
        return [(i, name, VERSION, DTYPE, json.dumps(shape)) for i, (name, shape) in enumerate(self.shapes.items())]

    def packed(self, channels: Mapping[str, Floats]) -> bytes:
        return b"".join(np.ascontiguousarray(channels[name], dtype=DTYPE).tobytes() for name in self.shapes)

    @property
    def size(self) -> int:
        """Bytes of a model's blob."""
        return 8 * sum(math.prod(shape) for shape in self.shapes.values())

    def unpacked(self, blobs: bytearray) -> dict[str, Floats]:
        """The channels of many models, of which the blobs stand one after the other, as parts of one array."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes.values()])
        block = np.frombuffer(blobs, dtype=DTYPE).astype(np.float64, copy=False).reshape(-1, int(ends[-1]))
        parts = np.split(block, ends[:-1], axis=1)
        return {
            name: part.reshape(len(block), *shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def __str__(self) -> str:
        return ", ".join(f"{name} {list(shape)}" for name, shape in self.shapes.items())
