"""ε at every candidate of the rule: on the judged models, and on those that chose."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epsgauge.attacks.attack import Attack
from epsgauge.games.signals import Signals
from epsgauge.scores.rules import Judged, SameData, Split, SplitPairs
from epsgauge.scores.search import tally_at
from epsgauge.scores.table import Scores
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.posterior import estimate
from epsgauge.stats.tally import Tally

if TYPE_CHECKING:
    from epsgauge.auditing.audit import Audit

POINTS = 32


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


def percentiles(audit: Audit, signals: Signals | None = None) -> Percentiles:
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


def who_chose(judged: Judged) -> str:
    """Which models chose the threshold."""
    models = judged.fit_models
    if isinstance(judged.choice, SameData):
        return "the judged models themselves"
    if isinstance(judged.choice, SplitPairs):
        return f"{len(judged.fit)} other pairs of the judged models"
    if not isinstance(judged.choice, Split):
        return "fixed beforehand"
    if judged.choice.seed is not None:
        return f"{len(models)} models, drawn at random"
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
    cells: Ints = np.concatenate([np.stack([t.tp, t.tn, t.fp, t.fn]) for t in tallies], axis=1)
    once, back = np.unique(cells, axis=1, return_inverse=True)
    posterior = estimate(Tally(tp=once[0], tn=once[1], fp=once[2], fn=once[3]), delta=delta)
    tail = (1.0 - level) / 2
    ends = np.asarray(posterior.quantile(np.array([[tail], [0.5], [1.0 - tail]])))[:, back.ravel()]
    n = len(thresholds)
    return [
        Series(len(table.models), tally, *(end[i * n : (i + 1) * n] for end in ends))
        for i, (table, tally) in enumerate(zip(tables, tallies, strict=True))
    ]


def _ordered(series: Series, order: Ints) -> Series:
    return Series(series.n_models, series.tallies[order], series.low[order], series.median[order], series.high[order])
