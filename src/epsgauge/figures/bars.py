"""Intervals of all methods as bars on one axis, each with what it promises and assumes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epsgauge.auditing.audit import Audit
from epsgauge.errors import InvalidInput
from epsgauge.figures.chart import ALL, Chart
from epsgauge.figures.labels import ARROW, LEFT, LINE, RIGHT
from epsgauge.figures.marks import claim_zone
from epsgauge.figures.scales import Scale
from epsgauge.figures.style import PROMISE_COLOUR
from epsgauge.figures.subject import Bar, Subject
from epsgauge.figures.svg import Picture
from epsgauge.figures.words import Words, eps_axis
from epsgauge.methods.table import POSTERIOR
from epsgauge.numbers import percent

if TYPE_CHECKING:
    from epsgauge.auditing.reading import Reading

# A bar that goes on beyond so many times the longest credible one or any low end is cut, with an arrow.
LONG = 2.0
ROW = 43.0  # the height of a row of text and a bar


@dataclass(frozen=True)
class Bars:
    """One bar per method, on an axis from 0 to `end`."""

    delta: float
    level: float
    bars: tuple[Bar, ...]
    claimed: float | None
    end: float


def bars(subject: Subject) -> Bars:
    found, claimed = subject.bars, subject.claimed
    if not found:
        raise InvalidInput("bars need at least one method, but got none.")
    lows = [bar.low for bar in found if math.isfinite(bar.low)]
    sure = [bar.high for bar in found if bar.method == POSTERIOR.name and math.isfinite(bar.high)]
    reach = max([*lows, *sure], default=1.0) or 1.0
    shown = [bar.high for bar in found if bar.high <= LONG * reach]
    if claimed is not None and claimed <= LONG * reach:
        shown.append(claimed)
    return Bars(subject.delta, subject.level, found, claimed, 1.06 * max([reach, *shown]))


# Drawing


def draw(shown: Bars, *, prefix: str = "") -> str:
    """One bar per method, its interval and promise above it; an arrow where it continues."""
    words = " ".join(f"{b.label}: {b.text}, {b.promise}." for b in shown.bars)
    picture = Picture("bars", 0, "Bounds and intervals of every method", words, prefix)
    x = Scale(0.0, shown.end, LEFT, RIGHT)
    top = 0.0 if shown.claimed is None else LINE
    bottom = top + 6 + ROW * len(shown.bars)
    claim_zone(picture, shown.claimed, x, top, bottom)
    for place, bar in enumerate(shown.bars):
        _method_bar(picture, bar, x, top + LINE + ROW * place)
    picture.value_axis(x, bottom, eps_axis(shown.delta))
    picture.height = bottom + 2.6 * LINE
    return picture.done()


def _method_bar(picture: Picture, bar: Bar, x: Scale, y: float) -> None:
    """Text with its baseline at y, the bar below it."""
    colour = PROMISE_COLOUR[bar.promise]
    tip = f"{bar.label}: {bar.promise}. Assumes: {'; '.join(bar.assumptions)}." + (f" {bar.note}." if bar.note else "")
    said = (bar.promise, f"text-{'muted' if colour == 'grey' else colour}")
    picture.words(LEFT, y, [(bar.label, "strong"), (bar.text, ""), said], "halo")
    start, end = x(bar.low), x(bar.high)
    on = bar.high > x.high
    if bar.low > x.high:
        start = end - 3 * ARROW
    look = f"fill-{colour}" if bar.promise != "estimate" else "fill-grey half"
    picture.rect(start, y + 7, max(end - start - (ARROW if on else 0), 3), 10, look, tip)
    if on:
        picture.arrow(end, y + 12, look)


# Words


def words(subject: Subject, shown: Bars) -> Words:
    tail, rest = percent((1 - subject.level) / 2), "" if subject.source is None else _by_method(subject.source)
    sure = (
        f"A guaranteed interval is too high in at most {tail} of counts like these, and too low in at most {tail}, as "
        "long as its assumptions hold. "
    )
    if isinstance(subject.source, Audit):
        missed = percent(1 - subject.source.verdict.level)
        sure = (
            f"A guaranteed bar is a lower bound, too high in at most {missed} of audits like this one, as long as its "
            f"assumptions hold; others are {percent(subject.level)} intervals. "
        )
    if subject.source is not None and not any(bar.promise == "guaranteed" for bar in shown.bars):
        sure = "None of them is guaranteed here: the notes say why. "
    return Words(
        f"One bar per method. {rest}{sure}An arrow means that it has no upper end, or goes on.",
        "Agreement between methods is no further evidence: they use guesses about the same models. A shorter interval "
        "is better only if it promises the same.",
    )


def _by_method(audit: Reading) -> str:
    """Which rows rest on what, in one or more sentences with a blank behind."""
    bases: dict[str, list[str]] = {}
    for row in audit.rows:
        bases.setdefault(row.counts, []).append(row.label.replace(",", ""))
    remarks = "".join(f" {row.remark}" for row in audit.rows if row.remark)
    if len(bases) == 1:
        return f"All rest on the same guesses.{remarks} "
    said = "; ".join(f"{', '.join(labels)} on {basis}" for basis, labels in bases.items())
    return f"They rest on different guesses: {said}.{remarks} "


CHART = Chart("bars", "Every method", "posterior", ("audit", "counts"), bars, draw, words, follows=(*ALL, "bound"))
