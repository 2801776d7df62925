"""Subject: what charts are drawn of, an audit or the posterior of bare counts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from epsgauge.errors import InvalidInput
from epsgauge.methods.intervals import Intervals, intervals_of
from epsgauge.methods.table import POSTERIOR
from epsgauge.numbers import span
from epsgauge.stats import checks
from epsgauge.stats.interval import Kind
from epsgauge.stats.posterior import Posterior

if TYPE_CHECKING:
    from epsgauge.auditing.reading import Reading
    from epsgauge.games.signals import Signals

LEVEL = 0.90  # of a posterior that is drawn by itself
POINTS = 400  # of a density
PENDING = "pending"  # the note of an interval that is still being computed


@dataclass(frozen=True)
class Bar:
    """One method's interval; `high` may be infinite."""

    method: str
    label: str
    promise: Kind
    low: float
    high: float
    assumptions: tuple[str, ...] = ()
    note: str | None = None
    said: str | None = None  # of a row of an audit

    @property
    def text(self) -> str:
        return self.said or span(self.low, self.high, outward=self.promise == "guaranteed")


@dataclass(frozen=True, eq=False)
class Subject:
    """A posterior with the intervals of all methods, and the audit that they come from."""

    posterior: Posterior
    level: float
    claimed: float | None  # at the δ of the posterior
    bars: tuple[Bar, ...]
    source: Reading | None = None  # None for bare counts
    signals: Signals | None = None  # of the run, where they are at hand
    pending: bool = False  # the bound is still being computed
    by_hand: bool = False  # the threshold was moved after results were seen
    points: int = POINTS

    @classmethod
    def of(
        cls, source: Reading | Intervals | Posterior, *, claimed: float | None = None, level: float = LEVEL
    ) -> Subject:
        """`claimed` goes with counts, whose accountant nobody knows; `level` goes with a bare posterior."""
        if isinstance(source, Posterior):
            source = intervals_of(single(source), level=level)
        if isinstance(source, Intervals):
            posterior, claimed = single(source.posterior), claim_of(claimed)
            bars = (Bar(r.method, r.label, r.promise, float(r.low), float(r.high), r.assumptions) for r in source)
            return cls(posterior, source.level, claimed, tuple(bars))
        rows = tuple(
            Bar(
                r.method,
                r.label,
                r.promise,
                r.low,
                r.high,
                r.assumptions,
                r.note,
                r.text if r.promise == "guaranteed" else None,
            )
            for r in source.rows
        )
        return cls(
            source.posterior,
            source.settings.level,
            source.claimed_here,
            rows,
            source,
            pending=not source.bounds,
        )

    @property
    def audit(self) -> Reading:
        if self.source is None:
            raise InvalidInput("this chart is of an audit, but got counts alone. Audit a run or scores first.")
        return self.source

    @property
    def kinds(self) -> frozenset[str]:
        """Which charts can be drawn, as `Chart.of` says it."""
        if self.source is not None:
            return frozenset({"audit", "several pairs"} if self.source.pairs_per_model > 1 else {"audit"})
        of_eps = self.posterior.quantity == "eps" and self.posterior.family.assumption is None
        return frozenset({"counts"} if of_eps else {"other quantity"})

    @property
    def delta(self) -> float:
        """Of a posterior of ε."""
        if self.posterior.quantity != "eps":
            raise InvalidInput(f"this chart is of eps, but got a posterior of {self.posterior.quantity}.")
        return float(self.posterior.family.parameter)

    @cached_property
    def promise(self) -> Kind:
        """What the posterior promises here."""
        return next((bar.promise for bar in self.bars if bar.method == POSTERIOR.name), "credible")

    @property
    def caveat(self) -> str | None:
        """Why the posterior promises less than it could."""
        if self.promise == "credible":
            return None
        return next(bar.note for bar in self.bars if bar.method == POSTERIOR.name)


def claim_of(claimed: float | None) -> float | None:
    """A claimed value, checked; an infinite one promises nothing and is beyond every axis."""
    if claimed is None or claimed == math.inf:
        return claimed
    return float(checks.eps(claimed, "claimed"))


def single(posterior: Posterior) -> Posterior:
    if posterior.shape:
        raise InvalidInput(f"a chart is of one tally, but the posterior has the shape {posterior.shape}. Index it.")
    return posterior
