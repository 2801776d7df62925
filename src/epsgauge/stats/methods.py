"""The one table of methods: what each is called, what it promises, what it assumes and how it is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.stats import checks, rates
from epsgauge.stats.arrays import Floats
from epsgauge.stats.families import Family
from epsgauge.stats.interval import Kind
from epsgauge.stats.law import Law
from epsgauge.stats.posterior import JEFFREYS, Posterior, Prior, estimate
from epsgauge.stats.tally import Tally

INDEPENDENT = "each sample comes from a model trained independently of the others (m = 1)"
RULE_FIXED = "the attack's rule was not chosen on these samples"
NO_PEEKING = "the number of samples was fixed beforehand"


@dataclass(frozen=True)
class Counts:
    """Flat counts for the methods; expected counts, which planning uses, need not be whole."""

    tp: Floats
    tn: Floats
    fp: Floats
    fn: Floats

    @property
    def fnr(self) -> tuple[Floats, Floats]:
        """Misses and trials with b = 1."""
        return self.fn, self.fn + self.tp

    @property
    def fpr(self) -> tuple[Floats, Floats]:
        return self.fp, self.fp + self.tn


@dataclass(frozen=True)
class Method:
    """A way from counts to an interval."""

    name: str
    label: str
    promise: Kind
    meaning: str
    assumptions: tuple[str, ...]
    # (family, counts, alpha, prior) -> both ends; and one-sided at level 1 − alpha
    ends: Callable[[Family, Counts, float, Prior], tuple[Floats, Floats]]
    lower_bound: Callable[[Family, Counts, float, Prior], Floats]


def _law(family: Family, counts: Counts, prior: Prior) -> Law:
    a, b = prior
    return Law(family, (counts.fn + a, counts.tp + b), (counts.fp + a, counts.tn + b))


def _bayes_ends(family: Family, counts: Counts, alpha: float, prior: Prior) -> tuple[Floats, Floats]:
    return _law(family, counts, prior).ends(alpha)


def _bayes_lower(family: Family, counts: Counts, alpha: float, prior: Prior) -> Floats:
    n = len(counts.tp)
    return _law(family, counts, prior).quantile(np.full(n, alpha), np.full(n, 1 - alpha), np.arange(n))


def _rectangle(limits: rates.Limits) -> dict[str, Any]:
    return {
        "ends": lambda family, c, alpha, prior: rates.rectangle_interval(limits, family, c.fnr, c.fpr, alpha),
        "lower_bound": lambda family, c, alpha, prior: rates.rectangle_lower_bound(limits, family, c.fnr, c.fpr, alpha),
    }


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "bayes",
            "Bayesian",
            "credible",
            "a posterior under a stated prior, equal-tailed; no confidence bound",
            (INDEPENDENT, RULE_FIXED, "prior Beta(1/2, 1/2) for FNR and FPR"),
            _bayes_ends,
            _bayes_lower,
        ),
        Method(
            "jeffreys",
            "Jeffreys",
            "estimate",
            "coverage is near the level and can be below it",
            (INDEPENDENT, RULE_FIXED),
            **_rectangle(rates.jeffreys_limits),
        ),
        Method(
            "clopper-pearson",
            "Clopper-Pearson",
            "guaranteed",
            "covers with at least the level, proven under its assumptions",
            (INDEPENDENT, RULE_FIXED, NO_PEEKING),
            **_rectangle(rates.clopper_pearson_limits),
        ),
    )
}
BASELINE = "clopper-pearson"


@dataclass(frozen=True)
class Row:
    """One method's interval; `against_baseline` is its width over that of Clopper-Pearson, minus 1."""

    method: str
    promise: Kind
    assumptions: tuple[str, ...]
    low: Any
    high: Any
    against_baseline: Any

    @property
    def width(self) -> Any:
        return self.high - self.low


@dataclass(frozen=True)
class Intervals:
    """Every method's interval for the same posterior; `intervals["bayes"]` is one row."""

    posterior: Posterior
    level: float
    rows: tuple[Row, ...]

    def __getitem__(self, method: str) -> Row:
        return {row.method: row for row in self.rows}[method]

    def __iter__(self) -> Any:
        return iter(self.rows)


def intervals(tally: Tally, *, delta: ArrayLike, level: float = 0.90, prior: Prior = JEFFREYS) -> Intervals:
    """Every method's interval for ε, one row each, with what it promises.

    >>> rows = intervals(Tally(tp=31, tn=996, fp=5, fn=968), delta=1e-5, level=0.90)
    >>> [(row.method, round(float(row.low), 3), round(float(row.high), 3)) for row in rows]
    [('bayes', 1.086, 2.655), ('jeffreys', 0.682, 3.119), ('clopper-pearson', 0.6, 3.294)]
    """
    return intervals_of(estimate(tally, delta=delta, prior=prior), level=level)


def intervals_of(posterior: Posterior, *, level: float) -> Intervals:
    """Every method's interval for the quantity that `posterior` is of."""
    alpha = 1.0 - checks.level(level)
    shape, family = posterior.shape, posterior.family.flat(posterior.shape)
    cells = {
        c: np.broadcast_to(getattr(posterior.tally, c), shape).ravel().astype(np.float64)
        for c in ("tp", "tn", "fp", "fn")
    }
    ends = {
        name: tuple(e.reshape(shape)[()] for e in m.ends(family, Counts(**cells), alpha, posterior.prior))
        for name, m in METHODS.items()
    }
    base_low, base_high = ends[BASELINE]
    rows = []
    for name, method in METHODS.items():
        low, high = ends[name]
        extra = () if posterior.family.assumption is None else (posterior.family.assumption,)
        rows.append(
            Row(
                name,
                method.promise,
                _assumptions(method, posterior) + extra,
                low,
                high,
                _ratio(high - low, base_high - base_low),
            )
        )
    return Intervals(posterior, level, tuple(rows))


def _assumptions(method: Method, posterior: Posterior) -> tuple[str, ...]:
    """The method's own, with the prior that was used, and that of the quantity."""
    a, b = posterior.prior
    return tuple(
        s if not s.startswith("prior") else f"prior Beta({a:g}, {b:g}) for FNR and FPR" for s in method.assumptions
    )


def _ratio(width: Any, baseline: Any) -> Any:
    """width / baseline − 1; NaN where the baseline is infinite or 0: there is nothing to compare."""
    with np.errstate(invalid="ignore", divide="ignore"):
        out = np.where(np.isfinite(baseline) & (baseline > 0), width / baseline - 1.0, np.nan)
    return out[()]
