"""The paper's percentile attack: the rank of a point's loss among the model's own reference losses.

The paper ("Choice of attack") takes a threshold for each model, "an α-percentile of the empirical distribution of the
losses". It leaves open of which points, which quantile, and what happens at equality. Here, with r reference points
that the model was not trained on:

    guess 1 iff the loss of z1 is strictly below the k-th smallest reference loss, k = ⌊α (r + 1) / 100⌋.

A non-member that is exchangeable with the reference points has each of the r + 1 ranks equally often. So the FPR is
exactly k / (r + 1) where losses have no ties, and never above it where they have, as equality speaks for b = 0. An α
below 100 / (r + 1) has k = 0 and would never guess 1: it is an error. As a score this is

    score = 100 · #{reference > loss of z1} / (r + 1),   guess 1 iff score ≥ 100 − α,

where α stands for 100 k / (r + 1). (Of a large reference set order statistics are kept, and the FPR holds up to the
rounding of their ranks.)

An adversary who sees z0 only reads the same comparison the other way, as a low loss of z0 says b = 0:

    guess 0 iff the loss of z0 is strictly below the k-th smallest reference loss,

so the score is 100 · #{reference ≤ loss of z0} / (r + 1), and the guess is 1 iff it is at least 100 k / (r + 1).
"""

from __future__ import annotations

import math

import numpy as np

from epsgauge.attacks.attack import Attack
from epsgauge.errors import InvalidInput
from epsgauge.games.signals import SKETCH_SIZE, Sees, Signals
from epsgauge.stats import checks
from epsgauge.stats.arrays import Floats, Ints

# α (r + 1) / 100 this close below a whole number is that number: α was rounded.
ROUNDED = 1e-9


class Percentile(Attack):
    name = "percentile"
    meaning = "the rank of the point's loss among the model's own losses on reference points"
    needs = ("loss", "reference")
    axis = "score: rank of the loss, in %"
    has_percentiles = True

    def score(self, signals: Signals) -> Floats:
        loss, reference = signals["loss"], signals["reference"]
        size = _size(reference.shape[1])
        if signals.sees == "z0":
            return _score(_at_most(reference, loss[..., 0]), size)
        return _score(size - _at_most(reference, loss[..., 1]), size)

    def candidates(self, signals: Signals) -> Floats:
        return candidates(signals["reference"].shape[1], signals.sees)

    def sees(self, signals: Signals) -> str:
        point = "z0 only" if signals.sees == "z0" else "z1"
        return f"black box: the loss of {point} and {signals['reference'].shape[1]} reference losses"

    def percentile_of(self, threshold: float, signals: Signals) -> float:
        return percentile_of(threshold, signals.sees)

    def threshold_at(self, percentile: float, signals: Signals) -> float:
        return threshold(percentile, signals["reference"].shape[1], signals.sees)


def candidates(reference_size: int, sees: Sees = "pair") -> Floats:
    """The thresholds of the whole percentiles 1 to 99 that the reference set allows, ascending, each once.

    >>> candidates(9)
    array([10., 20., 30., 40., 50., 60., 70., 80., 90.])
    """
    size = _size(reference_size)
    ranks = {_rank(percentile, size) for percentile in range(1, 100)} - {0}
    return np.array(sorted(_threshold(k, size, sees) for k in ranks))


def threshold(percentile: float, reference_size: int, sees: Sees = "pair") -> float:
    """The threshold on the score that is the paper's percentile α.

    >>> threshold(5, 199)
    95.0
    """
    size = _size(reference_size)
    number = checks.one("percentile", checks.numbers("percentile", percentile))
    checks.within("percentile", number, "in (0, 100)", np.asarray(0 < number < 100))
    k = _rank(number, size)
    if k == 0:
        finest = math.ceil(1e6 / (size + 1)) / 1e4  # rounded up, so that what is printed is allowed
        raise InvalidInput(
            f"percentile must be at least 100/(reference_size + 1) = {finest:g} with {size} reference points, but got "
            f"{number:g}. Take a larger percentile, or a run with a larger reference_size, up to {SKETCH_SIZE}."
        )
    return _threshold(k, size, sees)


def percentile_of(threshold: float, sees: Sees = "pair") -> float:
    """The percentile that a threshold stands for."""
    return threshold if sees == "z0" else 100.0 - threshold


def _threshold(k: int, size: int, sees: Sees) -> float:
    return float(_score(k if sees == "z0" else size + 1 - k, size))


def _score(count: Ints | int, size: int) -> Floats:
    """One expression for scores and thresholds, so that equal counts give the same float."""
    return np.asarray(100.0 * count / (size + 1))


def _rank(percentile: float, size: int) -> int:
    """k, from 0 to the size."""
    return min(math.floor(percentile * (size + 1) / 100 + ROUNDED), size)


def _at_most(reference: Floats, losses: Floats) -> Ints:
    """How many of a model's reference losses, ascending, are at most each of its losses."""
    counts = [np.searchsorted(own, of, side="right") for own, of in zip(reference, losses, strict=True)]
    return np.array(counts, dtype=np.int64).reshape(losses.shape)


def _size(reference_size: int) -> int:
    if reference_size < 1:
        raise InvalidInput(
            f"the percentile attack needs reference points, but reference_size is {reference_size}. Use the attack "
            "loss, or a run with reference points."
        )
    return int(reference_size)
