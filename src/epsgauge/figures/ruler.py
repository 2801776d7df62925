"""The ruler: the claimed ε, the lower bound of the verdict and the credible interval on one axis."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from epsgauge.errors import InvalidInput
from epsgauge.figures.density import claim_of
from epsgauge.stats.interval import Kind
from epsgauge.stats.methods import METHODS, Intervals
from epsgauge.stats.posterior import estimate

if TYPE_CHECKING:
    from epsgauge.auditing.audit import Audit
    from epsgauge.auditing.verdict import Ruling

# A claim beyond so many times all else is not on the axis: what was measured would shrink to a dot.
FAR = 12.0
# Of bare counts the first of these methods that is there gives the bound.
PROVEN = ("exact", "clopper-pearson")


@dataclass(frozen=True)
class Bound:
    """ε is at least `value`, one-sided at `level`."""

    value: float
    method: str
    label: str
    level: float
    promise: Kind


@dataclass(frozen=True)
class Ruler:
    """Everything at one δ: that of the claim where there is one. The axis goes from 0 to `end`."""

    delta: float
    claimed: float | None
    bound: Bound | None
    low: float
    high: float
    median: float
    level: float
    promise: Kind  # of the interval [low, high]
    kind: Ruling
    largest: float | None  # what the bound would be if every guess were right
    end: float

    @property
    def claim_is_far(self) -> bool:
        return self.claimed is not None and self.claimed > self.end


def ruler(audit: Audit) -> Ruler:
    """Of an audit: the bound is that of its verdict, and the interval is that of its posterior, at the same δ."""
    v, level = audit.verdict, audit.settings.level
    posterior = audit.posterior
    if v.delta != audit.settings.delta:
        posterior = estimate(audit.judged.tally, delta=v.delta)
    ends, median = posterior.interval(level), float(posterior.median())
    bound = Bound(v.bound, v.method, METHODS[v.method].label, v.level, v.promise)
    claimed = None if v.claim is None else v.claim.eps
    low, high = float(ends.low), float(ends.high)
    end = _end([high, v.bound], claimed)
    return Ruler(v.delta, claimed, bound, low, high, median, level, audit["bayes"].promise, v.kind, v.largest, end)


def ruler_of_counts(intervals: Intervals, claimed: float | None) -> Ruler:
    """Of bare counts: the bound is the low end of a proven row, which is one-sided at half the error; no verdict."""
    posterior = intervals.posterior
    if posterior.shape or posterior.quantity != "eps":
        raise InvalidInput(f"a ruler is of one tally and of eps, but got {posterior.quantity}, {posterior.shape}.")
    rows = {row.method: row for row in intervals}
    bound = None
    for name in PROVEN:
        if bound is None and name in rows:
            level = (1.0 + intervals.level) / 2
            bound = Bound(float(rows[name].low), name, METHODS[name].label, level, rows[name].promise)
    claimed = claim_of(claimed)
    ends = posterior.interval(intervals.level)
    low, high, median = float(ends.low), float(ends.high), float(posterior.median())
    end = _end([high] if bound is None else [high, bound.value], claimed)
    return Ruler(
        float(posterior.family.parameter),
        claimed,
        bound,
        low,
        high,
        median,
        intervals.level,
        "credible",
        "no claim",
        None,
        end,
    )


def _end(values: list[float], claimed: float | None) -> float:
    """Where the axis ends: a little beyond all that is finite."""
    most = max([v for v in values if math.isfinite(v)], default=1.0) or 1.0
    if claimed is not None and claimed <= FAR * most:
        most = max(most, claimed)
    return 1.08 * most
