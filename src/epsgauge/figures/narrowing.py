"""How the credible interval narrowed as judged models came in, and how many would halve it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.methods import QUICK, Counts
from epsgauge.stats.posterior import JEFFREYS, estimate
from epsgauge.stats.tally import CELLS, Tally

if TYPE_CHECKING:
    from epsgauge.auditing.audit import Audit

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


def narrowing(audit: Audit) -> Narrowing:
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
    claim = audit.claim
    claimed = claim.eps if claim is not None and claim.delta == settings.delta else None
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
    return QUICK["bayes"].ends(EpsAtDelta(np.full(len(times), delta)), counts, 1.0 - level, JEFFREYS)
