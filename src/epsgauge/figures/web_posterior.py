"""Draws what is known about ε for the web: the ruler, the density, distribution functions and bars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from epsgauge.figures.bars import Bars, MethodBar
from epsgauge.figures.cdfs import Cdfs
from epsgauge.figures.density import Density
from epsgauge.figures.labels import ARROW, LINE, WIDTH, Flag, Placed, flags_height, margin, placed
from epsgauge.figures.ruler import Ruler
from epsgauge.figures.scales import Scale
from epsgauge.figures.svg import Entry, Picture
from epsgauge.figures.words import PROMISE_COLOUR, eps_axis
from epsgauge.numbers import chance, number, percent, span

LEFT, RIGHT = 14.0, WIDTH - 16.0
ROW, BAR_ROW = 53.0, 43.0  # heights of a row of text and a bar
SHARES = ("0", "0.25", "0.5", "0.75", "1")  # names of probabilities along an axis
# A point mass below this is not worth a mark.
VISIBLE_MASS = 1e-4
# The first is the baseline: broad and pale, so that curves that coincide with it can be seen on it.
SERIES = (
    "line-grey broad pale",
    "line-blue curve dash",
    "line-red curve dots",
    "line-green curve",
    "line-orange curve dash",
    "line-purple curve dots",
    "line-sky curve",
    "line-ink thin dash",
)


def ruler(shown: Ruler, *, prefix: str = "") -> str:
    """A gauge from 0 to the lower bound, the credible interval below it, and the claim as a dashed line."""
    title = "The claimed ε, the lower bound and the credible interval"
    picture = Picture("ruler", 0, title, _ruler_text(shown), prefix)
    x = Scale(0.0, shown.end, LEFT, RIGHT)
    rows = (shown.bound is not None) + 1
    top = 0.0 if shown.claimed is None else LINE
    bottom = top + 8 + rows * ROW
    _claim_zone(picture, shown.claimed, x, top, bottom)
    y = top + LINE + 2
    if shown.bound is not None:
        _gauge(picture, shown, x, y)
        y += ROW
    name = "credible" if shown.promise == "credible" else "interval, an estimate"
    parts = [(f"ε {span(shown.low, shown.high)}", "strong"), (f"{percent(shown.level)} {name}", "text-muted")]
    picture.words(LEFT, y, parts, "halo")
    colour = PROMISE_COLOUR[shown.promise]
    picture.rect(x(shown.low), y + 8, max(x(shown.high) - x(shown.low), 2), 16, f"fill-{colour} half", parts[0][0])
    picture.rect(x(shown.median) - 2, y + 6, 4, 20, f"fill-{colour}", f"median {number(shown.median)}")
    picture.value_axis(x, bottom, eps_axis(shown.delta))
    picture.height = bottom + 2.6 * LINE
    return picture.done()


def _gauge(picture: Picture, shown: Ruler, x: Scale, y: float) -> None:
    """The lower bound: as much as was shown."""
    bound = shown.bound
    if bound is None:
        return
    colour = "red" if shown.kind == "violation" else PROMISE_COLOUR[bound.promise]
    said = f"{bound.promise} at {percent(bound.level)} ({bound.label})"
    look = "strong text-red" if shown.kind == "violation" else "strong"
    picture.words(LEFT, y, [(f"ε ≥ {number(bound.value)}", look), (said, "text-muted")], "halo")
    if shown.kind == "underpowered" and shown.largest is not None:
        tip = f"With every guess right this audit would show {number(shown.largest)}"
        picture.rect(x(0), y + 8, x(shown.largest) - x(0), 16, "line-muted thin dots", tip)
    picture.rect(x(0), y + 8, max(x(bound.value) - x(0), 2), 16, f"fill-{colour}", f"ε ≥ {number(bound.value)}")


def _claim_zone(picture: Picture, claimed: float | None, x: Scale, top: float, bottom: float) -> None:
    """The claim with its name above, and a tint over all that is more than it."""
    if claimed is None:
        return
    if x.holds(claimed):
        picture.rect(x(claimed), top, x.end - x(claimed), bottom - top, "fill-red faint", "more than is claimed")
    stem = bottom if x.holds(claimed) else None
    picture.flags(placed([Flag(x(claimed), _claimed(claimed, x), "strong", stem)], 2, WIDTH - 2))


def _ruler_text(shown: Ruler) -> str:
    parts = []
    if shown.claimed is not None:
        parts.append(f"Claimed: ε = {number(shown.claimed)} at δ = {shown.delta:g}.")
    if shown.bound is not None:
        b = shown.bound
        parts.append(f"Lower bound: {number(b.value)} ({b.label}, {b.promise}, one-sided level {percent(b.level)}).")
    parts.append(
        f"{percent(shown.level)} interval of the posterior ({shown.promise}): {span(shown.low, shown.high)}, median "
        f"{number(shown.median)}."
    )
    if shown.kind == "underpowered" and shown.largest is not None:
        parts.append(f"If every guess were right, the bound would be {number(shown.largest)} (dotted).")
    return " ".join(parts)


def density(shown: Density, *, prefix: str = "") -> str:
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
        flags.append(Flag(x(shown.claimed), _claimed(shown.claimed, x, s), "strong", stem))
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
    picture.flags(_stems_to(places, y.start))
    picture.y_label(y, "density")
    picture.value_axis(x, y.start, f"{s}{shown.given}")
    picture.height = picture.key(entries, 20, RIGHT, y.start + 3.4 * LINE)
    return picture.done()


def _credible(picture: Picture, shown: Density, x: Scale, y: Scale) -> list[Entry]:
    """The interval of the posterior, shaded."""
    bar = next((bar for bar in shown.bars if bar.method == "bayes"), None)
    if bar is None:
        return []
    inside = shown.x[(shown.x > bar.low) & (shown.x < bar.high)]
    ends = [end for end in (bar.low, bar.high) if x.holds(end)]
    at = np.unique(np.concatenate([inside, ends]))
    picture.band(x.all(at), [y.start] * len(at), y.all(np.interp(at, shown.x, shown.pdf)), "fill-blue pale")
    name = "credible" if bar.promise == "credible" else "interval"
    return [Entry("box", "fill-blue pale", f"{percent(shown.level)} {name} {span(bar.low, bar.high)}")]


def cdf(shown: Density, *, prefix: str = "") -> str:
    """The distribution function, with that of the prior, and the probability of more than is claimed."""
    s, left, right = shown.symbol, float(shown.x[0]), float(shown.x[-1])
    x = Scale(left, right, margin(SHARES), RIGHT)
    words = f"Posterior probability that {s} is at most each value; that of 0 is {shown.mass_at_zero:.3g}."
    flags = []
    if shown.claimed is not None and shown.exceeds is not None:
        stem = math.inf if x.holds(shown.claimed) else None
        more = f"Pr[{s} > {number(shown.claimed)}] {chance(shown.exceeds)}"
        flags.append(Flag(x(shown.claimed), more, "text-blue"))
        flags.append(Flag(x(shown.claimed), _claimed(shown.claimed, x, s), "strong", stem))
        words += f" {more}."
    picture = Picture("cdf", 0, f"Distribution function of {s}", words, prefix)
    places = placed(flags, 4, WIDTH - 4)
    top = flags_height(places) + 10
    y = Scale(0.0, 1.0, top + 220, top)
    _probabilities(picture, y, x)
    xs = x.all(shown.x)
    entries = [Entry("line", "line-blue curve", "posterior")]
    if shown.prior_cdf is not None:
        picture.path(xs, y.all(shown.prior_cdf), "line-muted thin dash")
        entries.append(Entry("line", "line-muted thin dash", "prior alone"))
    start = [y.start] if left == 0 else []
    picture.path([x.start] * len(start) + xs, start + y.all(shown.cdf), "line-blue curve")
    if left == 0 and shown.mass_at_zero >= VISIBLE_MASS:
        picture.dot(x(0), y(shown.mass_at_zero), "fill-blue", 5, f"Pr[{s} = 0] {chance(shown.mass_at_zero)}")
    picture.flags(_stems_to(places, y.start))
    picture.y_label(y, "probability of at most this")
    picture.value_axis(x, y.start, f"{s}{shown.given}")
    picture.height = picture.key(entries, 20, RIGHT, y.start + 3.4 * LINE)
    return picture.done()


def cdfs(shown: Cdfs, *, prefix: str = "") -> str:
    """Distribution functions of several runs, one stroke each; the first is broad and pale."""
    names = ", ".join(curve.label for curve in shown.curves)
    picture = Picture(
        "cdfs", 0, f"Distribution functions of {shown.symbol}", f"One curve for each of: {names}.", prefix
    )
    x, y = Scale(0.0, float(shown.x[-1]), margin(SHARES), RIGHT), Scale(0.0, 1.0, 232, 12)
    _probabilities(picture, y, x)
    entries = []
    for place, curve in enumerate(shown.curves):
        look = SERIES[place % len(SERIES)]
        picture.path([x.start, *x.all(shown.x)], [y.start, *y.all(curve.cdf)], look, tip=curve.label)
        entries.append(Entry("line", look, curve.label))
    picture.y_label(y, "probability of at most this")
    picture.value_axis(x, y.start, shown.symbol)
    picture.height = picture.key(entries, 20, RIGHT, y.start + 3.4 * LINE)
    return picture.done()


def bars(shown: Bars, *, prefix: str = "") -> str:
    """One bar a method, its interval and promise above it; an arrow where it goes on."""
    words = " ".join(f"{b.label}: {span(b.low, b.high)}, {b.promise}." for b in shown.bars)
    picture = Picture("bars", 0, f"{percent(shown.level)} intervals of every method", words, prefix)
    x = Scale(0.0, shown.end, LEFT, RIGHT)
    top = 0.0 if shown.claimed is None else LINE
    bottom = top + 6 + BAR_ROW * len(shown.bars)
    _claim_zone(picture, shown.claimed, x, top, bottom)
    for place, bar in enumerate(shown.bars):
        _method_bar(picture, bar, x, top + LINE + BAR_ROW * place)
    picture.value_axis(x, bottom, f"{eps_axis(shown.delta)}, {percent(shown.level)} intervals")
    picture.height = bottom + 2.6 * LINE
    return picture.done()


def _method_bar(picture: Picture, bar: MethodBar, x: Scale, y: float) -> None:
    """Text with its baseline at y, the bar below it."""
    colour = PROMISE_COLOUR[bar.promise]
    tip = f"{bar.label}: {bar.promise}. Assumes: {'; '.join(bar.assumptions)}." + (f" {bar.note}." if bar.note else "")
    said = (bar.promise, f"text-{'muted' if colour == 'grey' else colour}")
    picture.words(LEFT, y, [(bar.label, "strong"), (span(bar.low, bar.high), ""), said], "halo")
    start, end = x(bar.low), x(bar.high)
    on = bar.high > x.high
    if bar.low > x.high:
        start = end - 3 * ARROW
    look = f"fill-{colour}" if bar.promise != "estimate" else "fill-grey half"
    picture.rect(start, y + 7, max(end - start - (ARROW if on else 0), 3), 10, look, tip)
    if on:
        picture.arrow(end, y + 12, look)


# Pieces


def _claimed(claimed: float, x: Scale, symbol: str = "ε") -> str:
    text = f"claimed {symbol} = {number(claimed)}"
    return f"{text} →" if claimed > x.high else f"← {text}" if claimed < x.low else text


def _stems_to(places: Sequence[Placed], y: float) -> list[Placed]:
    """Stems that go down to the axis, which is at y."""
    return [replace(p, flag=replace(p.flag, stem=y)) if p.flag.stem is not None else p for p in places]


def _probabilities(picture: Picture, y: Scale, x: Scale) -> None:
    picture.y_axis(y, x.start, [0.0, 0.25, 0.5, 0.75, 1.0], SHARES, to=x.end)
