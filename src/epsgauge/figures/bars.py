"""Intervals of all methods as bars on one axis, each with what it promises and assumes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epsgauge.errors import InvalidInput
from epsgauge.figures.density import claim_of
from epsgauge.stats.interval import Kind
from epsgauge.stats.methods import METHODS, Intervals

if TYPE_CHECKING:
    from epsgauge.auditing.audit import Audit

# A bar that goes on beyond so many times the longest credible one or any low end is cut, with an arrow.
LONG = 2.0


@dataclass(frozen=True)
class MethodBar:
    """One method's interval; `high` may be infinite."""

    method: str
    label: str
    promise: Kind
    low: float
    high: float
    assumptions: tuple[str, ...]
    note: str | None


@dataclass(frozen=True)
class Bars:
    """One bar a method, on an axis from 0 to `end`."""

    delta: float
    level: float
    bars: tuple[MethodBar, ...]
    claimed: float | None
    end: float


def bars(audit: Audit) -> Bars:
    """The rows of an audit."""
    found = [
        MethodBar(row.method, row.label, row.promise, row.low, row.high, row.assumptions, row.note)
        for row in audit.rows
    ]
    claim, delta = audit.claim, audit.settings.delta
    claimed = claim.eps if claim is not None and claim.delta == delta else None
    return _bars(found, delta, audit.settings.level, claimed)


def bars_of_counts(intervals: Intervals, claimed: float | None = None) -> Bars:
    """The rows of bare counts."""
    posterior = intervals.posterior
    if posterior.shape or posterior.quantity != "eps":
        raise InvalidInput(f"bars are of one tally and of eps, but got {posterior.quantity}, {posterior.shape}.")
    found = [
        MethodBar(
            row.method,
            METHODS[row.method].label,
            row.promise,
            float(row.low),
            float(row.high),
            row.assumptions,
            None,
        )
        for row in intervals
    ]
    return _bars(found, float(posterior.family.parameter), intervals.level, claim_of(claimed))


def _bars(found: Sequence[MethodBar], delta: float, level: float, claimed: float | None) -> Bars:
    if not found:
        raise InvalidInput("bars need at least one method, but got none.")
    lows = [bar.low for bar in found if math.isfinite(bar.low)]
    sure = [bar.high for bar in found if bar.method == "bayes" and math.isfinite(bar.high)]
    reach = max([*lows, *sure], default=1.0) or 1.0
    shown = [bar.high for bar in found if bar.high <= LONG * reach]
    if claimed is not None and claimed <= LONG * reach:
        shown.append(claimed)
    return Bars(delta, level, tuple(found), claimed, 1.06 * max([reach, *shown]))
