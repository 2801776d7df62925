"""Draws the attack for the web: histograms of its scores, the ROC curve, and ε at every threshold."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from epsgauge.figures.histogram import Histogram
from epsgauge.figures.labels import LINE, WIDTH, Flag, flags_height, margin, placed, wide
from epsgauge.figures.percentiles import Percentiles
from epsgauge.figures.roc import Roc, bent
from epsgauge.figures.scales import Scale, decades, power_name, tick_names, ticks
from epsgauge.figures.svg import Entry, Picture
from epsgauge.figures.words import eps_axis
from epsgauge.numbers import grouped, number, percent, span

RIGHT = WIDTH - 16.0
SIDE = 340.0
FEW = 15  # so few candidates are dots


def histogram(shown: Histogram, *, prefix: str = "") -> str:
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
    places = placed([Flag(x(shown.threshold), _threshold(shown, x), "strong", math.inf)], 2, WIDTH - 2)
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
    end = bottom if x.holds(shown.threshold) else None
    picture.flags([replace(p, flag=replace(p.flag, stem=end)) for p in places])
    for y, b, part, whole, colour in (
        (top - 6, 1, t.tp, t.n_positive, "orange"),
        (bottom - 6, 0, t.fp, t.n_negative, "sky"),
    ):
        said = _share(int(part), int(whole))
        picture.words(x.start + 6, y, [(f"b = {b}:", f"strong text-{colour}"), (said, f"text-{colour}")], "halo")
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


def _threshold(shown: Histogram, x: Scale) -> str:
    text = f"guess 1 from {number(shown.threshold)} on"
    return f"{text} →" if shown.threshold > x.high else f"← {text}" if shown.threshold < x.low else text


def roc(shown: Roc, *, log: bool = False, prefix: str = "") -> str:
    """TPR against FPR, the point where the rule works, and what the claim forbids."""
    kind = "roc-log" if log else "roc"
    fpr, tpr = shown.point
    words = f"At the threshold the FPR is {fpr:.3g} and the TPR {tpr:.3g}."
    if shown.claim is not None:
        words += (
            f" True rates above the dashed line would break ε = {number(shown.claim.eps)}, δ = {shown.claim.delta:g}."
        )
        words += " The curve is measured: a point of it above the line alone is no proof."
    title = "ROC curve" + (", both axes logarithmic" if log else "")
    picture = Picture(kind, 0, title, words, prefix)
    low = shown.least if log else 0.0
    values = decades(low, 1.0, 5) if log else [0.0, 0.25, 0.5, 0.75, 1.0]
    names = [power_name(v) for v in values] if log else ["0", "0.25", "0.5", "0.75", "1"]
    left = margin(names)
    x, y = Scale(low, 1.0, left, left + SIDE, log), Scale(low, 1.0, 14 + SIDE, 14, log)
    picture.y_axis(y, x.start, values, names, to=x.end)
    for v in values:
        picture.line(x(v), y.start, x(v), y.end, "grid")
    clip = picture.clip(x.start, y.end, x.length, y.length)
    entries = [Entry("line", "line-blue curve", "the attack"), Entry("line", "line-muted thin dots", "chance")]
    if shown.claim is not None:
        c = shown.claim
        keep = c.fpr >= low
        cx, cy = x.all(c.fpr[keep]), y.all(c.tpr[keep])
        picture.path(
            [x.start, *cx, x.end, x.start], [cy[0], *cy, y.end, y.end], "fill-red faint", closed=True, clip=clip
        )
        picture.path([x.start, *cx], [cy[0], *cy], "claim", clip=clip)
        entries.append(Entry("box", "fill-red faint", f"more than ε = {number(c.eps)}, δ = {c.delta:g} allows"))
    diagonal = [low, 1.0]
    picture.path(x.all(diagonal), y.all(diagonal), "line-muted thin dots")
    curve = bent(shown.fpr, shown.tpr, low) if log else (shown.fpr, shown.tpr)
    picture.path(x.all(curve[0]), y.all(curve[1]), "line-blue curve", clip=clip)
    text = f"FPR {fpr:.3g}, TPR {tpr:.3g}"
    picture.dot(x(fpr), y(tpr), "fill-orange", 6, f"{text} at threshold {number(shown.threshold)}")
    entries.append(Entry("dot", "fill-orange", f"the rule: {text}"))
    picture.x_axis(x, y.start, values, names, "FPR: guessed 1 where b = 0")
    picture.y_label(y, "TPR: guessed 1 where b = 1")
    picture.height = picture.key(entries, 20, RIGHT, y.start + 3.4 * LINE)
    return picture.done()


def percentiles(shown: Percentiles, *, prefix: str = "") -> str:
    """ε at every candidate on the judged models, on those that chose, and which one they chose."""
    j, i = shown.judged, shown.chosen
    at = float(shown.x[i])
    who = shown.who if shown.who.startswith(("fixed", "moved")) else f"chosen by {shown.who}"
    words = (
        f"Marked: {shown.axis} {number(at)} ({who}). There the judged models give a median ε of "
        f"{number(float(j.median[i]))}, {percent(shown.level)} interval "
        f"{span(float(j.low[i]), float(j.high[i]))}."
    )
    picture = Picture("percentiles", 0, f"ε against the {shown.axis}", words, prefix)
    values = ticks(0.0, shown.ceiling, 5)
    names = tick_names(values)
    x = Scale(*_room(float(shown.x[0]), float(shown.x[-1])), margin(names), RIGHT)
    chosen = f"{shown.axis} {number(at)}"
    by = f"{chosen}, {who}"
    flags = [Flag(x(at), by, "strong", math.inf)]
    if wide(by, strong=True) > WIDTH - 8:
        flags = [Flag(x(at), who), Flag(x(at), chosen, "strong", math.inf)]
    places = placed(flags, 4, WIDTH - 4)
    top = flags_height(places) + 8
    y = Scale(0.0, shown.ceiling, top + 200, top)
    picture.y_axis(y, x.start, values, names, to=x.end)
    clip = picture.clip(x.start, y.end, x.length, y.length)
    xs = x.all(shown.x)
    picture.band(xs, y.all(j.low), y.all(j.high), "fill-blue faint", clip=clip)
    entries = [Entry("box", "fill-blue pale", f"judged models ({j.n_models}): median, {percent(shown.level)}")]
    if shown.fit is not None:
        picture.path(xs, y.all(shown.fit.median), "line-orange curve dash", clip=clip)
        entries.append(Entry("line", "line-orange curve dash", f"models that chose ({shown.fit.n_models}): median"))
    picture.path(xs, y.all(j.median), "line-blue curve", clip=clip)
    if len(xs) <= FEW:
        for a, b in zip(xs, y.all(j.median), strict=True):
            picture.dot(a, b, "fill-blue", 3)
    picture.line(x(at), y(float(j.low[i])), x(at), y(float(j.high[i])), "line-blue thick")
    picture.dot(x(at), y(float(j.median[i])), "fill-blue", 6, words)
    picture.flags([replace(p, flag=replace(p.flag, stem=y.start if p.flag.stem else None)) for p in places])
    picture.y_label(y, eps_axis(shown.delta))
    picture.value_axis(x, y.start, shown.axis, 6)
    picture.height = picture.key(entries, 20, RIGHT, y.start + 3.4 * LINE)
    return picture.done()


# Pieces


def _room(low: float, high: float) -> tuple[float, float]:
    """A little on both sides; something at all where both are the same."""
    width = high - low
    if not (width > 0 and math.isfinite(width)):
        return (low - 1.0, low + 1.0) if not width > 0 else (low, high)
    return low - 0.02 * width, high + 0.02 * width


def _share(part: int, whole: int) -> str:
    return "no pairs" if not whole else f"{grouped(part)} of {grouped(whole)} guessed 1 ({100 * part / whole:.3g} %)"
