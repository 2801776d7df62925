"""How often guesses are expected to be right, by the shapes that rows with known bits make likely."""

from __future__ import annotations

import numpy as np

from epsgauge.bounds.classed import classed
from epsgauge.bounds.shapes import EDGES, classes, places
from epsgauge.stats.arrays import Floats, Ints


def chances_of_one(scores: Floats, bits: Ints) -> Floats:
    """How likely the bit of each row is 1, given its score: smooth where counts of few rows would be noise."""
    right, at = classed(scores[:0], bits[:0], scores, bits).chances, classes(places(scores))
    out: Floats = np.where(at < len(EDGES), right[at], 1.0 - right[at])
    return out
