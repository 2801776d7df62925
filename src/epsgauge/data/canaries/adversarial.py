"""An adversarial input: a record of one label, moved just so far that a linear classifier gives it the other.

The step along the gradient of a classifier is that of Goodfellow et al. 2015 (arXiv:1412.6572). The classifier is least
squares on the data, as a canary is made before any model is trained.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from epsgauge.data.canaries.directions import MOST_FEATURES
from epsgauge.data.canaries.label import TwoLabels
from epsgauge.data.canaries.view import Record, View

RIDGE = 1e-3  # of the mean variance of a feature
BEYOND = 0.1  # how far beyond the boundary, as a share of the way to it


class Adversarial(TwoLabels):
    name = "adversarial"
    meaning = "an ordinary record moved just across the boundary of a linear classifier, with one label or the other"
    tried = False

    def place(self, view: View) -> Record:
        rare, frequent = view.labels
        own, other = view.flat[view.y == frequent], view.flat[view.y == rare]
        x, side = np.concatenate([own, other]), np.repeat([-1.0, 1.0], [len(own), len(other)])
        centre, middle = x.mean(axis=0), side.mean()
        along = _classifier(x - centre, side - middle)
        values = (own - centre) @ along + middle
        start = int(np.argmin(np.abs(values - np.median(values))))
        move = -(1 + BEYOND) * values[start] / float(along @ along or 1.0)
        return view.at(own[start] + move * along, None)


def _classifier(x: NDArray[np.float64], side: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of least squares; of very many features each by itself."""
    towards, spread = x.T @ side / len(x), (x**2).mean(axis=0)
    ridge = RIDGE * (float(spread.mean()) or 1.0)
    if len(spread) > MOST_FEATURES:
        return np.asarray(towards / (spread + ridge))
    return np.asarray(np.linalg.solve(x.T @ x / len(x) + ridge * np.eye(len(spread)), towards))
