"""The smallest ball that holds some vectors: no point is nearer than its radius to all of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from epsgauge.stats.arrays import Floats

# Steps of the search for the centre. Each gives a lower bound, so that any number is right.
SEARCH = 500


def radius(vectors: Sequence[NDArray[np.floating]]) -> float:
    """A lower bound for the radius of the smallest ball around vectors, close to it.

    For weights w of sum 1, the squared radius is at least Σ w |x|² − |Σ w x|² (Yildirim 2008, equation 2); Badoiu and
    Clarkson's steps to the farthest vector find good weights.
    """
    if not all(np.isfinite(vector).all() for vector in vectors):
        return float("inf")
    n = len(vectors)
    products: Floats = np.zeros((n, n))
    for i, x in enumerate(vectors):
        wide = np.asarray(x, dtype=np.float64)
        products[i, i:] = products[i:, i] = [float(wide @ y) for y in vectors[i:]]
    products += products[0, 0] - products[0] - products[:, :1]  # of differences from the first
    squares, weights, best = np.diag(products), np.full(n, 1 / n), 0.0
    for step in range(1, SEARCH):
        inside = products @ weights
        best = max(best, float(squares @ weights - weights @ inside))
        farthest = int(np.argmax(squares - 2 * inside))
        weights *= 1 - 1 / (step + 1)
        weights[farthest] += 1 / (step + 1)
    return float(np.sqrt(best))
