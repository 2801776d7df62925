"""The empty figure of matplotlib: its style, the unit square of rates, labels, and the file it goes to."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epsgauge.errors import MissingExtra
from epsgauge.figures import css
from epsgauge.figures.files import figure_file
from epsgauge.files import replace
from epsgauge.stats.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Half a page of a two-column paper, in inches and points.
WIDTH = 3.4
FONT = 8.5
SMALL = 8.0

RC: dict[str, object] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same everywhere
    "mathtext.fontset": "dejavusans",
    "font.size": FONT,
    "axes.labelsize": FONT,
    "axes.titlesize": FONT,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.labelsize": SMALL,
    "ytick.labelsize": SMALL,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "legend.fontsize": SMALL,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "lines.linewidth": 1.4,
    "hatch.linewidth": 0.5,
    "figure.dpi": 100,
    "savefig.dpi": 300,
    "svg.fonttype": "path",
    "svg.hashsalt": "epsgauge",  # the same ids in every run
}

FORMATS = ("svg", "png", "pdf")
# What classes of `css.STYLE` are in points.
WIDTHS = {"broad": 3.6, "thin": 0.9}
DASHES = {"dash": (5.0, 2.0), "dots": (1.5, 1.5)}
# (right, up) in points, and how the text is aligned there
Place = tuple[float, float, str, str]


@contextmanager
def styled() -> Iterator[None]:
    """Inside, matplotlib draws and saves in our style."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra(
            "this needs matplotlib. Install it with: pip install '.[plot]' in the folder of epsgauge"
        ) from None
    with matplotlib.rc_context(RC):  # type: ignore[arg-type]
        yield


def new_figure(width: float, height: float) -> Figure:
    """A figure that belongs to nobody: pyplot does not know it."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, path: str | Path, *, title: str = "", description: str = "") -> Path:
    """Write a figure; the suffix of `path` says as what. The same picture gives the same bytes."""
    with figure_file(path, FORMATS) as target, styled():
        kind = target.suffix.lstrip(".").lower()
        about = {"Title": title, "Subject" if kind == "pdf" else "Description": description}
        meta: dict[str, Any] = {key: value for key, value in about.items() if value}
        meta |= {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}[kind]
        drawn = io.BytesIO()
        figure.savefig(drawn, format=kind, metadata=meta)
        replace(target, drawn.getvalue())
    return target


def stroke(look: str) -> dict[str, Any]:
    """A line that has these classes on the web."""
    colour, *words = look.removeprefix("line-").split()
    return {
        "color": css.LIGHT[colour],
        "alpha": 0.5 if "pale" in words else 1.0,
        "linewidth": next((WIDTHS[word] for word in words if word in WIDTHS), 1.4),
        "dashes": next((DASHES[word] for word in words if word in DASHES), ()),
    }


def square(axes: Axes) -> None:
    """All rates: FNR to the right, FPR upwards."""
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="FNR", ylabel="FPR")
    _ticks(axes, np.linspace(0, 1, 5))
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)


def zoom(axes: Axes, edge: float) -> None:
    """The corner of the square up to `edge` and a little more."""
    edge = min(1.0, 0.05 * math.ceil(20 * edge + 1))
    axes.set(xlim=(0, edge), ylim=(0, edge))
    _ticks(axes, np.arange(0, edge, 0.1).round(1))


def label(axes: Axes, text: str, at: Floats | tuple[float, float], place: Place, **look: Any) -> None:
    """Text at a point, moved and aligned as `place` says."""
    dx, dy, ha, va = place
    every: dict[str, Any] = {"ha": ha, "va": va, "fontsize": SMALL, **look}
    axes.annotate(text, (float(at[0]), float(at[1])), (dx, dy), textcoords="offset points", **every)


def halo() -> dict[str, Any]:
    """White around letters, so that a line behind them does not cross them out."""
    from matplotlib.patheffects import withStroke

    return {"path_effects": [withStroke(linewidth=2.5, foreground="white")]}


def _ticks(axes: Axes, ticks: Floats) -> None:
    names = [f"{tick:g}" for tick in ticks]
    axes.set_xticks(ticks, names)
    axes.set_yticks(ticks, names)
