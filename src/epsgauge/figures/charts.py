"""The one table of charts, in the order in which pages show them, and `chart`, which draws one."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from epsgauge.auditing.compare import Comparison
from epsgauge.errors import InvalidInput
from epsgauge.figures import (
    bars,
    cdfs,
    contours,
    density,
    dependence,
    groups,
    histogram,
    ladder,
    narrowing,
    percentiles,
    roc,
    ruler,
)
from epsgauge.figures.chart import Chart, Drawn
from epsgauge.figures.subject import LEVEL, Subject

if TYPE_CHECKING:
    from epsgauge.auditing.audit import Audit
    from epsgauge.methods.intervals import Intervals
    from epsgauge.stats.posterior import Posterior

CHARTS: dict[str, Chart] = {
    chart.name: chart
    for chart in (
        ruler.CHART,
        density.CHART,
        bars.CHART,
        contours.CHART,
        histogram.CHART,
        roc.CHART,
        percentiles.CHART,
        narrowing.CHART,
        dependence.CHART,
        cdfs.CHART,
        ladder.CHART,
        groups.CHART,
    )
}


def charts_of(subject: Subject) -> list[Chart]:
    """The charts that can be drawn of it."""
    return [chart for chart in CHARTS.values() if subject.kinds & set(chart.of)]


def chart(
    name: str, source: Audit | Comparison | Intervals | Posterior, *, claimed: float | None = None, level: float = LEVEL
) -> Drawn:
    """One chart, to be shown in a notebook or saved; `claimed` goes with counts, `level` with a bare posterior."""
    if name not in CHARTS:
        raise InvalidInput(f"a chart must be one of {', '.join(CHARTS)}, but got {name!r}.")
    subject = source if isinstance(source, Comparison) else Subject.of(source, claimed=claimed, level=level)
    kinds = {"comparison"} if isinstance(subject, Comparison) else subject.kinds
    if not kinds & set(CHARTS[name].of):
        raise InvalidInput(f"the chart {name!r} is of {' or '.join(CHARTS[name].of)}, but got {' and '.join(kinds)}.")
    of = [run.label for run in subject.runs] if isinstance(subject, Comparison) else source
    drawn = CHARTS[name].drawn(subject, prefix=prefix_of(of))
    if drawn.absent:
        raise InvalidInput(drawn.absent)
    return drawn


def prefix_of(thing: object) -> str:
    """A beginning of ids, for pictures of several things on one page."""
    return "n" + hashlib.sha256(repr(thing).encode()).hexdigest()[:10]
