"""Canaries that are numbers: images of noise, rows far from all others, and gradients."""

from __future__ import annotations

import base64
import math

import numpy as np

from epsgauge.data.planted.kind import Kind, Known, Row, distinct
from epsgauge.errors import InvalidInput
from epsgauge.stats.arrays import Floats

LONGEST = 32_767  # characters that a cell of a spreadsheet holds
CORNER = 3.0  # where a canary is in every column of a table: so many standard deviations from its mean


class NoiseImages(Kind):
    name = "noise-images"
    meaning = "an image whose pixels were drawn at random from 0 to 255, with a random label if there are labels"
    needs = ("shape",)

    def rows(self, n: int, rng: np.random.Generator, known: Known) -> list[Row]:
        size = math.prod(known.shape or ())
        if 4 * math.ceil(size / 3) > LONGEST:
            raise InvalidInput(
                f"shape must have at most {LONGEST // 4 * 3:,} numbers, which a cell of a spreadsheet holds, but has "
                f"{size:,}. Make images of your own and pass their paths with --from FILE."
            )
        pixels = distinct(n, lambda: rng.bytes(size), f"images of {size} numbers")
        return [{"pixels": base64.b64encode(each).decode(), **known.label(rng)} for each in pixels]


class CornerRows(Kind):
    name = "corner-rows"
    meaning = f"a row that is {CORNER:g} standard deviations from the mean in every column, on sides drawn at random"
    needs = ("features",)

    def rows(self, n: int, rng: np.random.Generator, known: Known) -> list[Row]:
        width = known.features or 0
        signs = distinct(n, lambda: tuple(rng.choice([-1, 1], width).tolist()), f"{width} columns")
        return [{**{f"x{i}": f"{CORNER * sign:g}" for i, sign in enumerate(row)}, **known.label(rng)} for row in signs]


class Gradients(Kind):
    name = "gradients"
    meaning = "a gradient of full norm in a coordinate of its own, which a watch adds to the update"
    needs = ("parameters",)
    orthogonal = True

    def rows(self, n: int, rng: np.random.Generator, known: Known) -> list[Row]:
        among = known.parameters or 0
        if n > among:
            raise InvalidInput(
                f"canaries must be at most {among}, the number of parameters, as each has a coordinate of its own, but "
                f"got {n}."
            )
        return [{"coordinate": str(i)} for i in rng.choice(among, n, replace=False).tolist()]


def pixels_of(cell: str, shape: tuple[int, ...]) -> Floats:
    """The image that a cell holds, from 0 to 255."""
    out: Floats = np.frombuffer(base64.b64decode(cell), np.uint8).reshape(shape).astype(np.float64)
    return out
