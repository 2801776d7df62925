"""Chart: one kind of picture, with its name, what it shows, how it is drawn and what is said beside it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from epsgauge.errors import InvalidInput
from epsgauge.figures.files import figure_file
from epsgauge.figures.words import Words
from epsgauge.files import replace
from epsgauge.methods.units import Units, said_of

# Those of the report, which has a title for each.
Section = Literal["verdict", "posterior", "region", "attack", "narrowing", "dependence", "comparison", "cohorts"]
# The sliders that change most charts.
ALL = ("threshold", "delta", "level")


class Draw(Protocol):
    """Draws what a chart shows as one `<svg>`; pictures of one kind on one page need prefixes, so that ids differ."""

    def __call__(self, shown: Any, /, *, prefix: str = "") -> str: ...


@dataclass(frozen=True)
class Also:
    """A second drawing of what a chart shows; `folded` is drawn on demand, where there is little room."""

    name: str
    title: str
    draw: Draw
    folded: bool = False


@dataclass(frozen=True)
class Chart:
    """A row of the table of charts. The report, the viewer and notebooks know no more of a chart than this."""

    name: str
    title: str
    section: Section  # of the report
    of: tuple[str, ...]  # what it can be drawn of: see `Subject.kinds`
    data: Callable[[Any], Any]  # a subject -> what the chart shows
    draw: Draw
    words: Callable[[Any, Any], Words]  # the subject, and what the chart shows of it
    also: Also | None = None
    follows: tuple[str, ...] = ALL  # the sliders that change it; "bound" is which method gives it

    def drawn(self, subject: Any, *, prefix: str = "") -> Drawn:
        """A chart that makes no sense here, say a ROC curve of one bit, is a sentence instead."""
        try:
            shown = self.data(subject)
            svgs = [draw(shown, prefix=prefix) for draw in (self.draw, *([self.also.draw] if self.also else []))]
        except InvalidInput as reason:
            return Drawn(self, absent=str(reason))
        units: Units = getattr(getattr(subject, "source", None), "units", "models")
        words = self.words(subject, shown)
        if units == "models":
            return Drawn(self, shown, tuple(svgs), words)
        words = Words(said_of(units, words.shows), said_of(units, words.hides))
        chart = dataclasses.replace(self, title=said_of(units, self.title))
        return Drawn(chart, shown, tuple(said_of(units, svg) for svg in svgs), words)


@dataclass(frozen=True, repr=False)
class Drawn:
    """A chart of something: a notebook shows it, and `save` writes it to a file."""

    chart: Chart
    shown: Any = None
    svgs: tuple[str, ...] = ()  # the chart, and its second drawing where it has one
    words: Words | None = None
    absent: str = ""  # why there is none

    def save(self, path: str | Path) -> Path:
        """Write the chart as an SVG file that needs nothing else. The same picture gives the same bytes."""
        with figure_file(path, ("svg",)) as target:
            replace(target, standalone(self.svgs[0]))
        return target

    def __repr__(self) -> str:
        return f"<chart {self.chart.name}>"

    def _repr_html_(self) -> str:
        from epsgauge.figures import css  # which the terminal can do without

        return f'<div class="epsgauge"><style>{css.NOTEBOOK}</style>{self.svgs[0]}</div>'


def standalone(svg: str) -> str:
    """A picture with its style inside, in colours for paper, and a margin."""
    from epsgauge.figures import css

    head, _, rest = svg.partition(">")
    width, height = (float(side) for side in re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', head)[0])
    box = f'viewBox="-10 -10 {width + 20:g} {height + 20:g}" width="{width + 20:g}" height="{height + 20:g}"'
    head = re.sub(r'viewBox="[^"]*"', box, head)
    paper = f'<rect x="-10" y="-10" width="100%" height="100%" fill="{css.LIGHT["paper"]}"/>'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}><style>{css.PRINT}</style>{paper}{rest}\n'
