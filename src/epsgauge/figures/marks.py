"""Marks that several charts share: the claim, stems down to an axis, an axis of probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from epsgauge.figures.labels import WIDTH, Flag, Placed, placed
from epsgauge.figures.scales import Scale
from epsgauge.figures.svg import Picture
from epsgauge.numbers import number

SHARES = ("0", "0.25", "0.5", "0.75", "1")


def beyond(text: str, value: float, x: Scale) -> str:
    """The text with an arrow where its value is off the axis."""
    return f"{text} →" if value > x.high else f"← {text}" if value < x.low else text


def claim_text(claimed: float, x: Scale, symbol: str = "ε") -> str:
    return beyond(f"claimed {symbol} = {number(claimed)}", claimed, x)


def claim_zone(picture: Picture, claimed: float | None, x: Scale, top: float, bottom: float) -> None:
    """The claim with its name above, and a tint over all that is more than it."""
    if claimed is None:
        return
    if x.holds(claimed):
        picture.rect(x(claimed), top, x.end - x(claimed), bottom - top, "fill-red faint", "more than claimed")
    stem = bottom if x.holds(claimed) else None
    picture.flags(placed([Flag(x(claimed), claim_text(claimed, x), "strong", stem)], 2, WIDTH - 2))


def stems_to(places: Sequence[Placed], y: float) -> list[Placed]:
    """Stems that go down to the axis, which is at y."""
    return [replace(p, flag=replace(p.flag, stem=y)) if p.flag.stem is not None else p for p in places]


def probabilities(picture: Picture, y: Scale, x: Scale) -> None:
    """A y axis from 0 to 1."""
    picture.y_axis(y, x.start, [0.0, 0.25, 0.5, 0.75, 1.0], SHARES, to=x.end)
