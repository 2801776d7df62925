"""Colours, strokes and sizes, the same in every picture; NumPy and matplotlib free, so that the web can use them."""

from __future__ import annotations

from dataclasses import dataclass

# Okabe and Ito's colours, which colour-blind readers can tell apart.
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, RED, PURPLE = (
    "#000000",
    "#E69F00",
    "#56B4E9",
    "#009E73",
    "#F0E442",
    "#0072B2",
    "#D55E00",
    "#CC79A7",
)
GREY = "#767676"
PALE = "#E4E4E4"

# Dashes are (on, off, …) in points; () is solid. Each series differs in stroke too, for print in grey.
METHOD_COLOURS = {
    "bayes": BLUE,
    "jeffreys": ORANGE,
    "clopper-pearson": RED,
    "exact": GREEN,
    "pooled": PURPLE,
    "anytime": SKY,
    "simultaneous": BLACK,
    "clusters": YELLOW,
}
METHOD_DASHES: dict[str, tuple[float, ...]] = {"bayes": (), "jeffreys": (5, 2), "clopper-pearson": (1.5, 1.5)}
REGION = "#DCE9F2"


@dataclass(frozen=True)
class Stroke:
    """How one curve of several is drawn."""

    colour: str
    dashes: tuple[float, ...]
    width: float


# The first is the baseline: broad and pale, so that curves that coincide with it can be seen on it.
SERIES = (
    Stroke("#B8B8B8", (), 3.6),
    Stroke(BLUE, (5, 2), 1.4),
    Stroke(RED, (1.5, 1.5), 1.4),
    Stroke(PURPLE, (6, 2, 1.5, 2), 1.4),
)

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
