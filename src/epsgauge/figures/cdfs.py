"""Distribution functions of several posteriors on one axis."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.figures.chart import Chart
from epsgauge.figures.labels import LINE, RIGHT, margin
from epsgauge.figures.marks import SHARES, probabilities
from epsgauge.figures.scales import Scale
from epsgauge.figures.style import SERIES
from epsgauge.figures.svg import Entry, Picture
from epsgauge.figures.words import Words
from epsgauge.stats.arrays import Floats
from epsgauge.stats.posterior import Posterior

if TYPE_CHECKING:
    from epsgauge.auditing.compare import Comparison

POINTS = 300
TAIL = 0.005


@dataclass(frozen=True)
class Curve:
    """One posterior's distribution function along the common axis; it starts with the mass at 0."""

    label: str
    cdf: Floats


@dataclass(frozen=True)
class Cdfs:
    """Curves over one axis, which begins at 0 and ends where all of them are at 1 but for a small tail."""

    symbol: str
    x: Floats
    curves: tuple[Curve, ...]


def cdfs(posteriors: Mapping[str, Posterior]) -> Cdfs:
    """The curves of one or more posteriors of the same quantity, by label."""
    quantities = {p.quantity for p in posteriors.values()}
    if len(quantities) != 1 or any(p.shape for p in posteriors.values()):
        raise InvalidInput(
            f"curves are drawn of single posteriors of one quantity, but got {', '.join(sorted(quantities)) or 'none'}."
        )
    first = next(iter(posteriors.values()))
    right = max(float(p.isf(TAIL)) for p in posteriors.values())
    quantiles = [np.asarray(p.quantile(np.linspace(0.01, 0.99, 50))) for p in posteriors.values()]
    x = np.unique(np.concatenate([np.linspace(0.0, right, POINTS), *quantiles]))
    x = x[x <= right]
    return Cdfs(first.family.symbol, x, tuple(Curve(label, np.asarray(p.cdf(x))) for label, p in posteriors.items()))


def cdfs_of(found: Comparison) -> Cdfs:
    """Of the runs of a comparison."""
    return Cdfs("ε", found.grid, tuple(Curve(run.label, run.cdf) for run in found.runs))


# Drawing


def draw(shown: Cdfs, *, prefix: str = "") -> str:
    """Distribution functions of several runs, one stroke each; the first is broad and pale."""
    names = ", ".join(curve.label for curve in shown.curves)
    picture = Picture(
        "cdfs", 0, f"Distribution functions of {shown.symbol}", f"One curve for each of: {names}.", prefix
    )
    x, y = Scale(0.0, float(shown.x[-1]), margin(SHARES), RIGHT), Scale(0.0, 1.0, 232, 12)
    probabilities(picture, y, x)
    entries = []
    for place, curve in enumerate(shown.curves):
        look = SERIES[place % len(SERIES)]
        picture.path([x.start, *x.all(shown.x)], [y.start, *y.all(curve.cdf)], look, tip=curve.label)
        entries.append(Entry("line", look, curve.label))
    picture.y_label(y, "probability of at most this")
    picture.value_axis(x, y.start, shown.symbol)
    picture.height = picture.key(entries, 20, RIGHT, y.start + 3.4 * LINE)
    return picture.done()


# Words


def words(found: Comparison, shown: Cdfs) -> Words:
    return Words(
        "For each run, the posterior probability that ε is at most x. A curve further to the right means a larger "
        "ε; a flat one means that little is known; one that starts above 0 has mass at ε = 0.",
        "A distance between curves is not a test: each curve has the noise of its own models. It points to a cause "
        "only if the runs differ in one thing. A curve promises no more than its run’s interval: where that is an "
        "estimate, so is the curve.",
    )


CHART = Chart("cdfs", "Distribution functions", "comparison", ("comparison",), cdfs_of, draw, words)
