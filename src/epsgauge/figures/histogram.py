"""Histograms of the judged scores with b = 0 and with b = 1 in the same bins, and the threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.tally import Tally

if TYPE_CHECKING:
    from epsgauge.auditing.audit import Audit

BINS = 36
# Scores beyond so many widths of the middle 90 % are counted and not drawn.
OUTLYING = 1.0
# Numbers beyond this are drawn as this, so that differences stay finite.
HUGE = 1e300


@dataclass(frozen=True)
class Histogram:
    """Counts in the bins [edge, next edge); the threshold is an edge, so that no bin has guesses of both kinds."""

    axis: str  # what a score is
    edges: Floats
    zeros: Ints  # counts with b = 0
    ones: Ints
    below: tuple[int, int]  # outliers left of the first edge, with b = 0 and b = 1
    above: tuple[int, int]
    threshold: float
    tally: Tally


def histogram(audit: Audit) -> Histogram:
    """Of all judged pairs."""
    judged = audit.judged
    score, bit = np.clip(judged.judged.score, -HUGE, HUGE), judged.judged.bit
    threshold = float(np.clip(judged.threshold, -HUGE, HUGE))
    edges = _edges(score, threshold)
    sides = [np.sort(score[bit == b]) for b in (0, 1)]
    cuts = [np.searchsorted(side, edges, side="left") for side in sides]
    zeros, ones = (np.diff(cut) for cut in cuts)
    below, above = (int(cuts[0][0]), int(cuts[1][0])), (len(sides[0]) - cuts[0][-1], len(sides[1]) - cuts[1][-1])
    axis = "score" if audit.attack is None else audit.attack.axis
    return Histogram(axis, edges, zeros, ones, below, (int(above[0]), int(above[1])), threshold, judged.tally)


def _edges(score: Floats, threshold: float) -> Floats:
    """Even bins over the scores, without far outliers; one edge is the threshold where it is near them."""
    least, most = float(score.min()), float(score.max())
    low, high = (float(q) for q in np.quantile(score, [0.05, 0.95]))
    if low == high:
        low, high = least, most
    if low == high:  # all scores are tied
        room = max(1.0, abs(low)) * 0.5
        low, high = low - room, high + room
    spread = high - low
    low, high = (
        (max(low - OUTLYING * spread, least), min(high + OUTLYING * spread, most)) if least < most else (low, high)
    )
    near = low - spread <= threshold <= high + spread
    if near:
        low, high = min(low, threshold), max(high, threshold)
    width = _width(score[(score >= low) & (score <= high)], (high - low) / BINS)
    start = threshold if near else low
    first, last = math.floor((low - start) / width), math.floor((high - start) / width) + 1
    edges: Floats = start + width * np.arange(first, last + 1, dtype=np.float64)
    return edges


def _width(score: Floats, width: float) -> float:
    """A whole number of steps where the scores lie on a lattice, so that all bins hold as many of its points."""
    gaps = np.diff(np.unique(score))
    if not gaps.size:
        return width
    step = float(gaps.min())
    if step < 0.05 * width or np.abs(gaps / step - np.round(gaps / step)).max() > 1e-3:
        return width
    return step * max(1, round(width / step))
