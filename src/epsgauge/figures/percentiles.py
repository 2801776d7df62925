"""ε at every candidate of the rule: on the judged models, and on those that chose."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from epsgauge.attacks.attack import Attack
from epsgauge.figures.chart import Chart
from epsgauge.figures.labels import LINE, RIGHT, WIDTH, Flag, flags_height, margin, placed, wide
from epsgauge.figures.marks import stems_to
from epsgauge.figures.scales import Scale, tick_names, ticks
from epsgauge.figures.subject import Subject
from epsgauge.figures.svg import Entry, Picture
from epsgauge.figures.words import Words, eps_axis, only_an_estimate
from epsgauge.games.signals import Signals
from epsgauge.numbers import count, number, percent, span
from epsgauge.scores.rules import Given, Judged, SameData, Split, SplitPairs
from epsgauge.scores.search import tally_at
from epsgauge.scores.table import Scores
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.posterior import estimate
from epsgauge.stats.tally import CELLS, Tally

if TYPE_CHECKING:
    from epsgauge.auditing.reading import Reading

POINTS = 32
FEW = 15  # so few candidates are dots


@dataclass(frozen=True)
class Series:
    """Credible interval and median of ε at each candidate, on some models."""

    n_models: int
    tallies: Tally
    low: Floats
    median: Floats
    high: Floats


@dataclass(frozen=True)
class Percentiles:
    """ε against percentile, or against the threshold for attacks that have none; `x` ascends."""

    axis: str
    x: Floats
    thresholds: Floats
    judged: Series
    fit: Series | None
    chosen: int  # place in `x`
    who: str  # which models chose, in words
    level: float
    delta: float

    @property
    def ceiling(self) -> float:
        """High enough for the chosen one and most of the others; an interval of a few guesses may go on above it."""
        medians = [self.judged.median] if self.fit is None else [self.judged.median, self.fit.median]
        usual = float(np.quantile(self.judged.high, 0.75))
        most = float(np.quantile(np.concatenate(medians), 0.9))
        return 1.1 * max(float(self.judged.high[self.chosen]), most, usual, 1e-6)


def percentiles(audit: Reading, signals: Signals | None = None) -> Percentiles:
    """Of an audit; the signals of its run say which candidates its attack had, else they are the scores.

    ε is that of the posterior, which reads an attack that is worse than chance as its opposite.
    """
    judged, settings = audit.judged, audit.settings
    attack = audit.attack
    thresholds = _thresholds(judged, None if attack is None or signals is None else attack.candidates(signals))
    fit = None if judged.same_data or not len(judged.fit) else judged.fit
    tables = [judged.judged] if fit is None else [judged.judged, fit]
    series = _series(tables, thresholds, settings.delta, settings.level)
    found = None if attack is None or signals is None else _percentiles_of(thresholds, attack, signals)
    x = thresholds if found is None else found
    order = np.argsort(x)
    chosen = int(np.flatnonzero(thresholds[order] == judged.threshold)[0])
    return Percentiles(
        axis="threshold" if found is None else "percentile",
        x=x[order],
        thresholds=thresholds[order],
        judged=_ordered(series[0], order),
        fit=None if fit is None else _ordered(series[1], order),
        chosen=chosen,
        who=who_chose(judged),
        level=settings.level,
        delta=settings.delta,
    )


def percentiles_of(subject: Subject) -> Percentiles:
    audit, signals = subject.audit, subject.signals
    if signals is None:
        signals = audit.signals
    shown = percentiles(audit, signals)
    return replace(shown, who="moved by hand") if subject.by_hand else shown


def who_chose(judged: Judged) -> str:
    """On which models the threshold was chosen."""
    models = judged.fit_models
    if isinstance(judged.choice, SameData):
        return "the judged models themselves"
    if isinstance(judged.choice, SplitPairs):
        return f"{len(judged.fit)} other pairs of the judged models"
    if not isinstance(judged.choice, Split):
        return "fixed beforehand"
    if judged.choice.seed is not None:
        return f"{len(models)} models drawn at random"
    if len(models) == 1:
        return f"model {models[0]}"
    whole = int(models[-1] - models[0]) + 1 == len(models)
    return f"models {models[0]}–{models[-1]}" + ("" if whole else f" ({len(models)} of them done)")


def _percentiles_of(thresholds: Floats, attack: Attack, signals: Signals) -> Floats | None:
    """What each threshold stands for; None for an attack that has no percentiles."""
    found = [attack.percentile_of(float(threshold), signals) for threshold in thresholds]
    return None if None in found else np.array(found, dtype=np.float64)


def _thresholds(judged: Judged, candidates: Floats | None) -> Floats:
    """Some of the candidates, evenly spread, with the chosen one."""
    every = np.unique(judged.judged.score) if candidates is None else np.unique(candidates)
    if candidates is None and len(every) > POINTS:  # as many scores between one and the next
        every = np.unique(np.quantile(judged.judged.score, np.linspace(0.02, 0.98, POINTS), method="nearest"))
    some = every[np.unique(np.round(np.linspace(0, len(every) - 1, POINTS)).astype(np.int64))]
    return np.union1d(some, [judged.threshold])


def _series(tables: list[Scores], thresholds: Floats, delta: float, level: float) -> list[Series]:
    """All posteriors at once; equal tallies are computed once."""
    tallies = [tally_at(table, thresholds) for table in tables]
    cells: Ints = np.concatenate([np.stack([getattr(t, c) for c in CELLS]) for t in tallies], axis=1)
    once, back = np.unique(cells, axis=1, return_inverse=True)
    posterior = estimate(Tally(**dict(zip(CELLS, once, strict=True))), delta=delta)
    tail = (1.0 - level) / 2
    ends = np.asarray(posterior.quantile(np.array([[tail], [0.5], [1.0 - tail]])))[:, back.ravel()]
    n = len(thresholds)
    return [
        Series(len(table.models), tally, *(end[i * n : (i + 1) * n] for end in ends))
        for i, (table, tally) in enumerate(zip(tables, tallies, strict=True))
    ]


def _ordered(series: Series, order: Ints) -> Series:
    return Series(series.n_models, series.tallies[order], series.low[order], series.median[order], series.high[order])


# Drawing


def draw(shown: Percentiles, *, prefix: str = "") -> str:
    """ε at every candidate on the judged models, on those that chose, and which one they chose."""
    j, i = shown.judged, shown.chosen
    at = float(shown.x[i])
    who = shown.who if shown.who.startswith(("fixed", "moved")) else f"chosen on {shown.who}"
    words = (
        f"Marked: {shown.axis} {number(at)} ({who}). There the judged models give a median ε of "
        f"{number(float(j.median[i]))}, {percent(shown.level)} interval "
        f"{span(float(j.low[i]), float(j.high[i]))}."
    )
    picture = Picture("percentiles", 0, f"ε against the {shown.axis}", words, prefix)
    values = ticks(0.0, shown.ceiling, 5)
    names = tick_names(values)
    x = Scale(*_room(float(shown.x[0]), float(shown.x[-1])), margin(names), RIGHT)
    chosen = f"{shown.axis} {number(at)}"
    by = f"{chosen}, {who}"
    flags = [Flag(x(at), by, "strong", math.inf)]
    if wide(by, strong=True) > WIDTH - 8:
        flags = [Flag(x(at), who), Flag(x(at), chosen, "strong", math.inf)]
    places = placed(flags, 4, WIDTH - 4)
    top = flags_height(places) + 8
    y = Scale(0.0, shown.ceiling, top + 200, top)
    picture.y_axis(y, x.start, values, names, to=x.end)
    clip = picture.clip(x.start, y.end, x.length, y.length)
    xs = x.all(shown.x)
    picture.band(xs, y.all(j.low), y.all(j.high), "fill-blue faint", clip=clip)
    entries = [Entry("box", "fill-blue pale", f"judged models ({j.n_models}): median, {percent(shown.level)}")]
    if shown.fit is not None:
        picture.path(xs, y.all(shown.fit.median), "line-orange curve dash", clip=clip)
        entries.append(Entry("line", "line-orange curve dash", f"models that chose it ({shown.fit.n_models}): median"))
    picture.path(xs, y.all(j.median), "line-blue curve", clip=clip)
    if len(xs) <= FEW:
        for a, b in zip(xs, y.all(j.median), strict=True):
            picture.dot(a, b, "fill-blue", 3)
    picture.line(x(at), y(float(j.low[i])), x(at), y(float(j.high[i])), "line-blue thick")
    picture.dot(x(at), y(float(j.median[i])), "fill-blue", 6, words)
    picture.flags(stems_to(places, y.start))
    picture.y_label(y, eps_axis(shown.delta))
    picture.value_axis(x, y.start, shown.axis, 6)
    picture.height = picture.key(entries, 20, RIGHT, y.start + 3.4 * LINE)
    return picture.done()


def _room(low: float, high: float) -> tuple[float, float]:
    """A little on both sides; something at all where both are the same."""
    width = high - low
    if not (width > 0 and math.isfinite(width)):
        return (low - 1.0, low + 1.0) if not width > 0 else (low, high)
    return low - 0.02 * width, high + 0.02 * width


# Words


def words(subject: Subject, shown: Percentiles) -> Words:
    if subject.by_hand:
        return Words(
            "The ε that every threshold would have given, as median and interval. The marked one was moved by hand "
            "after results were seen.",
            "No point here estimates anything: one that is picked for its height, by hand or by a search, is too high "
            "by chance. Only the rule of the declared verdict counts.",
        )
    judged = subject.audit.judged
    kind = "credible interval" if subject.promise == "credible" else "interval of a posterior"
    n = len(judged.fit_models)
    counts = "Only the marked rule counts."
    if isinstance(judged.choice, SameData):
        chose = "The marked one was chosen on the very guesses that are judged."
        counts = "The marked one was picked among them on these guesses; only the simultaneous bound allows for that."
    elif isinstance(judged.choice, Given):
        chose = "The marked one was fixed beforehand; no model of this audit was used to choose it."
    elif judged.same_models:
        chose = f"The marked one was chosen on {count(len(judged.fit), 'other pair')} of the judged models."
    else:
        chose = f"The marked one was chosen on {count(n, 'model')} that {'is' if n == 1 else 'are'} not judged."
    return Words(
        f"The ε that every threshold would have given on the judged guesses, as median and {kind}. {chose}",
        "The highest point of the judged curve estimates nothing: as the best of many, it is too high by chance. "
        f"{counts}{only_an_estimate(subject.caveat)}",
    )


CHART = Chart("percentiles", "Every threshold", "attack", ("audit",), percentiles_of, draw, words)
