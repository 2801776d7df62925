"""intervals(): every method that four counts give, one row each, with what it promises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.display import Displayed, Plotted
from epsgauge.errors import InvalidInput
from epsgauge.methods.method import Method
from epsgauge.methods.table import BASELINE, COUNTED, QUICK
from epsgauge.numbers import interval_text
from epsgauge.stats import checks
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.interval import Kind
from epsgauge.stats.posterior import JEFFREYS, Posterior, Prior, estimate
from epsgauge.stats.tally import CELLS, Tally


@dataclass(frozen=True)
class Row:
    """One method's interval; `against_baseline` is its width over that of Clopper-Pearson, minus 1."""

    method: str
    label: str
    meaning: str  # of its promise
    promise: Kind
    assumptions: tuple[str, ...]
    low: Any
    high: Any
    against_baseline: Any

    @property
    def text(self) -> str:
        """The interval of one tally; a guaranteed one is rounded outward."""
        return interval_text(float(self.low), float(self.high), outward=self.promise == "guaranteed")

    @property
    def width(self) -> Any:
        return self.high - self.low


@dataclass(frozen=True)
class Intervals(Displayed, Plotted):
    """Every method's interval for the same posterior; `intervals["bayes"]` is one row."""

    posterior: Posterior
    level: float
    rows: tuple[Row, ...]

    def __getitem__(self, method: str) -> Row:
        return {row.method: row for row in self.rows}[method]

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows)


def intervals(
    tally: Tally,
    *,
    delta: ArrayLike,
    level: float = 0.90,
    prior: Prior = JEFFREYS,
    methods: Iterable[str] | None = None,
) -> Intervals:
    """Intervals for ε by several methods, one row each, with what it promises.

    `methods` are names of `COUNTED`; if not given, all that take no time worth mentioning: not "exact", which takes a
    moment for each tally, nor "anytime".

    >>> rows = intervals(Tally(tp=31, tn=996, fp=5, fn=968), delta=1e-5, level=0.90)
    >>> [(row.method, round(float(row.low), 3), round(float(row.high), 3)) for row in rows]
    [('bayes', 1.086, 2.655), ('jeffreys', 0.682, 3.119), ('clopper-pearson', 0.6, 3.294)]
    >>> round(float(intervals(rows.posterior.tally, delta=1e-5, methods=["exact"])["exact"].low), 2)
    1.06
    """
    return intervals_of(estimate(tally, delta=delta, prior=prior), level=level, methods=methods)


def intervals_of(posterior: Posterior, *, level: float, methods: Iterable[str] | None = None) -> Intervals:
    """The methods' intervals for the quantity that `posterior` is of."""
    chosen = list(QUICK if methods is None else methods)
    for name in chosen:
        _check_counted(name, posterior)
    alpha = 1.0 - checks.level(level)
    shape, family = posterior.shape, posterior.family.flat(posterior.shape)
    counts = Counts(*(np.broadcast_to(getattr(posterior.tally, c), shape).ravel().astype(np.float64) for c in CELLS))
    ends = {
        name: tuple(e.reshape(shape)[()] for e in COUNTED[name].ends(family, counts, alpha, posterior.prior))
        for name in dict.fromkeys((BASELINE.name, *chosen))
    }
    base_low, base_high = ends[BASELINE.name]
    extra = () if posterior.family.assumption is None else (posterior.family.assumption,)
    rows = []
    for name in chosen:
        method, (low, high) = COUNTED[name], ends[name]
        ratio = _ratio(high - low, base_high - base_low)
        assumed = (*_assumptions(method, posterior), *extra)
        rows.append(Row(name, method.label, method.meaning, method.promise, assumed, low, high, ratio))
    return Intervals(posterior, level, tuple(rows))


def _check_counted(name: str, posterior: Posterior) -> None:
    if name not in COUNTED:
        raise InvalidInput(f"methods must be some of {', '.join(COUNTED)}, but got {name!r}.")
    if name not in QUICK and not isinstance(posterior.family, EpsAtDelta):
        raise InvalidInput(f"method {name} bounds ε at δ, but was asked for {posterior.family.symbol}.")


def _assumptions(method: Method, posterior: Posterior) -> tuple[str, ...]:
    """The method's own, with the prior that was used."""
    a, b = posterior.prior
    return tuple(
        s if not s.startswith("prior") else f"prior Beta({a:g}, {b:g}) for FNR and FPR" for s in method.assumptions
    )


def _ratio(width: Any, baseline: Any) -> Any:
    """width / baseline − 1; NaN where the baseline is infinite or 0: there is nothing to compare."""
    with np.errstate(invalid="ignore", divide="ignore"):
        out = np.where(np.isfinite(baseline) & (baseline > 0), width / baseline - 1.0, np.nan)
    return out[()]
