"""Histograms of the judged scores with b = 0 and with b = 1 in the same bins, and the threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epsgauge.figures.chart import Chart
from epsgauge.figures.labels import LINE, RIGHT, WIDTH, Flag, flags_height, margin, placed
from epsgauge.figures.marks import beyond, stems_to
from epsgauge.figures.scales import Scale, ticks
from epsgauge.figures.subject import Subject
from epsgauge.figures.svg import Picture
from epsgauge.figures.words import Words
from epsgauge.numbers import grouped, number
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.tally import Tally

if TYPE_CHECKING:
    from epsgauge.auditing.reading import Reading

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


def histogram(audit: Reading) -> Histogram:
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


# Drawing


def draw(shown: Histogram, *, prefix: str = "") -> str:
    """Scores with b = 1 above the axis and with b = 0 below it; to the right of the threshold the guess is 1."""
    t = shown.tally
    words = (
        f"At the threshold {number(shown.threshold)} the attack guesses 1 for {t.tp} of {t.n_positive} with b = 1 and "
        f"for {t.fp} of {t.n_negative} with b = 0."
    )
    picture = Picture("histogram", 0, "Scores with b = 1 and with b = 0", words, prefix)
    most = max(int(shown.ones.max(initial=0)), int(shown.zeros.max(initial=0)), 1)
    values = [v for v in ticks(0, most, 3) if v == int(v)]
    names = [grouped(v) for v in values]
    x = Scale(float(shown.edges[0]), float(shown.edges[-1]), margin(names), RIGHT)
    said = beyond(f"guess 1 at {number(shown.threshold)} or above", shown.threshold, x)
    stem = math.inf if x.holds(shown.threshold) else None
    places = placed([Flag(x(shown.threshold), said, "strong", stem)], 2, WIDTH - 2)
    top = flags_height(places) + LINE + 6
    up, down = Scale(0.0, float(most), top + 96, top), Scale(0.0, float(most), top + 96, top + 192)
    bottom = down.end + LINE + 4
    picture.y_axis(up, x.start, values, names, to=x.end)
    picture.y_axis(down, x.start, values[1:], names[1:], to=x.end)
    edges = x.all(shown.edges)
    for counts, scale, colour, b in ((shown.ones, up, "orange", 1), (shown.zeros, down, "sky", 0)):
        for i in np.flatnonzero(counts):
            y = scale(float(counts[i]))
            tip = f"b = {b}: {counts[i]} scores from {shown.edges[i]:.4g} to {shown.edges[i + 1]:.4g}"
            look = f"fill-{colour}" + ("" if shown.edges[i] >= shown.threshold else " half")
            width = edges[i + 1] - edges[i]
            picture.rect(edges[i], min(y, scale.start), width - min(0.8, 0.2 * width), abs(y - scale.start), look, tip)
    picture.line(x.start, up.start, x.end, up.start, "axis")
    picture.flags(stems_to(places, bottom))
    for y, b, part, whole, colour in (
        (top - 6, 1, t.tp, t.n_positive, "orange"),
        (bottom - 6, 0, t.fp, t.n_negative, "sky"),
    ):
        share = _share(int(part), int(whole))
        picture.words(x.start + 6, y, [(f"b = {b}:", f"strong text-{colour}"), (share, f"text-{colour}")], "halo")
    picture.y_label(Scale(0, 1, top, down.end), "pairs")
    picture.value_axis(x, bottom, shown.axis, 6)
    picture.height = bottom + 2.6 * LINE
    for count, text, at, anchor in (
        (sum(shown.below), "← {} lower", 8.0, "start"),
        (sum(shown.above), "{} higher →", WIDTH - 4, "end"),
    ):
        if count:
            picture.height = bottom + 3.6 * LINE
            picture.text(at, bottom + 5 + 3 * LINE, text.format(grouped(count)), "label", anchor=anchor)
    return picture.done()


def _share(part: int, whole: int) -> str:
    return "no pairs" if not whole else f"{grouped(part)} of {grouped(whole)} guessed 1 ({100 * part / whole:.3g} %)"


# Words


def words(subject: Subject, shown: Histogram) -> Words:
    part = "Where the two histograms differ, the attack can tell the bits apart."
    if not (shown.tally.n_positive > 0 and shown.tally.n_negative > 0):
        part = "One bit has no pairs, so there is nothing to compare."
    return Words(
        "The scores of all judged pairs, split by the true bit. At or above the threshold the attack guesses 1. "
        + part,
        "Histograms that overlap do not mean that nothing leaks: ε depends on ratios, often in a tail where a few "
        "scores make no visible bar.",
    )


CHART = Chart(
    "histogram",
    "Scores",
    "attack",
    ("audit",),
    lambda subject: histogram(subject.audit),
    draw,
    words,
    follows=("threshold",),
)
