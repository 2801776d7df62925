"""Shapes: how the share of right guesses may grow from the middle of the scores outwards.

A score's place is its distance from the middle of all scores, in units of their spread; those above the middle are
guessed 1, those below it 0. Places are cut into classes of guesses, and a shape gives each class the chance that its
guesses are right. None of it looks at a bit.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from epsgauge.stats import special
from epsgauge.stats.arrays import Floats, Ints

# Where classes begin, as distances from the middle; the last has no end. They are narrow near the middle, where the
# wrong guesses of a strong attack are. Scores in two heaps that no noise joins are all 0.67 from it, in one class.
EDGES: Floats = np.concatenate([np.arange(0.0, 0.55, 0.1), np.arange(0.9, 3.0, 0.2), np.arange(3.1, 4.2, 0.4)])
CENTRES: Floats = np.append(0.5 * (EDGES[:-1] + EDGES[1:]), EDGES[-1] + 0.2)
# Pairs of normal distributions so far apart, the further one of which shows in such a share of the models with b = 1.
MEANS = np.array([0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0])
SHARES = np.array([1.0, 0.5, 0.2, 0.1, 0.05])
PLAIN = 3.0  # a pair whose leak all models show is so much likelier beforehand than one that some show
# Of one side alone: log-odds that are lines of these slopes, which leave 0 at these distances, for each share; and
# steps of these heights at these edges.
SLOPES = np.array([0.5, 1.0, 1.5, 2.0, 3.0])
STARTS = np.array([-1.0, -0.25, 0.5, 1.25, 2.0])
HEIGHTS = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.5, 6.5, 9.0, 13.0])
STEPS = np.array([0.0, 0.5, 0.9, 1.3])
LOWEST, HIGHEST = -3.0, 16.0
QUARTILES = 1.349  # from the first to the third of a normal distribution, in standard deviations


def places(scores: Floats, like: Floats | None = None) -> Floats:
    """Where each score is, in units of the spread of all scores, or of those that it is `like`.

    The middle lies between the quartiles. Where these are equal, or not finite, ranks take the place of scores.
    """
    whole = scores if like is None else like
    with np.errstate(invalid="ignore", over="ignore"):
        first, third = np.quantile(whole, (0.25, 0.75)) if len(whole) else (0.0, 0.0)
        spread = (third - first) / QUARTILES
        if 0 < spread < np.inf:
            return (scores - 0.5 * (first + third)) / spread
    inner = np.sort(whole)
    rank = 0.5 * (np.searchsorted(inner, scores, "left") + np.searchsorted(inner, scores, "right"))
    out: Floats = special.ndtri(np.clip(rank / max(len(whole), 1), 1e-9, 1 - 1e-9)).round(12)
    return out


def classes(place: Floats) -> Ints:
    """The class of each place: guesses of 1 from the middle outwards, then guesses of 0."""
    out: Ints = np.searchsorted(EDGES, np.abs(place), side="right") - 1 + len(EDGES) * (place < 0)
    return out


@cache
def of_one_side() -> Floats:
    """How likely the guesses of each class of one side are right, one row for each shape."""
    lines = SLOPES[:, None, None] * (CENTRES - STARTS[:, None])
    bent = _shared(SHARES[:, None, None, None], lines).reshape(-1, len(EDGES))
    steps = (HEIGHTS[:, None, None] * (STEPS[:, None] < CENTRES)).reshape(-1, len(EDGES))
    return _chances(np.concatenate([bent, steps]))


@cache
def of_both_sides() -> Floats:
    """The same for pairs of normal distributions, whose sides belong together; also with both sides changed over."""
    rows = []
    for mean in MEANS:
        for share in SHARES:
            first, third = _quartiles(mean, share)
            far = (third - first) / QUARTILES * CENTRES
            middle = 0.5 * (first + third)
            ones = _shared(share, mean * (middle + far - 0.5 * mean))
            zeros = -_shared(share, mean * (middle - far - 0.5 * mean))
            rows += [np.concatenate([ones, zeros]), np.concatenate([zeros, ones])]
    return _chances(np.array(rows))


@cache
def beforehand() -> Floats:
    """How likely each of these pairs is, before anything is known."""
    weight = np.tile(np.repeat(np.where(SHARES == 1.0, PLAIN, 1.0), 2), len(MEANS))
    out: Floats = weight / weight.sum()
    return out


def _shared(share: Floats | float, log_odds: Floats) -> Floats:
    """The log-odds where such a share of the models has these, and the others tell nothing."""
    with np.errstate(divide="ignore"):
        out: Floats = np.logaddexp(np.log1p(-np.asarray(share)), np.log(share) + log_odds)
    return out


def _quartiles(mean: float, share: float) -> tuple[float, float]:
    """Of all scores."""
    x = np.linspace(-6.0, mean + 6.0, 2001)
    below = (1.0 - share / 2) * special.ndtr(x) + share / 2 * special.ndtr(x - mean)
    first, third = np.interp((0.25, 0.75), below, x)
    return float(first), float(third)


def _chances(log_odds: Floats) -> Floats:
    out: Floats = special.expit(np.clip(log_odds, LOWEST, HIGHEST))
    return out
