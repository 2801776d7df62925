"""The joint posterior of (FNR, FPR): contours, the two regions of an interval for ε, and a rectangle of rates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.figures.chart import Chart
from epsgauge.figures.labels import LINE, RIGHT, WIDTH, margin
from epsgauge.figures.region import Region, region
from epsgauge.figures.scales import Scale, tick_names, ticks
from epsgauge.figures.subject import Subject
from epsgauge.figures.svg import Entry, Picture
from epsgauge.figures.words import Words, only_an_estimate
from epsgauge.methods.intervals import intervals_of
from epsgauge.methods.table import METHODS, POSTERIOR, QUICK
from epsgauge.numbers import number, percent
from epsgauge.stats.arrays import Floats
from epsgauge.stats.posterior import Posterior, Prior, estimate
from epsgauge.stats.tally import Tally

SIDE = 340.0
WHOLE = ((0.0, 1.0), (0.0, 1.0))
# An outline that is narrower than this share of the square is enlarged.
SMALL = 0.25
MASSES = (0.2, 0.5, 0.8, 0.95)
# methods that are a rectangle of limits of each rate
_LIMITS = {name: method.of_one_rate for name, method in QUICK.items() if method.of_one_rate is not None}


@dataclass(frozen=True)
class Between:
    """R(ε+, δ) without R(ε−, δ) for one method's interval [ε−, ε+], and the posterior mass in it."""

    method: str
    label: str
    inner: Region
    outer: Region
    mass: float


@dataclass(frozen=True)
class Rectangle:
    """Both rates' intervals, from which `method` derives its interval for ε, and the posterior mass in it."""

    method: str
    fnr: tuple[float, float]
    fpr: tuple[float, float]
    mass: float


@dataclass(frozen=True)
class Outline:
    """Around the most probable rates that together have this posterior mass: rows (FNR, FPR), closed."""

    mass: float
    points: Floats


@dataclass(frozen=True)
class Contours:
    """A joint posterior of both rates, with what its interval for ε, and another method's, mean there."""

    tally: Tally
    delta: float
    level: float
    outlines: tuple[Outline, ...]
    credible: Between
    other: Between | None
    rectangle: Rectangle | None


def contours(
    posterior: Posterior, *, level: float = 0.95, method: str | None = None, masses: tuple[float, ...] = MASSES
) -> Contours:
    """The joint posterior behind a posterior of ε; `method` adds the rectangle and the regions of that method."""
    if posterior.shape or posterior.quantity != "eps":
        raise InvalidInput(
            f"contours are drawn of one posterior of eps, but got one of {posterior.quantity}, {posterior.shape}."
        )
    if method is not None and method not in _LIMITS:
        raise InvalidInput(f"method must be one of {', '.join(_LIMITS)}, but got {method!r}.")
    return Contours(
        tally=posterior.tally,
        delta=float(posterior.family.parameter),
        level=level,
        outlines=_outlines(posterior.tally, posterior.prior, masses),
        credible=_between(posterior, POSTERIOR.name, level),
        other=None if method is None else _between(posterior, method, level),
        rectangle=None if method is None else rectangle(posterior, method=method, level=level),
    )


@lru_cache(maxsize=8)
def _outlines(tally: Tally, prior: Prior, masses: tuple[float, ...]) -> tuple[Outline, ...]:
    """Of the joint posterior, which δ and level leave as it is: their sliders draw the same outlines again."""
    points = estimate(tally, delta=0.0, prior=prior).joint.contours(masses)
    return tuple(Outline(mass, line) for mass, line in zip(masses, points, strict=True))


def rectangle(posterior: Posterior, *, method: str, level: float) -> Rectangle:
    """Each rate's two-sided interval at 1 − α/2 (union bound) for an interval of ε at 1 − α."""
    tally, each = posterior.tally, 1.0 - (1.0 - level) / 2
    fnr = _LIMITS[method](tally.fn, tally.n_positive, level=each)
    fpr = _LIMITS[method](tally.fp, tally.n_negative, level=each)
    sides = [(float(side.low), float(side.high)) for side in (fnr, fpr)]
    return Rectangle(method, sides[0], sides[1], posterior.joint.rectangle_mass(fnr=sides[0], fpr=sides[1]))


def _between(posterior: Posterior, method: str, level: float) -> Between:
    row, delta = intervals_of(posterior, level=level, methods=(method,))[method], float(posterior.family.parameter)
    # R(∞) is the whole square; ε = 700 draws it
    low, high = (min(float(end), 700.0) for end in (row.low, row.high))
    mass = float(posterior.cdf(high) - posterior.cdf(low))
    return Between(method, METHODS[method].label, region(eps=low, delta=delta), region(eps=high, delta=delta), mass)


# Drawing


def draw(shown: Contours, *, prefix: str = "") -> str:
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
    picture.height = picture.key(entries, 20, RIGHT, y.start + 3.4 * LINE)
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
    picture.rect(left - 2, top - 2, x(x1) - left + 4, y(y0) - top + 4, "line-red curve", "the enlarged part")
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


# Words


def words(subject: Subject, shown: Contours) -> Words:
    return Words(
        "An attack errs in two ways: it misses b = 1 (FNR) and it raises false alarms (FPR). (ε, δ)-DP allows only "
        "true rates inside the region R(ε). The dot is what was measured. The outlines are the joint posterior of both "
        f"true rates; at least {percent(subject.level)} of it lies between R(ε−) and R(ε+), whose ε are the ends of "
        "the interval.",
        "Rates deep inside a region mean that this attack does not refute its ε. They do not show whether another "
        f"attack reaches rates outside.{only_an_estimate(subject.caveat)}",
    )


CHART = Chart(
    "contours",
    "Both error rates",
    "region",
    ("audit", "counts"),
    lambda subject: contours(subject.posterior, level=subject.level),
    draw,
    words,
)
