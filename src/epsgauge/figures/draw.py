"""Draws what the other modules of this room compute, with matplotlib; every function returns a Figure.

No global state of matplotlib is touched: figures are made directly, not by pyplot. `save` writes SVG, PNG or PDF,
the same bytes for the same picture.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epsgauge.errors import InvalidInput, MissingExtra
from epsgauge.figures import style
from epsgauge.figures.cdfs import Cdfs
from epsgauge.figures.contours import Between, Contours
from epsgauge.figures.density import Density
from epsgauge.figures.region import Advantage, Region
from epsgauge.figures.sizes import Sizes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("svg", "png", "pdf")


def save(figure: Figure, path: str | Path, *, title: str = "", description: str = "") -> Path:
    """Write a figure; the suffix of `path` says as what."""
    target = Path(path)
    kind = target.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise InvalidInput(f"a figure's file must end in {', '.join('.' + f for f in FORMATS)}, but got {str(path)!r}.")
    if not target.parent.is_dir():
        raise InvalidInput(f"a figure's folder must exist, but got {str(target.parent)!r}. Make it first.")
    about = {"Title": title, "Subject" if kind == "pdf" else "Description": description}
    meta: dict[str, Any] = {key: value for key, value in about.items() if value}
    # no date and no version, so that the same picture is the same file
    meta |= {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}[kind]
    with _style():
        figure.savefig(target, format=kind, metadata=meta)
    return target


def density(shown: Density) -> Figure:
    """The posterior density with its point mass at 0, the intervals below it and the claimed value."""
    with _style():
        figure = _figure(style.WIDTH, 2.55)
        axes, below = figure.subplots(2, 1, sharex=True, height_ratios=[3.2, 0.34 + 0.33 * len(shown.bars)])
        axes.fill_between(shown.x, shown.pdf, color=style.BLUE, alpha=0.12, linewidth=0)
        axes.plot(shown.x, shown.pdf, color=style.BLUE)
        top = 1.08 * float(shown.pdf.max())
        span = float(shown.x[-1] - shown.x[0])
        if shown.x[0] == 0 and shown.mass_at_zero > 0:
            axes.plot([0], [0], marker="o", color=style.BLUE, markersize=4, clip_on=False, zorder=5)
            axes.annotate(
                f"point mass at 0: {shown.mass_at_zero:.2g}",
                (0, 0),
                (0.06 * span, 0.10 * top),
                fontsize=style.SMALL,
                arrowprops={"arrowstyle": "-", "linewidth": 0.5, "shrinkB": 3},
            )
        if shown.claimed is not None:
            for pane in (axes, below):
                pane.axvline(shown.claimed, color=style.BLACK, linewidth=1.0, dashes=(4, 2))
            right = shown.claimed > shown.x[0] + 0.6 * span
            axes.annotate(
                f"claimed {shown.symbol} = {shown.claimed:g}",
                (shown.claimed, 0.97 * top),
                (-3 if right else 3, 0),
                textcoords="offset points",
                ha="right" if right else "left",
                va="top",
                fontsize=style.SMALL,
            )
        axes.set_ylim(0, top)
        axes.set_ylabel(f"posterior density of {shown.symbol}")
        axes.tick_params(labelbottom=False)
        _bars(below, shown)
        below.set_xlabel(f"{shown.symbol}")
        below.set_xlim(float(shown.x[0]), float(shown.x[-1]))
        return figure


def region(shown: Region, grown: Sequence[Region] = ()) -> Figure:
    """R(ε, δ) with names at its corners; `grown` are regions of larger ε, drawn as outlines."""
    with _style():
        figure = _figure(style.WIDTH, 3.25)
        axes = figure.subplots()
        _square(axes)
        for other in grown:
            _outline(axes, other, color=style.GREY, linewidth=0.7, linestyle=(0, (3, 2)))
            x, y = other.corners[1]
            axes.annotate(f"ε = {other.eps:g}", (x, y), (-2, -2), textcoords="offset points", ha="right", va="top")
        _fill(axes, shown, facecolor=style.REGION, edgecolor=style.BLUE, linewidth=1.2)
        axes.text(0.5, 0.5, f"R(ε, δ)\nε = {shown.eps:g}, δ = {shown.delta:g}", ha="center", va="center")
        names = {
            (0, "(0, 1 − δ)"): (5, -2, "left", "center"),
            (1, "(v, v)"): (-4, -4, "right", "top"),
            (2, "(1 − δ, 0)"): (-6, 8, "right", "center"),
            (4, "(1, δ)"): (-5, 4, "right", "bottom"),
            (5, "(1 − v, 1 − v)"): (4, 4, "left", "bottom"),
            (6, "(δ, 1)"): (6, -6, "left", "center"),
        }
        for (corner, name), (dx, dy, ha, va) in names.items():
            at = tuple(shown.corners[corner])
            axes.plot(*at, marker="o", markersize=3.5, color=style.BLUE, clip_on=False, zorder=4)
            axes.annotate(name, at, (dx, dy), textcoords="offset points", ha=ha, va=va, fontsize=style.SMALL)
        return figure


def advantage(shown: Advantage) -> Figure:
    """R(ε, δ), the line of the largest advantage and the vertex where it touches."""
    with _style():
        figure = _figure(style.WIDTH, 3.25)
        axes = figure.subplots()
        _square(axes)
        _fill(axes, shown.region, facecolor=style.REGION, edgecolor=style.BLUE, linewidth=1.2)
        axes.text(0.5, 0.5, f"R(ε, δ)\nε = {shown.region.eps:g}, δ = {shown.region.delta:g}", ha="center", va="center")
        axes.plot(*shown.line.T, color=style.RED, dashes=(4, 2), clip_on=False)
        axes.plot(*shown.vertex, marker="o", markersize=5, color=style.RED, zorder=4)
        axes.annotate(
            f"FNR + FPR = 1 − {shown.bound:.3f}",
            tuple(shown.vertex),
            (-3, -14),
            textcoords="offset points",
            ha="left",
            va="top",
            fontsize=style.SMALL,
        )
        return figure


def contours(shown: Contours) -> Figure:
    """Contours of the joint posterior, the rectangle and both pairs of regions."""
    with _style():
        figure = _figure(style.WIDTH, 3.6)
        axes = figure.subplots()
        _joint(axes, shown)
        return figure


def convergence(panels: Sequence[Contours]) -> Figure:
    """Four joint posteriors side by side; the hatched area is where ε is within its interval."""
    with _style():
        figure = _figure(2 * style.WIDTH, 6.6)
        for axes, shown, letter in zip(figure.subplots(2, 2).ravel(), panels, "abcd", strict=True):
            _joint(axes, shown)
            low, high = shown.credible.inner.eps, shown.credible.outer.eps
            axes.set_title(f"({letter}) N = {shown.n_samples},  ε in [{low:.2g}, {high:.2g}]")
        return figure


def sizes(shown: Sizes) -> Figure:
    """Both ends of every method's interval against the number of samples, with the band that is wanted."""
    with _style():
        figure = _figure(style.WIDTH, 2.9)
        axes = figure.subplots()
        axes.fill_between(
            shown.n_samples, shown.centre - shown.half_width, shown.centre + shown.half_width, color=style.PALE, linewidth=0
        )
        for ends in shown.methods:
            look: dict[str, Any] = {"color": style.METHOD_COLOURS[ends.method], "dashes": style.METHOD_DASHES[ends.method]}
            axes.plot(shown.n_samples, ends.high, label=ends.label, **look)
            axes.plot(shown.n_samples, ends.low, **look)
        axes.set_xlabel("samples N")
        axes.set_ylabel("ends of the interval for ε")
        axes.legend()
        return figure


def cdfs(shown: Cdfs) -> Figure:
    """Distribution functions, one stroke each."""
    with _style():
        figure = _figure(style.WIDTH, 2.4)
        axes = figure.subplots()
        for curve, colour, dashes in zip(shown.curves, style.SERIES_COLOURS, style.SERIES_DASHES, strict=False):
            axes.plot(shown.x, curve.cdf, color=colour, dashes=dashes, label=curve.label)
        axes.set_xlim(0, float(shown.x[-1]))
        axes.set_ylim(0, 1.02)
        axes.set_xlabel(shown.symbol)
        axes.set_ylabel(f"posterior probability F({shown.symbol})")
        axes.legend(loc="lower right")
        return figure


# Pieces


@contextmanager
def _style() -> Iterator[None]:
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("this needs matplotlib. Install it with: pip install 'epsgauge[plot]'") from None
    with matplotlib.rc_context(style.RC):  # type: ignore[arg-type]
        yield


def _figure(width: float, height: float) -> Figure:
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def _bars(axes: Axes, shown: Density) -> None:
    """Intervals as bars, one a line, labelled above; an infinite one ends in an arrow."""
    right = float(shown.x[-1])
    for place, bar in enumerate(reversed(shown.bars)):
        colour = style.METHOD_COLOURS[bar.method]
        end = min(bar.high, right)
        axes.plot([bar.low, end], [place, place], color=colour, linewidth=2.5, solid_capstyle="butt")
        if bar.high > right:
            axes.plot([right], [place], marker=">", color=colour, markersize=6, clip_on=False)
        high = "∞)" if math.isinf(bar.high) else f"{bar.high:.3g}]"
        kind = {"credible": "credible", "guaranteed": "confidence", "estimate": "interval"}[bar.promise]
        axes.annotate(
            f"{bar.label}, {100 * shown.level:g} % {kind}: [{bar.low:.2g}, {high}",
            (float(shown.x[0]), place),
            (2, 3),
            textcoords="offset points",
            ha="left",
            va="bottom",
            fontsize=style.SMALL,
        )
    axes.set_ylim(-0.5, len(shown.bars) - 0.1)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)


def _square(axes: Axes) -> None:
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="FNR", ylabel="FPR")
    ticks = [0, 0.25, 0.5, 0.75, 1]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)


def _fill(axes: Axes, shown: Region, **look: Any) -> None:
    from matplotlib.patches import Polygon

    axes.add_patch(Polygon(shown.corners, closed=True, **look))


def _outline(axes: Axes, shown: Region, **look: Any) -> None:
    from matplotlib.patches import Polygon

    axes.add_patch(Polygon(shown.corners, closed=True, fill=False, **look))


def _between(axes: Axes, shown: Between, **look: Any) -> None:
    """The outer region with the inner one cut out."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    parts = [np.vstack([c, c[:1]]) for c in (shown.outer.corners, shown.inner.corners[::-1])]
    codes = [[Outline.MOVETO, *[Outline.LINETO] * (len(p) - 2), Outline.CLOSEPOLY] for p in parts]
    axes.add_patch(PathPatch(Outline(np.vstack(parts), np.concatenate(codes)), **look))


def _joint(axes: Axes, shown: Contours) -> None:
    _square(axes)
    _between(axes, shown.credible, facecolor="none", edgecolor=style.BLUE, hatch="////", linewidth=1.0)
    order = np.argsort(shown.levels)
    axes.contour(shown.fnr, shown.fpr, shown.density, levels=shown.levels[order], colors=style.BLACK, linewidths=0.7)
