"""The one table of methods: what each is called, what it promises, what it assumes and how it is computed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.bounds.anytime import anytime_interval, anytime_lower_bound
from epsgauge.bounds.exact import exact_lower_bound
from epsgauge.errors import InvalidInput
from epsgauge.stats import checks, rates
from epsgauge.stats.arrays import Floats
from epsgauge.stats.families import EpsAtDelta, Family, Mu
from epsgauge.stats.interval import Kind
from epsgauge.stats.law import Law
from epsgauge.stats.posterior import JEFFREYS, Posterior, Prior, estimate
from epsgauge.stats.tally import Tally

INDEPENDENT = "each sample comes from a model trained independently of the others (m = 1)"
RULE_FIXED = "the attack's rule was not chosen on these samples"
NO_PEEKING = "the number of samples was fixed beforehand"
CELLS = ("tp", "tn", "fp", "fn")
FAIR_BITS = "each bit is a fair coin that enters one model only"
MODELS_INDEPENDENT = "models are trained independently of each other"
DELTA_FIXED = "δ was fixed beforehand"


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

    def whole(self) -> Tally:
        return Tally(**{c: getattr(self, c).astype(np.int64) for c in CELLS})

    def tallies(self) -> list[Tally]:
        return [Tally(**{c: int(getattr(self, c)[i]) for c in CELLS}) for i in range(len(self.tp))]


@dataclass(frozen=True)
class Method:
    """A way to an interval, and what it promises."""

    name: str
    label: str
    promise: Kind
    meaning: str
    assumptions: tuple[str, ...]


@dataclass(frozen=True)
class Counted(Method):
    """A method that needs the four counts alone; an audit computes the others."""

    # (family, counts, alpha, prior) -> both ends; and one-sided at level 1 − alpha
    ends: Callable[[Family, Counts, float, Prior], tuple[Floats, Floats]]
    lower_bound: Callable[[Family, Counts, float, Prior], Floats]
    quick: bool = False  # for many tallies at once, also where they are not whole, and for every quantity


def _law(family: Family, counts: Counts, prior: Prior) -> Law:
    a, b = prior
    return Law(family, (counts.fn + a, counts.tp + b), (counts.fp + a, counts.tn + b))


def _bayes_ends(family: Family, counts: Counts, alpha: float, prior: Prior) -> tuple[Floats, Floats]:
    return _law(family, counts, prior).ends(alpha)


def _bayes_lower(family: Family, counts: Counts, alpha: float, prior: Prior) -> Floats:
    n = len(counts.tp)
    return _law(family, counts, prior).quantile(np.full(n, alpha), np.full(n, 1 - alpha), np.arange(n))


def _exact_ends(family: Family, counts: Counts, alpha: float, prior: Prior) -> tuple[Floats, Floats]:
    """The low end of the exact bound and the high end of Clopper-Pearson's rectangle, each missed with α/2."""
    high = rates.rectangle_interval(rates.clopper_pearson_limits, family, counts.fnr, counts.fpr, alpha)[1]
    each = zip(counts.tallies(), family.parameter, strict=True)
    return np.array([exact_lower_bound(t, delta=float(d), level=1.0 - alpha / 2) for t, d in each]), high


def _exact_lower(family: Family, counts: Counts, alpha: float, prior: Prior) -> Floats:
    each = zip(counts.tallies(), family.parameter, strict=True)
    return np.array([exact_lower_bound(t, delta=float(d), level=1.0 - alpha, direction="right") for t, d in each])


def _anytime_ends(family: Family, counts: Counts, alpha: float, prior: Prior) -> tuple[Floats, Floats]:
    found = anytime_interval(counts.whole(), delta=family.parameter, level=1.0 - alpha)
    return np.asarray(found.low), np.asarray(found.high)


def _anytime_lower(family: Family, counts: Counts, alpha: float, prior: Prior) -> Floats:
    """It folds by itself; a verdict has a direction, and an attack that is worse than chance gets 0."""
    found = np.asarray(anytime_lower_bound(counts.whole(), delta=family.parameter, level=1.0 - alpha))
    chance = counts.tp * (counts.fp + counts.tn) <= counts.fp * (counts.tp + counts.fn)
    return np.where(chance, 0.0, found)


def _rectangle(limits: rates.Limits) -> dict[str, Any]:
    return {
        "quick": True,
        "ends": lambda family, c, alpha, prior: rates.rectangle_interval(limits, family, c.fnr, c.fpr, alpha),
        "lower_bound": lambda family, c, alpha, prior: rates.rectangle_lower_bound(limits, family, c.fnr, c.fpr, alpha),
    }


METHODS: dict[str, Method] = {
    method.name: method
    for method in (
        Counted(
            "bayes",
            "Bayesian",
            "credible",
            "a posterior under a stated prior, equal-tailed; no confidence bound",
            (INDEPENDENT, RULE_FIXED, "prior Beta(1/2, 1/2) for FNR and FPR"),
            _bayes_ends,
            _bayes_lower,
            quick=True,
        ),
        Counted(
            "jeffreys",
            "Jeffreys",
            "estimate",
            "coverage is near the level and can be below it",
            (INDEPENDENT, RULE_FIXED),
            **_rectangle(rates.jeffreys_limits),
        ),
        Counted(
            "clopper-pearson",
            "Clopper-Pearson",
            "guaranteed",
            "covers with at least the level, proven under its assumptions",
            (INDEPENDENT, RULE_FIXED, NO_PEEKING),
            **_rectangle(rates.clopper_pearson_limits),
        ),
        Counted(
            "exact",
            "Exact",
            "guaranteed",
            "covers with at least the level, proven under its assumptions",
            (INDEPENDENT, RULE_FIXED, NO_PEEKING, DELTA_FIXED),
            _exact_ends,
            _exact_lower,
        ),
        Method(
            "pooled",
            "Pooled",
            "guaranteed",
            "covers with at least the level, however the guesses about one model depend on each other",
            (FAIR_BITS, RULE_FIXED, NO_PEEKING),
        ),
        Method(
            "one-run",
            "One run, f-DP",
            "guaranteed",
            "like pooled, from a whole trade-off curve: of (ε, δ)-DP or, against a claim stated as μ, of Gaussian DP",
            (FAIR_BITS, RULE_FIXED, NO_PEEKING),
        ),
        Method(
            "gaussian",
            "Gaussian DP",
            "guaranteed",
            "an exact bound of μ, and the ε that it is worth, where the trade-off curve is that of Gaussian DP",
            (INDEPENDENT, RULE_FIXED, NO_PEEKING, str(Mu.assumption)),
        ),
        Counted(
            "anytime",
            "Anytime",
            "guaranteed",
            "covers with at least the level at every moment, however often one looks",
            (INDEPENDENT, RULE_FIXED),
            _anytime_ends,
            _anytime_lower,
        ),
        Method(
            "simultaneous",
            "Simultaneous",
            "guaranteed",
            "covers with at least the level after the best threshold was picked on the same samples",
            (INDEPENDENT, NO_PEEKING),
        ),
        Method(
            "clusters",
            "Bayesian, by model",
            "estimate",
            "a posterior that allows for dependence within a model; coverage was simulated, not proven",
            (MODELS_INDEPENDENT, RULE_FIXED),
        ),
    )
}
# What "anytime" is of several pairs a model: a bet on each model.
BETTING = Method(
    *("anytime", METHODS["anytime"].label, METHODS["anytime"].promise, METHODS["anytime"].meaning),
    (MODELS_INDEPENDENT, FAIR_BITS, RULE_FIXED, DELTA_FIXED),
)
COUNTED = {name: method for name, method in METHODS.items() if isinstance(method, Counted)}
QUICK = {name: method for name, method in COUNTED.items() if method.quick}
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

    def _repr_html_(self) -> str:
        from epsgauge.reporting.display import html  # it needs this class

        return html(self)

    def __rich__(self) -> Any:
        from epsgauge.reporting.display import rich

        return rich(self)


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
    cells = {c: np.broadcast_to(getattr(posterior.tally, c), shape).ravel().astype(np.float64) for c in CELLS}
    ends = {
        name: tuple(e.reshape(shape)[()] for e in m.ends(family, Counts(**cells), alpha, posterior.prior))
        for name, m in {BASELINE: COUNTED[BASELINE], **{name: COUNTED[name] for name in chosen}}.items()
    }
    base_low, base_high = ends[BASELINE]
    rows = []
    for name in chosen:
        method, (low, high) = COUNTED[name], ends[name]
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


def _check_counted(name: str, posterior: Posterior) -> None:
    if name not in COUNTED:
        raise InvalidInput(f"methods must be some of {', '.join(COUNTED)}, but got {name!r}.")
    if name not in QUICK and not isinstance(posterior.family, EpsAtDelta):
        raise InvalidInput(f"method {name} bounds ε at δ, but was asked for {posterior.family.symbol}.")


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
