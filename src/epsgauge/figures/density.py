"""The posterior: its density with the point mass at 0, its distribution function, its interval and a claimed value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from epsgauge.figures.chart import Also, Chart
from epsgauge.figures.labels import LINE, RIGHT, WIDTH, Flag, flags_height, margin, placed
from epsgauge.figures.marks import SHARES, claim_text, probabilities, stems_to
from epsgauge.figures.scales import Scale
from epsgauge.figures.subject import POINTS, Bar, Subject, claim_of, single
from epsgauge.figures.svg import Entry, Picture
from epsgauge.figures.words import Words, only_an_estimate
from epsgauge.methods.intervals import intervals_of
from epsgauge.methods.table import BASELINE, METHODS, POSTERIOR
from epsgauge.numbers import chance, likely, number, percent, span
from epsgauge.stats.arrays import Floats
from epsgauge.stats.law import Law
from epsgauge.stats.posterior import Posterior

# Beyond this quantile the curve is flat on the page.
TAIL = 5e-3
# A claimed value further away than so many widths of the posterior is not on the axis: it would flatten the curve.
FAR = 3.0
# A point mass below this is not worth a mark.
VISIBLE_MASS = 1e-4


@dataclass(frozen=True)
class Density:
    """Density of the continuous part along `x`; it integrates to 1 − mass_at_zero, less what lies outside `x`."""

    quantity: str
    symbol: str
    given: str  # what is fixed: " at δ = 1e-05"
    x: Floats
    pdf: Floats
    cdf: Floats
    prior: Floats | None  # density without any data
    prior_cdf: Floats | None
    mass_at_zero: float
    median: float
    level: float
    bars: tuple[Bar, ...]
    claimed: float | None
    exceeds: float | None  # the probability of more than is claimed


def density(
    posterior: Posterior,
    *,
    level: float = 0.90,
    claimed: float | None = None,
    methods: Sequence[str] = (BASELINE.name, POSTERIOR.name),
    bars: Sequence[Bar] | None = None,
    points: int = POINTS,
) -> Density:
    """The picture of one posterior, of ε, δ or μ; `claimed` is the value that an accountant promises.

    `bars` are intervals that were computed elsewhere, instead of those of `methods`. Fewer `points` are quicker.
    """
    posterior, claimed = single(posterior), claim_of(claimed)
    if bars is None:
        every = intervals_of(posterior, level=level, methods=methods)
        bars = [
            Bar(name, METHODS[name].label, METHODS[name].promise, float(every[name].low), float(every[name].high))
            for name in methods
        ]
    tails = np.linspace(TAIL, 1 - TAIL, points // 2 | 1)
    tails[len(tails) // 2] = 0.5
    quantiles = np.asarray(posterior.quantile(tails))
    x = _grid(posterior.family.top, quantiles, claimed, bars, points)
    pdf, cdf, prior, prior_cdf = _curves(posterior, x)
    good = np.isfinite(pdf)
    return Density(
        quantity=posterior.quantity,
        symbol=posterior.family.symbol,
        given=posterior.family.given,
        x=x[good],
        pdf=pdf[good],
        cdf=cdf[good],
        prior=prior[good],
        prior_cdf=prior_cdf[good],
        mass_at_zero=float(posterior.mass_at_zero),
        median=float(quantiles[len(tails) // 2]),
        level=level,
        bars=tuple(bars),
        claimed=claimed,
        exceeds=None if claimed is None else 0.0 if math.isinf(claimed) else float(posterior.exceeds(claimed)),
    )


def density_of(subject: Subject) -> Density:
    """With the intervals of all methods."""
    return density(
        subject.posterior, level=subject.level, claimed=subject.claimed, bars=subject.bars, points=subject.points
    )


def _curves(posterior: Posterior, x: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """pdf and cdf of the posterior, and of the same prior without data, in one go."""
    (a, b), t = posterior.prior, posterior.tally
    fnr = (np.array([t.fn + a, a]), np.array([t.tp + b, b]))
    fpr = (np.array([t.fp + a, a]), np.array([t.tn + b, b]))
    family = posterior.family.flat(()).pick(np.zeros(2, np.int64))
    found = Law(family, fnr, fpr).at(np.tile(x, 2), np.repeat([0, 1], len(x)))
    n = len(x)
    return found.pdf[:n], found.cdf[:n], found.pdf[n:], found.cdf[n:]


def _grid(top: float, quantiles: Floats, claimed: float | None, bars: Sequence[Bar], points: int) -> Floats:
    """From 0, or from where the mass begins if that is far away, to the tail; dense where the mass is."""
    begin, end = float(quantiles[0]), float(quantiles[-1])
    if begin == end:  # practically all mass at 0
        end = min(1.0, top)
    spread = end - begin
    # a bar that ends a little beyond the tail is shown whole, one that goes on for long is not
    shown = [begin, end, *(bar.high for bar in bars if bar.high < end + 0.5 * spread)]
    if claimed is not None and begin - FAR * spread <= claimed <= end + FAR * spread:
        shown.append(claimed)
    left, right = min(shown), max(shown)
    if left < 2 * spread:  # near enough to show 0, which means no leak
        left = 0.0
    right += 0.04 * (right - left)
    even = np.linspace(left, right, points)
    grid = np.unique(np.concatenate([even, quantiles[(quantiles > left) & (quantiles < right)]]))
    return grid[grid < top]


# Drawing


def draw(shown: Density, *, prefix: str = "") -> str:
    """The posterior density with its mass at 0, the credible interval shaded, and the prior behind it."""
    s, left, right = shown.symbol, float(shown.x[0]), float(shown.x[-1])
    words = (
        f"Posterior of {s}{shown.given}: median {number(shown.median)}, probability of 0 {chance(shown.mass_at_zero)}."
    )
    picture = Picture("density", 0, f"Posterior density of {s}", words, prefix)
    x = Scale(left, right, 34, RIGHT)
    atom = left == 0 and shown.mass_at_zero >= VISIBLE_MASS
    peak = float(shown.pdf.max())
    flags = []
    if x.holds(shown.median):
        flags.append(Flag(x(shown.median), f"median {number(shown.median)}", "text-blue"))
    if atom:
        flags.append(Flag(x(0), f"Pr[{s} = 0] {chance(shown.mass_at_zero)}", "text-blue"))
    if shown.claimed is not None:
        stem = math.inf if x.holds(shown.claimed) else None
        flags.append(Flag(x(shown.claimed), claim_text(shown.claimed, x, s), "strong", stem))
    places = placed(flags, 4, WIDTH - 4)
    top = flags_height(places) + 8
    y = Scale(0.0, 1.04 * peak or 1.0, top + 190, top)
    clip = picture.clip(x.start, top, x.length, y.length)
    xs, ys = x.all(shown.x), y.all(shown.pdf)
    picture.band(xs, [y.start] * len(xs), ys, "fill-blue faint")
    entries = _credible(picture, shown, x, y)
    if shown.prior is not None:
        picture.path(xs, y.all(shown.prior), "line-muted thin dash", clip=clip)
        entries.append(Entry("line", "line-muted thin dash", "prior alone"))
    picture.path(xs, ys, "line-blue curve")
    if x.holds(shown.median) and shown.median > left:
        at = y(float(np.interp(shown.median, shown.x, shown.pdf)))
        picture.line(x(shown.median), y.start, x(shown.median), at, "line-blue curve", f"median {number(shown.median)}")
    if atom:
        height = max(y.length * shown.mass_at_zero, 1.0)
        picture.line(x(0), y.start, x(0), y.start - height, "line-blue thick")
        picture.dot(x(0), y.start - height, "fill-blue", 5, f"Pr[{s} = 0] {chance(shown.mass_at_zero)}")
    picture.flags(stems_to(places, y.start))
    picture.y_label(y, "density")
    picture.value_axis(x, y.start, f"{s}{shown.given}")
    picture.height = picture.key(entries, 20, RIGHT, y.start + 3.4 * LINE)
    return picture.done()


def _credible(picture: Picture, shown: Density, x: Scale, y: Scale) -> list[Entry]:
    """The interval of the posterior, shaded."""
    bar = next((bar for bar in shown.bars if bar.method == POSTERIOR.name), None)
    if bar is None:
        return []
    inside = shown.x[(shown.x > bar.low) & (shown.x < bar.high)]
    ends = [end for end in (bar.low, bar.high) if x.holds(end)]
    at = np.unique(np.concatenate([inside, ends]))
    picture.band(x.all(at), [y.start] * len(at), y.all(np.interp(at, shown.x, shown.pdf)), "fill-blue pale")
    name = "credible" if bar.promise == "credible" else "interval"
    return [Entry("box", "fill-blue pale", f"{percent(shown.level)} {name} {span(bar.low, bar.high)}")]


def draw_cdf(shown: Density, *, prefix: str = "") -> str:
    """The distribution function, with that of the prior, and the probability of more than is claimed."""
    s, left, right = shown.symbol, float(shown.x[0]), float(shown.x[-1])
    x = Scale(left, right, margin(SHARES), RIGHT)
    words = f"Posterior probability that {s} is at most each value; that of 0 is {shown.mass_at_zero:.3g}."
    flags = []
    if shown.claimed is not None and shown.exceeds is not None:
        stem = math.inf if x.holds(shown.claimed) else None
        more = f"Pr[{s} > {number(shown.claimed)}] {chance(shown.exceeds)}"
        flags.append(Flag(x(shown.claimed), more, "text-blue"))
        flags.append(Flag(x(shown.claimed), claim_text(shown.claimed, x, s), "strong", stem))
        words += f" {more}."
    picture = Picture("cdf", 0, f"Distribution function of {s}", words, prefix)
    places = placed(flags, 4, WIDTH - 4)
    top = flags_height(places) + 10
    y = Scale(0.0, 1.0, top + 220, top)
    probabilities(picture, y, x)
    xs = x.all(shown.x)
    entries = [Entry("line", "line-blue curve", "posterior")]
    if shown.prior_cdf is not None:
        picture.path(xs, y.all(shown.prior_cdf), "line-muted thin dash")
        entries.append(Entry("line", "line-muted thin dash", "prior alone"))
    start = [y.start] if left == 0 else []
    picture.path([x.start] * len(start) + xs, start + y.all(shown.cdf), "line-blue curve")
    if left == 0 and shown.mass_at_zero >= VISIBLE_MASS:
        picture.dot(x(0), y(shown.mass_at_zero), "fill-blue", 5, f"Pr[{s} = 0] {chance(shown.mass_at_zero)}")
    picture.flags(stems_to(places, y.start))
    picture.y_label(y, "probability of at most this")
    picture.value_axis(x, y.start, f"{s}{shown.given}")
    picture.height = picture.key(entries, 20, RIGHT, y.start + 3.4 * LINE)
    return picture.done()


# Words


def words(subject: Subject, shown: Density) -> Words:
    posterior, symbol, atom = subject.posterior, shown.symbol, shown.mass_at_zero
    mass = "" if atom < 5e-4 else f" The bar at 0 is the probability {likely(atom)} that {symbol} is exactly 0."
    above = ""
    if shown.exceeds is not None:
        above = f" The probability of more than the claim is {likely(shown.exceeds)}, as far as this attack shows."
    zero = ""
    if posterior.quantity == "eps" and posterior.family.assumption is None:
        zero = (
            " Even where nothing leaks, nearly all of it lies above 0 when δ is small, because ε = 0 needs error rates "
            "that add up to 1 within δ."
        )
    return Words(
        f"How probable each value of {symbol} is, given the guesses and the prior.{mass}{above} The dashed line is the "
        "prior alone: where the two curves differ, the data made the difference.",
        f"It describes the {symbol} that this attack reaches, not the largest that any attack could reach, and it is "
        f"no confidence statement.{zero}{only_an_estimate(subject.caveat)}",
    )


CHART = Chart(
    "density",
    "The posterior",
    "posterior",
    ("audit", "counts", "other quantity"),
    density_of,
    draw,
    words,
    Also("cdf", "Distribution function", draw_cdf, folded=True),
)
