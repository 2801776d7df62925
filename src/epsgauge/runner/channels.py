"""How a store keeps the channels of a model: one blob, and a table that says which channels are in it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
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

    def unpacked(self, blobs: Sequence[Any]) -> dict[str, Floats]:
        """The channels of many models, as parts of one array; ValueError for a blob of another length."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes.values()])
        size = int(ends[-1])
        if any(not isinstance(blob, bytes) or len(blob) != 8 * size for blob in blobs):
            raise ValueError("the signals of a model have the wrong length")
        block = np.frombuffer(bytearray().join(blobs), dtype=DTYPE).astype(np.float64, copy=False)
        parts = np.split(block.reshape(len(blobs), size), ends[:-1], axis=1)
        return {
            name: part.reshape(len(blobs), *shape)
            for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def __str__(self) -> str:
        return ", ".join(f"{name} {list(shape)}" for name, shape in self.shapes.items())
