"""Colours and strokes, the same in every picture."""

from __future__ import annotations

from epsgauge.methods.table import METHODS

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
REGION = "#DCE9F2"

# Names of `css.LIGHT`.
PROMISE_COLOUR = {"credible": "blue", "guaranteed": "green", "estimate": "grey"}
# Classes of `css.STYLE`, one line for each of several curves; they differ in stroke too, for print in grey. The first
# is the baseline: broad and pale, so that curves that coincide with it can be seen on it.
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

_PALETTE = {
    "black": BLACK,
    "orange": ORANGE,
    "sky": SKY,
    "green": GREEN,
    "yellow": YELLOW,
    "blue": BLUE,
    "red": RED,
    "purple": PURPLE,
    "grey": GREY,
}


def method_colour(name: str) -> str:
    """The colour of a method; grey for one of your own."""
    return _PALETTE[METHODS[name].colour] if name in METHODS else GREY


def method_dashes(name: str) -> tuple[float, ...]:
    """(on, off, …) in points; () is solid."""
    return METHODS[name].dashes if name in METHODS else ()
