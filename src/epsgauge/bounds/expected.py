"""How often guesses are expected to be right, by the shapes that rows with known bits make likely."""

from __future__ import annotations

import numpy as np

from epsgauge.bounds.shapes import EDGES, classes, places
from epsgauge.bounds.weighted import Prior, classed
from epsgauge.stats.arrays import Floats, Ints


def chances_of_one(scores: Floats, bits: Ints) -> Floats:
    """How likely the bit of each row is 1, given its score: smooth where counts of few rows would be noise."""
    of = classed(scores[:0], bits[:0], scores, bits)
    together, apart = np.exp(of.log_weights)
    right = together * _mean(of.together) + apart * np.concatenate([_mean(prior) for prior in of.each])
    at = classes(places(scores))
    out: Floats = np.where(at < len(EDGES), right[at], 1.0 - right[at])
    return out


def _mean(prior: Prior) -> Floats:
    """How likely a guess of each class is right."""
    weight = np.exp(prior.log_weight)
    out: Floats = weight @ prior.right / weight.sum()
    return out
