"""The smallest ball that holds some vectors: no point is nearer than its radius to all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from epsgauge.stats.arrays import Floats

# Steps of the search for the centre. Each gives a lower bound, so that any number is right.
SEARCH = 2000


def radius(vectors: Sequence[NDArray[np.floating]]) -> float:
    """A lower bound for the radius of the smallest ball around vectors, close to it.

    For weights w of sum 1, the squared radius is at least Σ w |x|² − |Σ w x|² (Yildirim 2008, equation 2); Badoiu and
    Clarkson's steps to the farthest vector find good weights.
    """
    first = np.asarray(vectors[0], dtype=np.float64)
    if not all(np.isfinite(vector).all() for vector in vectors):
        return float("inf")
    apart = [np.subtract(vector, first, dtype=np.float64) for vector in vectors]
    products: Floats = np.array([[float(a @ b) for b in apart] for a in apart])
    squares, weights, best = np.diag(products), np.full(len(apart), 1 / len(apart)), 0.0
    for step in range(1, SEARCH):
        inside = products @ weights
        best = max(best, float(squares @ weights - weights @ inside))
        farthest = int(np.argmax(squares - 2 * inside))
        weights *= 1 - 1 / (step + 1)
        weights[farthest] += 1 / (step + 1)
    return float(np.sqrt(best))
