"""Draws the pictures of an audit with matplotlib; `draw` has them under the same names as `web`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from epsgauge.figures import style
from epsgauge.figures.bars import Bars
from epsgauge.figures.canvas import halo, label, new_figure, styled
from epsgauge.figures.density import Density
from epsgauge.figures.dependence import Dependence
from epsgauge.figures.histogram import Histogram
from epsgauge.figures.narrowing import Narrowing
from epsgauge.figures.percentiles import Percentiles
from epsgauge.figures.roc import Roc, bent
from epsgauge.figures.ruler import Ruler
from epsgauge.figures.words import eps_axis
from epsgauge.numbers import chance, number, percent, span

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PROMISE = {"credible": style.BLUE, "guaranteed": style.GREEN, "estimate": style.GREY}
BAND: dict[str, Any] = {"color": style.BLUE, "alpha": 0.16, "linewidth": 0}


def ruler(shown: Ruler) -> Figure:
    """A gauge from 0 to the lower bound, the credible interval below it, and the claim as a dashed line."""
    with styled():
        figure = new_figure(style.WIDTH, 1.5)
        axes = figure.subplots()
        rows = []
        if shown.bound is not None:
            b = shown.bound
            colour = style.RED if shown.kind == "violation" else PROMISE[b.promise]
            said = f"ε ≥ {number(b.value)} {b.promise} at {percent(b.level)} ({b.label})"
            rows.append((0.0, b.value, colour, said))
        said = f"ε {span(shown.low, shown.high)} {percent(shown.level)} {shown.promise}"
        rows.append((shown.low, shown.high, PROMISE[shown.promise], said))
        for place, (low, high, colour, text) in enumerate(reversed(rows)):
            _bar(axes, low, high, place, colour, shown.end)
            label(axes, text, (0.0, place), (1, 4, "left", "bottom"), **halo())
        axes.plot([shown.median], [0], marker="|", color=style.BLACK, markersize=8)
        _claim(axes, shown.claimed, shown.end)
        axes.set(xlim=(0, shown.end), ylim=(-0.4, len(rows) - 0.1), yticks=[], xlabel=eps_axis(shown.delta))
        axes.spines["left"].set_visible(False)
        return figure


def cdf(shown: Density) -> Figure:
    """The distribution function, with that of the prior."""
    with styled():
        figure = new_figure(style.WIDTH, 2.4)
        axes = figure.subplots()
        s, right = shown.symbol, float(shown.x[-1])
        if shown.prior_cdf is not None:
            axes.plot(shown.x, shown.prior_cdf, color=style.GREY, linewidth=0.9, dashes=(4, 2), label="prior alone")
        x, y = np.append(shown.x[0], shown.x), np.append(0.0 if shown.x[0] == 0 else shown.cdf[0], shown.cdf)
        axes.plot(x, y, color=style.BLUE, label="posterior")
        axes.set(xlim=(float(shown.x[0]), right), ylim=(0, 1.02))
        axes.set(xlabel=f"{s}{shown.given}", ylabel=f"probability of at most this {s}")
        if shown.claimed is not None and shown.exceeds is not None:
            _claim(axes, shown.claimed, right)
            axes.set_title(f"Pr[{s} > {number(shown.claimed)}] {chance(shown.exceeds)}", loc="left", color=style.BLUE)
        axes.legend(loc="lower right")
        return figure


def bars(shown: Bars) -> Figure:
    """One bar a method, its interval and promise above it; an arrow where it goes on."""
    with styled():
        figure = new_figure(style.WIDTH, 0.75 + 0.36 * len(shown.bars))
        axes = figure.subplots()
        for place, bar in enumerate(reversed(shown.bars)):
            _bar(axes, bar.low, bar.high, place, PROMISE[bar.promise], shown.end)
            text = f"{bar.label} {span(bar.low, bar.high)} {bar.promise}"
            label(axes, text, (0.0, place), (1, 4, "left", "bottom"), **halo())
        _claim(axes, shown.claimed, shown.end)
        axes.set(xlim=(0, shown.end), ylim=(-0.4, len(shown.bars) - 0.1), yticks=[])
        axes.set_xlabel(f"{eps_axis(shown.delta)}, {percent(shown.level)} intervals")
        axes.spines["left"].set_visible(False)
        return figure


def histogram(shown: Histogram) -> Figure:
    """Scores with b = 1 above the axis and with b = 0 below it."""
    with styled():
        figure = new_figure(style.WIDTH, 2.7)
        axes = figure.subplots()
        left, width = shown.edges[:-1], np.diff(shown.edges)
        for counts, sign, colour in ((shown.ones, 1, style.ORANGE), (shown.zeros, -1, style.SKY)):
            strong = np.where(left >= shown.threshold, 1.0, 0.5)
            for part in (0.5, 1.0):
                some = strong == part
                axes.bar(left[some], sign * counts[some], width[some], align="edge", color=colour, alpha=part)
        axes.axhline(0, color=style.BLACK, linewidth=0.6)
        if shown.edges[0] <= shown.threshold <= shown.edges[-1]:
            axes.axvline(shown.threshold, color=style.BLACK, linewidth=1.0, dashes=(4, 2))
        t = shown.tally
        axes.set_title(
            f"b = 1 (up): {t.tp} of {t.n_positive} guessed 1\nb = 0 (down): {t.fp} of {t.n_negative} guessed 1",
            loc="left",
            fontsize=style.SMALL,
        )
        most = 1.05 * max(int(shown.ones.max(initial=0)), int(shown.zeros.max(initial=0)), 1)
        axes.set(xlim=(float(shown.edges[0]), float(shown.edges[-1])), ylim=(-most, most), xlabel=shown.axis)
        axes.set_ylabel("pairs")
        axes.yaxis.set_major_formatter(lambda value, _: f"{abs(value):g}")
        return figure


def roc(shown: Roc, *, log: bool = False) -> Figure:
    """TPR against FPR, the point where the rule works, and what the claim forbids."""
    with styled():
        figure = new_figure(style.WIDTH, 4.0)
        axes = figure.subplots()
        low = shown.least if log else 0.0
        if log:
            axes.set(xscale="log", yscale="log")
        if shown.claim is not None:
            c = shown.claim
            keep = c.fpr >= low
            text = f"more than ε = {number(c.eps)}, δ = {c.delta:g} allows"
            axes.fill_between(c.fpr[keep], c.tpr[keep], 1, color=style.RED, alpha=0.14, linewidth=0, label=text)
            axes.plot(c.fpr[keep], c.tpr[keep], color=style.BLACK, linewidth=0.9, dashes=(4, 2))
        axes.plot([low, 1], [low, 1], color=style.GREY, linewidth=0.8, dashes=(1.5, 1.5), label="chance")
        curve = bent(shown.fpr, shown.tpr, low) if log else (shown.fpr, shown.tpr)
        axes.plot(*curve, color=style.BLUE, label="the attack")
        fpr, tpr = shown.point
        look: dict[str, Any] = {"marker": "o", "color": style.ORANGE, "linestyle": "", "clip_on": False, "zorder": 5}
        axes.plot([max(fpr, low)], [max(tpr, low)], label=f"the rule: FPR {fpr:.3g}, TPR {tpr:.3g}", **look)
        axes.set(xlim=(low, 1), ylim=(low, 1), aspect="equal", xlabel="FPR", ylabel="TPR")
        figure.legend(loc="outside lower left")
        return figure


def percentiles(shown: Percentiles) -> Figure:
    """ε at every candidate on the judged models, on those that chose, and which one they chose."""
    with styled():
        figure = new_figure(style.WIDTH, 2.9)
        axes = figure.subplots()
        j, i = shown.judged, shown.chosen
        axes.fill_between(shown.x, j.low, j.high, **BAND)
        text = f"judged models ({j.n_models}), {percent(shown.level)}"
        axes.plot(shown.x, j.median, color=style.BLUE, label=text)
        if shown.fit is not None:
            text = f"models that chose ({shown.fit.n_models})"
            axes.plot(shown.x, shown.fit.median, color=style.ORANGE, dashes=(5, 2), label=text)
        axes.axvline(float(shown.x[i]), color=style.BLACK, linewidth=1.0, dashes=(4, 2))
        axes.plot([shown.x[i]], [j.median[i]], marker="o", color=style.BLUE)
        axes.set_title(f"{shown.axis} {number(float(shown.x[i]))}: {shown.who}", loc="left", fontsize=style.SMALL)
        axes.set(ylim=(0, shown.ceiling), xlabel=shown.axis, ylabel=eps_axis(shown.delta))
        figure.legend(loc="outside lower left")
        return figure


def narrowing(shown: Narrowing) -> Figure:
    """Median and interval of ε after each number of judged models."""
    with styled():
        figure = new_figure(style.WIDTH, 2.6)
        axes = figure.subplots()
        axes.set_xscale("log")
        axes.fill_between(shown.n, shown.low, shown.high, **BAND)
        axes.plot(shown.n, shown.median, color=style.BLUE)
        if shown.half is not None and shown.half_ends is not None:
            for now, then in zip((shown.low[-1], shown.high[-1]), shown.half_ends, strict=True):
                axes.plot([shown.n[-1], shown.half], [now, then], color=style.GREY, linewidth=0.9, dashes=(4, 2))
            axes.plot([shown.half] * 2, shown.half_ends, color=style.GREY, linewidth=2.5)
            axes.set_title(f"half the width: about {shown.half} models", loc="right", fontsize=style.SMALL)
        if shown.claimed is not None and shown.claimed <= shown.ceiling:
            axes.axhline(shown.claimed, color=style.BLACK, linewidth=1.0, dashes=(4, 2))
            label(axes, f"claimed ε = {number(shown.claimed)}", (1, shown.claimed), (3, 3, "left", "bottom"), **halo())
        axes.set(ylim=(0, shown.ceiling), xlabel="judged models", ylabel=eps_axis(shown.delta))
        axes.set_xlim(1, max(2, int(shown.n[-1]), shown.half or 0))
        return figure


def dependence(shown: Dependence) -> Figure:
    """Errors per model beside what independent guesses would give, and both intervals."""
    with styled():
        figure = new_figure(style.WIDTH, 1.6 * len(shown.errors) + 1.2)
        panes = figure.subplots(len(shown.errors) + 1, 1)
        for place, (axes, errors) in enumerate(zip(panes, shown.errors, strict=False)):
            left, width = errors.edges[:-1] - 0.5, np.diff(errors.edges)
            axes.bar(left, errors.models, width, align="edge", color=style.SKY, edgecolor="white")
            line: dict[str, Any] = {"color": style.BLACK, "linewidth": 1.4, "label": "expected if independent"}
            axes.hlines(errors.expected, left, left + width, **line)
            axes.legend(loc="upper right")
            what = {"FN": "missed (b = 1)", "FP": "false alarms (b = 0)"}[errors.kind]
            ratio = errors.variance_ratio if shown.design_effect is None else shown.design_effect[place]
            name = "variance ratio" if shown.design_effect is None else "design effect"
            axes.set_title(f"{what}: {name} {ratio:.2g}", loc="left", fontsize=style.SMALL)
            axes.set(xlabel="errors of a model", ylabel="models")
        rows = [("as if independent", shown.plain)]
        if shown.clustered is not None:
            rows.append(("allowing for dependence", shown.clustered))
        end = 1.06 * max(high for _, (_, high) in rows)
        for place, (text, (low, high)) in enumerate(reversed(rows)):
            _bar(panes[-1], low, high, place, style.BLUE, end)
            label(panes[-1], f"{text} {span(low, high)}", (0.0, place), (1, 4, "left", "bottom"), **halo())
        panes[-1].set(xlim=(0, end), ylim=(-0.4, len(rows) - 0.1), yticks=[], xlabel=eps_axis(shown.delta))
        return figure


def _bar(axes: Axes, low: float, high: float, place: int, colour: str, end: float) -> None:
    axes.plot([low, min(high, end)], [place, place], color=colour, linewidth=4, solid_capstyle="butt")
    if high > end or math.isinf(high):
        axes.plot([end], [place], marker=">", color=colour, markersize=6, clip_on=False)


def _claim(axes: Axes, claimed: float | None, end: float) -> None:
    """A dashed line with its name above, or an arrow where it is beyond the axis."""
    if claimed is None:
        return
    text = f"claimed ε = {number(claimed)}"
    beyond = claimed > end
    if not beyond:
        axes.axvline(claimed, color=style.BLACK, linewidth=1.0, dashes=(4, 2))
    axes.annotate(
        f"{text} →" if beyond else text,
        (min(claimed, end), 1.0),
        (0, 2),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="right" if claimed > 0.6 * end else "left",
        va="bottom",
        fontsize=style.SMALL,
    )
