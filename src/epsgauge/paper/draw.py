"""Draws the paper's figures with matplotlib; every function returns a Figure.

No global state of matplotlib is touched: figures are made directly, not by pyplot. `save` writes one to a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from epsgauge.figures import style
from epsgauge.figures.cdfs import Cdfs
from epsgauge.figures.contours import Between, Contours
from epsgauge.figures.density import VISIBLE_MASS, Density
from epsgauge.figures.region import Advantage, Region
from epsgauge.numbers import interval_text, percent
from epsgauge.paper.canvas import SMALL, WIDTH, Place, halo, label, new_figure, square, stroke, styled, zoom
from epsgauge.paper.sizes import Sizes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def density(shown: Density) -> Figure:
    """The posterior density with its point mass at 0, the intervals below it and the claimed value."""
    with styled():
        room = 0.16 + 0.3 * len(shown.bars)
        figure = new_figure(WIDTH, 1.85 + room)
        axes, below = figure.subplots(2, 1, sharex=True, height_ratios=[1.4, room])
        axes.fill_between(shown.x, shown.pdf, color=style.BLUE, alpha=0.12, linewidth=0)
        axes.plot(shown.x, shown.pdf, color=style.BLUE)
        left, right, top = float(shown.x[0]), float(shown.x[-1]), 1.08 * float(shown.pdf.max()) or 1.0
        if left == 0 and shown.mass_at_zero >= VISIBLE_MASS:
            axes.plot([0], [0], marker="o", color=style.BLUE, markersize=4, clip_on=False, zorder=5)
            axes.set_title(
                f"● Pr[{shown.symbol} = 0] = {shown.mass_at_zero:.3g}",
                loc="left",
                color=style.BLUE,
                fontsize=SMALL,
            )
        if shown.claimed is not None:
            for pane in (axes, below):
                pane.axvline(shown.claimed, color=style.BLACK, linewidth=1.0, dashes=(4, 2))
            place = (-3, 0, "right", "top") if shown.claimed > left + 0.6 * (right - left) else (3, 0, "left", "top")
            label(axes, f"claimed {shown.symbol} = {shown.claimed:g}", (shown.claimed, 0.98 * top), place, **halo())
        axes.set(ylim=(0, top), ylabel="posterior density")
        axes.tick_params(labelbottom=False)
        _bars(below, shown)
        below.set(xlabel=f"{shown.symbol}{shown.given}", xlim=(left, right))
        return figure


def region(shown: Region, grown: Sequence[Region] = ()) -> Figure:
    """R(ε, δ) with names at its corners; `grown` are regions of larger ε, drawn as outlines."""
    with styled():
        figure = new_figure(WIDTH, 3.25)
        axes = figure.subplots()
        square(axes)
        for other in grown:
            _fill(axes, other, fill=False, edgecolor=style.GREY, linewidth=0.7, linestyle=(0, (3, 2)))
            label(axes, f"ε = {other.eps:g}", other.corners[1], (4, 3, "left", "bottom"), color=style.GREY)
        _fill(axes, shown, facecolor=style.REGION, edgecolor=style.BLUE, linewidth=1.2)
        axes.text(0.5, 0.5, f"R(ε, δ)\nε = {shown.eps:g}, δ = {shown.delta:g}", ha="center", va="center")
        for corner, (name, place) in zip(shown.corners, _corner_names(shown), strict=True):
            if name:
                axes.plot(*corner, marker="o", markersize=3.5, color=style.BLUE, clip_on=False, zorder=4)
                label(axes, name, corner, place)
        return figure


def advantage(shown: Advantage) -> Figure:
    """R(ε, δ), the line of the largest advantage and the vertex where it touches."""
    with styled():
        figure = new_figure(WIDTH, 3.25)
        axes = figure.subplots()
        square(axes)
        _fill(axes, shown.region, facecolor=style.REGION, edgecolor=style.BLUE, linewidth=1.2)
        axes.text(0.5, 0.5, f"R(ε, δ)\nε = {shown.region.eps:g}, δ = {shown.region.delta:g}", ha="center", va="center")
        axes.plot(*shown.line.T, color=style.RED, dashes=(4, 2), clip_on=False)
        axes.plot(*shown.vertex, marker="o", markersize=5, color=style.RED, zorder=4)
        label(
            axes,
            f"FNR + FPR\n= 1 − {shown.bound:.3f}",
            (0.03, 0.04),
            (0, 0, "left", "bottom"),
            color=style.RED,
        )
        label(axes, "(v, v)", shown.vertex, (6, 4, "left", "bottom"))
        return figure


def contours(shown: Contours) -> Figure:
    """Contours of the joint posterior, the rectangle and both pairs of regions."""
    with styled():
        figure = new_figure(WIDTH, 4.12)
        axes = figure.subplots()
        handles = _joint(axes, shown)
        zoom(axes, max(float(outline.points.max()) for outline in shown.outlines))
        figure.legend(handles=handles, loc="outside lower left")
        return figure


def convergence(panels: Sequence[Contours], titles: Sequence[str]) -> Figure:
    """Joint posteriors of more and more samples; the hatched area is where ε is within its interval."""
    with styled():
        figure = new_figure(2 * WIDTH, 7.5)
        for axes, shown, title in zip(figure.subplots(2, 2).ravel(), panels, titles, strict=True):
            handles = _joint(axes, shown, named=False)
            axes.set_title(title)
        figure.legend(handles=handles, loc="outside lower center", ncols=2)
        return figure


def sizes(shown: Sizes) -> Figure:
    """Both ends of every method's interval against the number of samples, with the band that is wanted."""
    with styled():
        figure = new_figure(WIDTH, 2.9)
        axes = figure.subplots()
        n, band = shown.n_samples, (shown.centre - shown.half_width, shown.centre + shown.half_width)
        axes.fill_between(n, *band, color=style.PALE, linewidth=0)
        sides = {"jeffreys": (-2, "right")}  # Jeffreys and Clopper-Pearson get there together: one label on each side
        for ends in shown.methods:
            colour = style.method_colour(ends.method)
            for end, name in ((ends.high, ends.label), (ends.low, None)):
                axes.plot(n, end, label=name, color=colour, dashes=style.method_dashes(ends.method))
            if ends.reached is not None and ends.at_reached is not None:
                axes.plot([ends.reached] * 2, ends.at_reached, color=colour, linewidth=0.8, marker="o", markersize=3)
                dx, ha = sides.get(ends.method, (2, "left"))
                middle = (ends.reached, sum(ends.at_reached) / 2)
                label(axes, f"{ends.reached}", middle, (dx, 0, ha, "center"), rotation=90)
        at = int(0.06 * len(n))
        axes.annotate(
            "", (n[at], band[0][at]), (n[at], band[1][at]), arrowprops={"arrowstyle": "<->", "shrinkA": 0, "shrinkB": 0}
        )
        label(axes, f"± {shown.half_width:g}", (n[at], shown.centre[at]), (4, 0, "left", "center"))
        axes.set(xlabel="samples N", ylabel=f"ends of the {percent(shown.level)} interval for ε", ylim=(-0.02, None))
        axes.legend()
        return figure


def cdfs(shown: Cdfs) -> Figure:
    """Distribution functions, one stroke each."""
    with styled():
        figure = new_figure(WIDTH, 2.4)
        axes = figure.subplots()
        for place, curve in enumerate(shown.curves):
            axes.plot(shown.x, curve.cdf, label=curve.label, **stroke(style.SERIES[place]))
        axes.set_xlim(0, float(shown.x[-1]))
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(shown.symbol)
        axes.set_ylabel(f"posterior probability F({shown.symbol})")
        axes.legend(loc="lower right")
        return figure


# Pieces


def _bars(axes: Axes, shown: Density) -> None:
    """Intervals as bars, one per line, labelled above; one that goes on beyond the axis ends in an arrow."""
    left, right = float(shown.x[0]), float(shown.x[-1])
    for place, bar in enumerate(reversed(shown.bars)):
        colour = style.method_colour(bar.method)
        axes.plot([bar.low, min(bar.high, right)], [place, place], color=colour, linewidth=2.5, solid_capstyle="butt")
        if bar.high > right:
            axes.plot([right], [place], marker=">", color=colour, markersize=6, clip_on=False)
        kind = {"credible": "credible", "guaranteed": "confidence", "estimate": "interval"}[bar.promise]
        text = f"{bar.label} {percent(shown.level)} {kind} {interval_text(bar.low, bar.high)}"
        label(axes, text, (left, place), (2, 2.5, "left", "bottom"), **halo())
    axes.set(ylim=(-0.4, len(shown.bars) - 0.2), yticks=[])
    axes.spines["left"].set_visible(False)


def _corner_names(shown: Region) -> tuple[tuple[str, Place], ...]:
    """What stands at each corner of a region, and where; nothing at the corners of the square itself."""
    low, high = ("(v, v)", (5, 4, "left", "bottom")), ("(1 − v, 1 − v)", (-5, -4, "right", "top"))
    if shown.delta == 0:
        nowhere = ("", (0, 0, "left", "bottom"))
        return nowhere, low, nowhere, high
    return (
        ("(0, 1 − δ)", (5, -2, "left", "center")),
        low,
        ("(1 − δ, 0)", (-5, 9, "center", "bottom")),
        ("", (0, 0, "left", "bottom")),
        ("(1, δ)", (5, 0, "left", "center")),
        high,
        ("(δ, 1)", (0, 3, "center", "bottom")),
        ("", (0, 0, "left", "bottom")),
    )


def _fill(axes: Axes, shown: Region, **look: Any) -> None:
    from matplotlib.patches import Polygon

    axes.add_patch(Polygon(shown.corners, closed=True, **look))


def _between(axes: Axes, shown: Between, **look: Any) -> None:
    """The outer region with the inner one cut out."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    parts = [np.vstack([c, c[:1]]) for c in (shown.outer.corners, shown.inner.corners[::-1])]
    codes = [[Outline.MOVETO, *[Outline.LINETO] * (len(p) - 2), Outline.CLOSEPOLY] for p in parts]
    axes.add_patch(PathPatch(Outline(np.vstack(parts), np.concatenate(codes)), **look))


def _joint(axes: Axes, shown: Contours, *, named: bool = True) -> list[Any]:
    """The joint posterior with its regions; returns what a legend needs."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch, Rectangle

    square(axes)
    bayes, level = shown.credible, percent(shown.level)
    _between(axes, bayes, facecolor=style.REGION, edgecolor=style.SKY, hatch="//////", linewidth=0)
    _between(axes, bayes, fill=False, edgecolor=style.BLUE, linewidth=1.0)
    named_interval = f" [{bayes.inner.eps:.3f}, {bayes.outer.eps:.3f}]" if named else ""
    text = f"{bayes.label} {level} credible interval{named_interval}"
    handles: list[Any] = [Patch(facecolor=style.REGION, edgecolor=style.BLUE, hatch="//////", label=text)]
    if shown.other is not None:
        red: dict[str, Any] = {
            "color": style.method_colour(shown.other.method),
            "linewidth": 1.1,
            "linestyle": (0, (1.5, 1.5)),
        }
        for edge in (shown.other.inner, shown.other.outer):
            _fill(axes, edge, fill=False, **red)
        ends = f"[{shown.other.inner.eps:.3f}, {shown.other.outer.eps:.3f}]"
        text = f"{shown.other.label} {level} {ends}: holds {100 * shown.other.mass:.1f} %"
        handles.append(Line2D([], [], label=text, **red))
    if shown.rectangle is not None:
        (x, x_end), (y, y_end) = shown.rectangle.fnr, shown.rectangle.fpr
        look: dict[str, Any] = {
            "fill": False,
            "edgecolor": style.method_colour(shown.rectangle.method),
            "linewidth": 1.3,
        }
        axes.add_patch(Rectangle((x, y), x_end - x, y_end - y, zorder=3, **look))
        handles.append(Patch(label=f"its rectangle of rates: holds {100 * shown.rectangle.mass:.1f} %", **look))
    for outline in shown.outlines:
        axes.plot(*outline.points.T, color=style.BLACK, linewidth=0.7)
    masses = ", ".join(f"{100 * outline.mass:g}" for outline in shown.outlines)
    handles.append(
        Line2D([], [], color=style.BLACK, linewidth=0.7, label=f"contours around {masses} % of the posterior")
    )
    return handles
