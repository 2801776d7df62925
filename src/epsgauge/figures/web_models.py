"""Draws for the web how models add up: the narrowing interval, and dependence within a model."""

from __future__ import annotations

from epsgauge.figures.dependence import Dependence, Errors
from epsgauge.figures.labels import LINE, WIDTH, Flag, flags_height, margin, placed
from epsgauge.figures.narrowing import MOST, Narrowing
from epsgauge.figures.scales import Scale, tick_names, ticks
from epsgauge.figures.svg import Entry, Picture
from epsgauge.figures.words import eps_axis
from epsgauge.numbers import grouped, number, percent, span

RIGHT = WIDTH - 16.0


def narrowing(shown: Narrowing, *, prefix: str = "") -> str:
    """Median and interval of ε after each number of judged models."""
    n = int(shown.n[-1])
    now = span(float(shown.low[-1]), float(shown.high[-1]))
    words = f"After {n} judged models the {percent(shown.level)} interval is {now}. {half_text(shown)}"
    picture = Picture("narrowing", 0, "How the interval for ε narrowed", words, prefix)
    last = max(n, 2) if shown.half is None else max(shown.half, 2)
    values = ticks(0.0, shown.ceiling, 5)
    names = tick_names(values)
    x = Scale(1.0, float(last), margin(names), RIGHT, True)
    flags = [Flag(x(float(n)), f"{grouped(n)} models: {now}", "strong text-blue")]
    if shown.half is not None:
        flags.append(Flag(x(float(shown.half)), f"half the width: {grouped(shown.half)}", "text-muted"))
    places = placed(flags, 4, WIDTH - 4)
    top = flags_height(places) + 8
    y = Scale(0.0, shown.ceiling, top + 200, top)
    picture.y_axis(y, x.start, values, names, to=x.end)
    clip = picture.clip(x.start, y.end, x.length, y.length)
    xs = x.all(shown.n)
    picture.band(xs, y.all(shown.low), y.all(shown.high), "fill-blue faint", clip=clip)
    picture.path(xs, y.all(shown.median), "line-blue curve", clip=clip)
    if shown.claimed is not None:
        _claim(picture, shown.claimed, x, y)
    picture.dot(xs[-1], y(float(shown.median[-1])), "fill-blue", 5, words)
    picture.line(xs[-1], y(float(shown.low[-1])), xs[-1], y(float(shown.high[-1])), "line-blue curve")
    if shown.half is not None and shown.half_ends is not None:
        place = x(float(shown.half))
        low, high = shown.half_ends
        picture.line(xs[-1], y(float(shown.low[-1])), place, y(low), "line-muted thin dash")
        picture.line(xs[-1], y(float(shown.high[-1])), place, y(high), "line-muted thin dash")
        picture.line(place, y(low), place, y(high), "line-muted thick")
    picture.flags(places)
    marks = [v for k in range(9) for v in (10**k,) if v <= last]
    if len(marks) < 3:
        marks = [v for k in range(3) for v in (10**k, 2 * 10**k, 5 * 10**k) if v <= last]
    picture.x_axis(x, y.start, [float(m) for m in marks], [grouped(m) for m in marks], "judged models (logarithmic)")
    picture.y_label(y, eps_axis(shown.delta))
    entries = [Entry("box", "fill-blue pale", f"median and {percent(shown.level)} interval")]
    picture.height = picture.key(entries, 20, RIGHT, y.start + 3.4 * LINE)
    return picture.done()


def half_text(shown: Narrowing) -> str:
    """How many models would halve the width, as a sentence."""
    if shown.half is None:
        return f"With the same rates even {MOST:g} times as many would not halve its width."
    more = shown.half - int(shown.n[-1])
    many = f"{grouped(shown.half)} judged models, {grouped(more)} more"
    return f"Half that width needs about {many}, if the rates stay as they are."


def dependence(shown: Dependence, *, prefix: str = "") -> str:
    """Errors per model beside what independent guesses would give, and both intervals."""
    words = " ".join(
        f"{e.kind}: the counts vary {e.variance_ratio:.2g} times as much as independent ones." for e in shown.errors
    )
    if shown.design_effect is not None:
        words += f" Design effects {shown.design_effect[0]:.2g} (FNR) and {shown.design_effect[1]:.2g} (FPR)."
    picture = Picture("dependence", 0, f"Errors per model, {shown.pairs_per_model} pairs each", words, prefix)
    y = 0.0
    for place, errors in enumerate(shown.errors):
        effect = None if shown.design_effect is None else shown.design_effect[place]
        y = _errors(picture, errors, effect, y)
    y = picture.key(
        [Entry("box", "fill-sky", "models counted"), Entry("line", "line-ink curve", "expected if independent")],
        20,
        RIGHT,
        y + 0.4 * LINE,
    )
    picture.height = _intervals(picture, shown, y)
    return picture.done()


def _errors(picture: Picture, shown: Errors, effect: float | None, top: float) -> float:
    top += LINE
    what = {"FN": "missed (b = 1)", "FP": "false alarms (b = 0)"}[shown.kind]
    said = f"{what}: " + (
        f"design effect {effect:.2g}" if effect is not None else f"variance × {shown.variance_ratio:.2g}"
    )
    picture.text(52, top - 2, said, "strong")
    most = max(float(shown.models.max()), float(shown.expected.max()), 1.0)
    values = [v for v in ticks(0, most, 3) if v == int(v)]
    names = [grouped(v) for v in values]
    x = Scale(float(shown.edges[0]) - 0.5, float(shown.edges[-1]) - 0.5, margin(names), RIGHT)
    y = Scale(0.0, 1.08 * most, top + 118, top + 8)
    picture.y_axis(y, x.start, values, names, to=x.end)
    for i, n in enumerate(shown.models):
        a, b = int(shown.edges[i]), int(shown.edges[i + 1]) - 1
        left, right = x(a - 0.5), x(b + 0.5)
        many = f"{a}" if a == b else f"{a}–{b}"
        tip = f"{many} errors: {n} models, {shown.expected[i]:.3g} expected"
        picture.rect(left + 1, y(float(n)), right - left - 2, y.start - y(float(n)), "fill-sky", tip)
    for i, value in enumerate(shown.expected):
        picture.line(
            x(shown.edges[i] - 0.5) + 1,
            y(value),
            x(shown.edges[i + 1] - 0.5) - 1,
            y(value),
            "line-ink curve",
            f"{value:.3g} expected",
        )
    places = [v for v in ticks(float(shown.edges[0]), float(shown.edges[-1]) - 1, 8) if v == int(v)]
    picture.x_axis(x, y.start, places, [grouped(v) for v in places], "errors of a model")
    picture.y_label(y, "models")
    return y.start + 2.8 * LINE


def _intervals(picture: Picture, shown: Dependence, y: float) -> float:
    end = 1.06 * max(shown.plain[1], 0.0 if shown.clustered is None else shown.clustered[1])
    x = Scale(0.0, end or 1.0, 14, RIGHT)
    y += 0.4 * LINE
    rows = [("as if independent", shown.plain, "fill-blue half")]
    if shown.clustered is not None:
        rows.append(("allowing for dependence", shown.clustered, "fill-blue"))
    for text, (low, high), look in rows:
        y += LINE
        picture.words(14, y, [(text, "strong"), (span(low, high), "")])
        picture.rect(x(low), y + 7, max(x(high) - x(low), 3), 10, look, f"{text}: {span(low, high)}")
        y += 26
    picture.value_axis(x, y, f"{eps_axis(shown.delta)}, {percent(shown.level)} intervals")
    return y + 2.6 * LINE


def _claim(picture: Picture, claimed: float, x: Scale, y: Scale) -> None:
    if y.holds(claimed):
        picture.line(x.start, y(claimed), x.end, y(claimed), "claim")
        picture.text(x.start + 6, y(claimed) - 6, f"claimed ε = {number(claimed)}", "halo strong")
    else:
        picture.text(x.start + 6, y.end + LINE - 4, f"↑ claimed ε = {number(claimed)}", "halo strong")
