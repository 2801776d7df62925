"""Directions that the data hardly use: what a model knows along them comes from the canary alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from epsgauge.data.canaries.view import View

# Features above so many are not decomposed: the direction is then that of the feature that varies least.
MOST_FEATURES = 1024
# A direction with less than this share of the largest spread is not used.
UNUSED = 1e-6


def unused(view: View) -> NDArray[np.float64]:
    """A unit vector: features that are the same in all points, else the direction in which points vary least."""
    same = np.ptp(view.flat, axis=0) == 0
    if same.any():
        return np.asarray(same / np.sqrt(same.sum()))
    return least_used(view)


def least_used(view: View) -> NDArray[np.float64]:
    """A unit vector: of the directions that points use at all, the one in which they vary least."""
    centred = view.flat - view.mean
    if centred.shape[1] > MOST_FEATURES:
        spread = np.abs(centred).max(axis=0)
        return np.asarray(np.eye(1, len(spread), int(np.argmin(np.where(spread > 0, spread, np.inf))))[0])
    values, vectors = np.linalg.eigh(centred.T @ centred)  # ascending
    used = np.flatnonzero(values > UNUSED * values[-1])
    return _turned(np.asarray(vectors[:, used[0] if len(used) else -1]))


def _turned(direction: NDArray[np.float64]) -> NDArray[np.float64]:
    """With a positive largest part, the first of those that differ by rounding only: LAPACK may give either sign."""
    out: NDArray[np.float64] = direction * np.sign(direction[np.argmax(np.abs(direction).round(6))])
    return out
