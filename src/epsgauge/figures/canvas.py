"""The empty picture: its style, the unit square of rates, labels, and the file it goes to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from epsgauge.errors import InvalidInput, MissingExtra
from epsgauge.figures import style
from epsgauge.stats.arrays import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("svg", "png", "pdf")
# (right, up) in points, and how the text is aligned there
Place = tuple[float, float, str, str]


@contextmanager
def styled() -> Iterator[None]:
    """Inside, matplotlib draws and saves in our style."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtra("this needs matplotlib. Install it with: pip install 'epsgauge[plot]'") from None
    with matplotlib.rc_context(style.RC):  # type: ignore[arg-type]
        yield


def new_figure(width: float, height: float) -> Figure:
    """A figure that belongs to nobody: pyplot does not know it."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Figure, path: str | Path, *, title: str = "", description: str = "") -> Path:
    """Write a figure; the suffix of `path` says as what. The same picture gives the same bytes."""
    target = Path(path)
    kind = target.suffix.lstrip(".").lower()
    if kind not in FORMATS:
        raise InvalidInput(f"a figure's file must end in {', '.join('.' + f for f in FORMATS)}, but got {str(path)!r}.")
    if not target.parent.is_dir():
        raise InvalidInput(f"a figure's folder must exist, but got {str(target.parent)!r}. Make it first.")
    if target.is_dir():
        raise InvalidInput(f"a figure's file must not be a folder, but got {str(path)!r}.")
    about = {"Title": title, "Subject" if kind == "pdf" else "Description": description}
    meta: dict[str, Any] = {key: value for key, value in about.items() if value}
    meta |= {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}[kind]
    try:
        with styled():
            figure.savefig(target, format=kind, metadata=meta)
    except OSError as error:
        raise InvalidInput(f"the figure could not be written to {str(path)!r}: {error.strerror}.") from None
    return target


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
    every: dict[str, Any] = {"ha": ha, "va": va, "fontsize": style.SMALL, **look}
    axes.annotate(text, (float(at[0]), float(at[1])), (dx, dy), textcoords="offset points", **every)


def halo() -> dict[str, Any]:
    """White around letters, so that a line behind them does not cross them out."""
    from matplotlib.patheffects import withStroke

    return {"path_effects": [withStroke(linewidth=2.5, foreground="white")]}


def _ticks(axes: Axes, ticks: Floats) -> None:
    names = [f"{tick:g}" for tick in ticks]
    axes.set_xticks(ticks, names)
    axes.set_yticks(ticks, names)
