"""Draws the privacy region with the joint posterior of both error rates for the web."""

from __future__ import annotations

import numpy as np

from epsgauge.figures.contours import Contours
from epsgauge.figures.labels import LINE, WIDTH, margin
from epsgauge.figures.scales import Scale, tick_names, ticks
from epsgauge.figures.svg import Entry, Picture
from epsgauge.numbers import number, percent
from epsgauge.stats.arrays import Floats

SIDE = 340.0
WHOLE = ((0.0, 1.0), (0.0, 1.0))
# An outline that is narrower than this share of the square is enlarged.
SMALL = 0.25


def contours(shown: Contours, *, prefix: str = "") -> str:
    """R(ε+) without R(ε−), the contours of the joint posterior in it, and the tally."""
    low, high = shown.credible.inner.eps, shown.credible.outer.eps
    t = shown.tally
    fnr, fpr = float(t.fnr), float(t.fpr)
    words = (
        f"The tally is at FNR {fnr:.3g}, FPR {fpr:.3g}. Rates between R(ε−) and R(ε+), from {number(low)} to "
        f"{number(high)}, have {percent(shown.credible.mass, 4)} of the posterior."
    )
    picture = Picture("contours", 0, "Privacy region and joint posterior of both error rates", words, prefix)
    (x0, x1), (y0, y1) = view = _view(shown)
    values = ticks(y0, y1, 5)
    left = margin(tick_names(values))
    side = SIDE if view == WHOLE else WIDTH - 104 - left
    x, y = Scale(x0, x1, left, left + side), Scale(y0, y1, 14 + side, 14)
    clip = picture.clip(x.start, y.end, side, side)
    outer, inner = shown.credible.outer.corners, shown.credible.inner.corners
    picture.outline([_ring(outer, x, y), _ring(inner, x, y)], "fill-region", clip=clip)
    for corners in (outer, inner):
        picture.path(*_ring(corners, x, y), "line-blue thin", closed=True, clip=clip)
    for outline in shown.outlines:
        picture.path(*_ring(outline.points, x, y), "line-ink thin", closed=True, clip=clip)
    picture.rect(x.start, y.end, side, side, "line-muted thin")
    if x.holds(fnr) and y.holds(fpr):
        picture.dot(x(fnr), y(fpr), "fill-orange", 5, f"FNR {fnr:.4g}, FPR {fpr:.4g}")
    picture.value_axis(x, y.start, "FNR: missed where b = 1", 5)
    for value, name in zip(values, tick_names(values), strict=True):
        picture.text(x.start - 6, y(value) + 6, name, "tick", anchor="end")
    picture.y_label(y, "FPR: false alarms where b = 0")
    if view != WHOLE:
        _thumbnail(picture, shown, view)
    masses = ", ".join(f"{100 * outline.mass:g}" for outline in shown.outlines)
    entries = [
        Entry("box", "fill-region", f"ε from {number(low)} to {number(high)} ({percent(shown.level)})"),
        Entry("line", "line-ink thin", f"around {masses} % of the posterior"),
        Entry("dot", "fill-orange", f"tally: FNR {fnr:.3g}, FPR {fpr:.3g}"),
    ]
    picture.height = picture.key(entries, 20, WIDTH - 16, y.start + 3.4 * LINE)
    return picture.done()


def _view(shown: Contours) -> tuple[tuple[float, float], tuple[float, float]]:
    """The whole square, or the neighbourhood of the outermost contour where that is small in it."""
    points = shown.outlines[-1].points
    low, high = points.min(axis=0), points.max(axis=0)
    if (high - low).min() > SMALL:
        return WHOLE
    pad = np.maximum(high - low, 0.25 * (high - low).max())
    ends = np.clip(np.stack([low - pad, high + pad], axis=1), 0.0, 1.0)
    return (float(ends[0, 0]), float(ends[0, 1])), (float(ends[1, 0]), float(ends[1, 1]))


def _thumbnail(picture: Picture, shown: Contours, view: tuple[tuple[float, float], tuple[float, float]]) -> None:
    """The whole square, small, with a frame around what the picture shows."""
    x, y = Scale(0.0, 1.0, WIDTH - 92, WIDTH - 6), Scale(0.0, 1.0, 100, 14)
    outer, inner = shown.credible.outer.corners, shown.credible.inner.corners
    picture.outline([_ring(outer, x, y), _ring(inner, x, y)], "fill-region")
    picture.rect(x.start, y.end, x.length, y.length, "line-muted thin", "all rates from 0 to 1")
    (x0, x1), (y0, y1) = view
    left, top = x(x0), y(y1)
    picture.rect(left - 2, top - 2, x(x1) - left + 4, y(y0) - top + 4, "line-red curve", "what is enlarged")
    picture.text((x.start + x.end) / 2, 100 + LINE, "all rates", "label", anchor="middle")


def _ring(points: Floats, x: Scale, y: Scale) -> tuple[list[float], list[float]]:
    """A convex ring in places; what is far outside the picture is cut off, the clip does the rest."""
    ring = points
    for axis, scale in ((0, x), (1, y)):
        width = scale.high - scale.low
        ring = _cut(ring, axis, scale.low - width, 1.0)
        ring = _cut(ring, axis, scale.high + width, -1.0)
    return x.all(ring[:, 0]), y.all(ring[:, 1])


def _cut(ring: Floats, axis: int, at: float, sign: float) -> Floats:
    """The part of a convex ring where sign · (coordinate − at) is 0 or more."""
    depth = sign * (ring[:, axis] - at)
    if (depth >= 0).all():
        return ring
    out = []
    for p, q, a, b in zip(ring, np.roll(ring, -1, axis=0), depth, np.roll(depth, -1), strict=True):
        if a >= 0:
            out.append(p)
        if (a >= 0) != (b >= 0):
            out.append(p + (q - p) * a / (a - b))
    return np.array(out).reshape(-1, 2)
