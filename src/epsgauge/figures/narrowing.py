"""How the credible interval narrowed as judged models came in, and how many would halve it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.figures.chart import Chart
from epsgauge.figures.labels import LINE, RIGHT, WIDTH, Flag, flags_height, margin, placed
from epsgauge.figures.scales import Scale, tick_names, ticks
from epsgauge.figures.subject import Subject
from epsgauge.figures.svg import Entry, Picture
from epsgauge.figures.words import Words, eps_axis, only_an_estimate
from epsgauge.methods.table import POSTERIOR
from epsgauge.numbers import count, grouped, number, percent, span
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.posterior import JEFFREYS, estimate
from epsgauge.stats.tally import CELLS, Tally

if TYPE_CHECKING:
    from epsgauge.auditing.reading import Reading

POINTS = 26
# So many times as many models are looked at, at most, for half the width.
MOST = 100.0


@dataclass(frozen=True)
class Narrowing:
    """Interval and median of ε after the first `n` judged models, in the order of their numbers."""

    n: Ints
    low: Floats
    median: Floats
    high: Floats
    level: float
    delta: float
    claimed: float | None
    half: int | None  # judged models in all for half the width, if the rates stay; None: not even 100 times as many
    half_ends: tuple[float, float] | None  # the interval that is expected then

    @property
    def width(self) -> float:
        """Now."""
        return float(self.high[-1] - self.low[-1])

    @property
    def ceiling(self) -> float:
        """High enough for the later half of the picture, and for the claim where it is near."""
        most = max(float(self.high[len(self.n) // 2 :].max()), 1e-6)
        near = self.claimed is not None and self.claimed < 2.5 * most
        return 1.1 * (max(most, self.claimed) if near and self.claimed is not None else most)


def narrowing(audit: Reading) -> Narrowing:
    """Of all judged pairs at the audit's threshold."""
    scores, settings = audit.judged.judged, audit.settings
    said, bit = scores.score >= audit.judged.threshold, scores.bit == 1
    cells = {"tp": said & bit, "tn": ~said & ~bit, "fp": said & ~bit, "fn": ~said & bit}
    ends = np.append(scores.starts[1:], len(scores)) - 1  # each model's last row in the order of models
    n = checkpoints(len(scores.models))
    at = ends[n - 1]
    tally = Tally(**{name: np.cumsum(rows[scores.by_model])[at] for name, rows in cells.items()})
    tail = (1.0 - settings.level) / 2
    low, median, high = np.asarray(
        estimate(tally, delta=settings.delta).quantile(np.array([[tail], [0.5], [1.0 - tail]]))
    )
    claimed = audit.claimed_here
    found = half_width(audit.judged.tally, delta=settings.delta, level=settings.level)
    half = None if found is None else math.ceil(found[0] * int(n[-1]))
    return Narrowing(
        n, low, median, high, settings.level, settings.delta, claimed, half, None if found is None else found[1]
    )


def checkpoints(n_models: int) -> Ints:
    """About POINTS numbers of models up to all of them, denser where there are few."""
    if n_models < 1:
        raise InvalidInput("a picture of how an interval narrowed needs a judged model, but there is none.")
    out: Ints = np.unique(np.round(np.geomspace(1, n_models, POINTS)).astype(np.int64))
    return out


def half_width(tally: Tally, *, delta: float, level: float) -> tuple[float, tuple[float, float]] | None:
    """How many times the counts give half the width, with the interval then; None where 100 times do not."""
    grid = np.geomspace(1.0, MOST, 16)
    low, high = _grown(tally, grid, delta, level)
    wanted = 0.5 * float(high[0] - low[0])
    wide = np.flatnonzero(high - low > wanted)
    if not wanted > 0 or wide[-1] == len(grid) - 1:
        return None
    grid = np.geomspace(grid[wide[-1]], grid[wide[-1] + 1], 8)
    low, high = _grown(tally, grid, delta, level)
    last = int(np.flatnonzero(high - low > wanted)[-1])
    at, width = np.log(grid[last : last + 2]), np.log((high - low)[last : last + 2])
    share = float((width[0] - math.log(wanted)) / (width[0] - width[1]))
    ends = [float(e[last] + share * (e[last + 1] - e[last])) for e in (low, high)]
    return math.exp(at[0] + share * (at[1] - at[0])), (ends[0], ends[1])


def _grown(tally: Tally, times: Floats, delta: float, level: float) -> tuple[Floats, Floats]:
    """The interval of so many times the counts."""
    counts = Counts(**{c: times * float(getattr(tally, c)) for c in CELLS})
    return POSTERIOR.ends(EpsAtDelta(np.full(len(times), delta)), counts, 1.0 - level, JEFFREYS)


# Drawing


def draw(shown: Narrowing, *, prefix: str = "") -> str:
    """Median and interval of ε after each number of judged models."""
    n = int(shown.n[-1])
    now = span(float(shown.low[-1]), float(shown.high[-1]))
    words = f"After {count(n, 'judged model')} the {percent(shown.level)} interval is {now}. {_half_text(shown)}"
    picture = Picture("narrowing", 0, "How the interval for ε narrowed", words, prefix)
    last = max(n, 2) if shown.half is None else max(shown.half, 2)
    values = ticks(0.0, shown.ceiling, 5)
    names = tick_names(values)
    x = Scale(1.0, float(last), margin(names), RIGHT, True)
    flags = [Flag(x(float(n)), f"{grouped(n)} models: {now}", "strong text-blue")]
    if shown.half is not None:
        flags.append(Flag(x(float(shown.half)), f"half the width: {grouped(shown.half)}", "text-muted"))
    places = placed(flags, 4, WIDTH - 4)
    top = flags_height(places) + 8
    y = Scale(0.0, shown.ceiling, top + 200, top)
    picture.y_axis(y, x.start, values, names, to=x.end)
    clip = picture.clip(x.start, y.end, x.length, y.length)
    xs = x.all(shown.n)
    picture.band(xs, y.all(shown.low), y.all(shown.high), "fill-blue faint", clip=clip)
    picture.path(xs, y.all(shown.median), "line-blue curve", clip=clip)
    if shown.claimed is not None:
        _claim(picture, shown.claimed, x, y)
    picture.dot(xs[-1], y(float(shown.median[-1])), "fill-blue", 5, words)
    picture.line(xs[-1], y(float(shown.low[-1])), xs[-1], y(float(shown.high[-1])), "line-blue curve")
    if shown.half is not None and shown.half_ends is not None:
        place = x(float(shown.half))
        low, high = shown.half_ends
        picture.line(xs[-1], y(float(shown.low[-1])), place, y(low), "line-muted thin dash")
        picture.line(xs[-1], y(float(shown.high[-1])), place, y(high), "line-muted thin dash")
        picture.line(place, y(low), place, y(high), "line-muted thick")
    picture.flags(places)
    marks = [v for k in range(9) for v in (10**k,) if v <= last]
    if len(marks) < 3:
        marks = [v for k in range(3) for v in (10**k, 2 * 10**k, 5 * 10**k) if v <= last]
    picture.x_axis(x, y.start, [float(m) for m in marks], [grouped(m) for m in marks], "judged models (logarithmic)")
    picture.y_label(y, eps_axis(shown.delta))
    entries = [Entry("box", "fill-blue pale", f"median and {percent(shown.level)} interval")]
    picture.height = picture.key(entries, 20, RIGHT, y.start + 3.4 * LINE)
    return picture.done()


def _half_text(shown: Narrowing) -> str:
    """How many models would halve the width, as a sentence."""
    if shown.half is None:
        return f"At the same rates, even {MOST:g} times as many would not halve its width."
    more = shown.half - int(shown.n[-1])
    many = f"{grouped(shown.half)} judged models ({grouped(more)} more)"
    return f"Halving that width takes about {many}, if the rates stay as they are."


def _claim(picture: Picture, claimed: float, x: Scale, y: Scale) -> None:
    if y.holds(claimed):
        picture.line(x.start, y(claimed), x.end, y(claimed), "claim")
        picture.text(x.start + 6, y(claimed) - 6, f"claimed ε = {number(claimed)}", "halo strong")
    else:
        picture.text(x.start + 6, y.end + LINE - 4, f"↑ claimed ε = {number(claimed)}", "halo strong")


# Words


def words(subject: Subject, shown: Narrowing) -> Words:
    need = "Not even 100 times as many models would halve its width, if both error rates stay the same."
    if shown.half is not None:
        need = f"Halving its width takes about {shown.half} judged models in all; there are {shown.n[-1]} now."
    return Words(
        f"The posterior’s median and interval as judged models were added, in the order of their numbers. {need}",
        "The number of models is a forecast: it assumes that both error rates stay as measured. Stopping a run because "
        f"of this picture costs the level; only the anytime bound allows it.{only_an_estimate(subject.caveat)}",
    )


CHART = Chart(
    "narrowing",
    "Model by model",
    "narrowing",
    ("audit",),
    lambda subject: narrowing(subject.audit),
    draw,
    words,
)
