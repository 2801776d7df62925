"""Records far from all others: what preprocessing, statistics of a batch or a missing clip let through."""

from __future__ import annotations

import numpy as np

from epsgauge.data.canaries.canary import Canary, Pair
from epsgauge.data.canaries.view import View


class Outlier(Canary):
    name = "outlier"
    meaning = "the record farthest from the mean, ten times as far, against the mean itself"

    def made(self, view: View) -> Pair:
        away = view.flat - view.mean
        farthest = away[np.argmax((away**2).sum(axis=1))]
        return view.at(view.mean, view.labels[0]), view.at(view.mean + 10.0 * farthest, view.labels[0])


class Spike(Canary):
    name = "spike"
    meaning = "a mean record with one huge feature, against the mean itself"

    def made(self, view: View) -> Pair:
        huge = np.zeros_like(view.mean)
        huge[np.argmax(view.flat.std(axis=0))] = 100.0 * view.size
        return view.at(view.mean, view.labels[0]), view.at(view.mean + huge, view.labels[0])


class LargeNorm(Canary):
    name = "large-norm"
    meaning = "an ordinary record times a hundred, with a label that is not its own, against its negative"

    def made(self, view: View) -> Pair:
        rare, frequent = view.labels
        own = view.flat[0] if view.y is None else view.flat[view.y == frequent][0]
        return view.at(-100.0 * own, rare), view.at(100.0 * own, rare)
