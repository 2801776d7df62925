"""Points for mechanisms with a known ε: every value is 0, and a canary has the value 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from epsgauge.stats import checks

Points = tuple[NDArray[np.int64], NDArray[np.float64]]


def zeros(size: int = 100) -> Points:
    """Points (id, 0.); the ids make them distinct, as points of a game must be."""
    n = int(checks.counts("size", size))
    return np.arange(n, dtype=np.int64), np.zeros(n)


def canaries(data: Points) -> tuple[Points, Points]:
    """The one pair of the game: z0 has the value 0 and z1 the value 1; their ids are in no data set."""
    del data  # the pair is the same for every data set
    return _point(-1, 0.0), _point(-2, 1.0)


def _point(identity: int, value: float) -> Points:
    return np.array([identity], dtype=np.int64), np.array([value])
