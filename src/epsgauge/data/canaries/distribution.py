"""A record unlike any that the data have, in features that each of them could have: out of distribution."""

from __future__ import annotations

import numpy as np

from epsgauge.data.canaries.label import TwoLabels
from epsgauge.data.canaries.view import Record, View

SEED = 0


class OutOfDistribution(TwoLabels):
    """Each feature is that of another record, drawn by itself, so that nothing holds it together."""

    name = "out-of-distribution"
    meaning = "a record whose features come from different records each, with one label or another"
    tried = False

    def place(self, view: View) -> Record:
        n, width = view.flat.shape
        rows = np.random.default_rng(SEED).integers(0, n, width)
        return view.at(view.flat[rows, np.arange(width)], None)
