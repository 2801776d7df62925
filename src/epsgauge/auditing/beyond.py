"""The bounds of an audit that need more than four counts: which guesses, in which order, of which model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.auditing.adversary import Adversary
from epsgauge.auditing.all_thresholds import Thresholds, thresholds
from epsgauge.auditing.in_order import InOrder, in_order
from epsgauge.auditing.pool import Pool, Which, pool
from epsgauge.auditing.rows import AuditRow, Conditions, Guaranteed, promise_of
from epsgauge.auditing.under_gaussian import Gaussian
from epsgauge.auditing.verdict import Bounds, Evidence
from epsgauge.bounds.dependence import cluster_interval
from epsgauge.runner.plan import AuditSettings
from epsgauge.runner.view import Failure, Run
from epsgauge.scores.rules import Judged
from epsgauge.stats import region
from epsgauge.stats.interval import Kind
from epsgauge.stats.methods import FAIR_BITS, METHODS, Method


def clusters(judged: Judged, *, delta: float, level: float, on: Conditions) -> AuditRow | None:
    """The posterior that allows for dependence within a model; None for few models, one bit, and one pair each."""
    scores = judged.judged
    if on.pairs_per_model == 1 or len(np.unique(scores.bit)) < 2:
        return None
    wrong = scores.bit != (scores.score >= judged.threshold)
    fn, n1, fp, n0 = (
        scores.per_model(of)
        for of in (wrong & (scores.bit == 1), scores.bit == 1, wrong & (scores.bit == 0), scores.bit == 0)
    )
    found = cluster_interval(fn, n1, fp, n0, delta=delta, level=level)
    if found is None:
        return None
    method = METHODS["clusters"]
    promise, why = promise_of(method, on)
    notes = [
        f"design effects {found.design_effect[0]:.2g} (FNR) and {found.design_effect[1]:.2g} (FPR) in {found.n_models} "
        "models; it corrects the variance, not the bias of several pairs a model"
    ]
    notes += [why] if why else []
    return AuditRow(
        *(method.name, method.label, promise, method.assumptions, found.low, found.high, judged.tally),
        "; ".join(notes),
    )


@dataclass(frozen=True)
class Beyond:
    """The bounds of one audit that need more than counts; each is made when it is first asked for."""

    judged: Judged
    one_each: Guaranteed
    failed: list[Failure]
    settings: AuditSettings
    cut: int
    run: Run | None
    method: str  # of the verdict

    @cached_property
    def pool(self) -> Pool:
        s = self.settings
        bits = np.concatenate([f.bits for f in self.failed]) if self.failed else np.empty(0, np.int64)
        which = None if s.pooled_guesses is None else Which(s.pooled_guesses, number=s.pooled_number)
        # which guesses count must not follow a δ that is tried afterwards
        delta = s.delta if self.run is None else self.run.declared.delta
        fixed = self.method == "one-run" or self.by_mu
        return pool(self.judged, bits, which, delta=delta, level=s.verdict_level, fixed=fixed)

    @cached_property
    def in_order(self) -> InOrder:
        return in_order(self.judged, self.failed, self.cut, self.run)

    @cached_property
    def thresholds(self) -> Thresholds:
        return thresholds(self.judged.judged, self.one_each)

    @cached_property
    def gaussian(self) -> Gaussian:
        return Gaussian(self.one_each)

    @property
    def by_mu(self) -> bool:
        """Whether the claim is stated as μ, which alone is held against a bound of μ."""
        return self.settings.claimed_mu is not None

    def rows(self, on: Conditions) -> tuple[AuditRow, ...]:
        """Those that this audit calls for, and that of the verdict's method."""
        asked = {"delta": self.settings.delta, "level": self.settings.level}
        stopped = on.lost is not None and on.lost.stopping
        several = on.pairs_per_model > 1
        rows: dict[str, tuple[bool, Callable[[], AuditRow | None]]] = {
            "clusters": (several, lambda: clusters(self.judged, **asked, on=on)),
            "pooled": (several, lambda: self.pool.row(**asked, on=on)),
            "one-run": (several and self.by_mu, lambda: self.pool.curve_row(**asked, on=on, gaussian=self.by_mu)),
            "gaussian": (self.by_mu and not several, lambda: self.gaussian.row(**asked, on=on)),
            "simultaneous": (on.same_data, lambda: self.thresholds.row(**asked, on=on)),
            "anytime": (stopped, lambda: self.in_order.row(**asked, on=on, unfair=self.pool.unfair)),
        }
        found = (row() for name, (called_for, row) in rows.items() if called_for or name == self.method)
        return tuple(row for row in found if row is not None)

    def promise(self, method: Method, on: Conditions) -> tuple[Kind, tuple[str, ...]]:
        """What the verdict's bound promises, and a caveat where bits are not fair."""
        if method.name == "anytime":
            method = self.in_order.method
        if method.name == "pooled":
            method = self.pool.method
        if FAIR_BITS in method.assumptions and self.pool.unfair:
            return "estimate", (f"The bound promises nothing here: {self.pool.unfair}.",)
        return promise_of(method, on)[0], ()

    def evidence(self, method: Method, who: Adversary, adjacency: Adjacency, *, by_mu: bool) -> Evidence:
        """What the verdict rests on; `by_mu`: a curve is that of Gaussian DP."""
        if method.promise != "guaranteed":
            return Evidence(self.judged.tally, 0, 0, who, adjacency)
        p = self.pool if method.name in ("pooled", "one-run") else None
        g = self.in_order.counted if method.name == "anytime" else self.one_each if p is None else p.all_pairs
        out = Evidence(g.tally, g.failed_ones, g.failed_zeros, who, adjacency)
        if p is not None:
            out = replace(out, guesses=p.guesses)
        if p is not None and method.name == "pooled" and p.counted:
            return replace(out, guessed=p.which.guessed)
        bounds = self._bounds(method.name, by_mu)
        return out if bounds is None else replace(out, bounds=bounds)

    def _bounds(self, name: str, by_mu: bool) -> Bounds | None:
        """Of methods whose bound is not known from four counts."""
        if name == "pooled":
            return Bounds(cache(self.pool.lower_bound), self.pool.at_best, self.pool.detectable)
        if name == "one-run" and not by_mu:
            return Bounds(cache(self.pool.curve_bound), self.pool.curve_at_best, self.pool.curve_detectable)
        if name == "one-run":
            return _of_mu(self.pool.mu, self.pool.mu_at_best, self.pool.mu_detectable)
        if name == "gaussian":
            return _of_mu(self.gaussian.mu, self.gaussian.mu_at_best, self.gaussian.detectable)
        if name == "simultaneous" or (name == "anytime" and self.in_order.several):
            of: InOrder | Thresholds = self.in_order if name == "anytime" else self.thresholds
            return Bounds(cache(of.lower_bound), of.at_best, of.detectable)
        return None


def _of_mu(
    measured: Callable[[float], float], at_best: Callable[[float], float], detectable: Callable[[float], float]
) -> Bounds:
    """Bounds of μ as the ε that they are worth."""

    def worth(mu: Callable[[float], float]) -> Callable[[float, float], float]:
        return lambda level, delta: float(region.gaussian_eps(mu(level), delta=delta))

    once = cache(measured)
    return Bounds(worth(once), worth(at_best), worth(detectable), once)
