"""Rows of an audit that need more than four counts: which guesses, in which order, of which model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from scipy import special

from epsgauge.adjacency import Adjacency
from epsgauge.auditing.adversary import Adversary
from epsgauge.auditing.one_sided import OneSided
from epsgauge.auditing.rows import AuditRow, Conditions, Guaranteed, promise_of
from epsgauge.auditing.verdict import Evidence
from epsgauge.bounds.betting import betting_lower_bound
from epsgauge.bounds.dependence import cluster_interval
from epsgauge.bounds.guesses import Guessed, guesses_of
from epsgauge.bounds.pooled import pooled_bound
from epsgauge.bounds.simultaneous import simultaneous_lower_bound
from epsgauge.runner.plan import AuditSettings
from epsgauge.runner.view import Failure, Run
from epsgauge.scores.rules import Judged, firsts
from epsgauge.scores.search import tally_at
from epsgauge.scores.table import Scores
from epsgauge.stats.arrays import Bools, Floats, Ints
from epsgauge.stats.interval import Kind
from epsgauge.stats.methods import COUNTED, METHODS, Method
from epsgauge.stats.tally import Tally

# Bits as uneven as this, or more, come from fair coins less often than once in a million tables.
UNFAIR = 1e-6
KINDS: tuple[Guessed, ...] = ("all", "positive", "negative")
WHICH = {"all": "all guesses", "positive": "guesses of b = 1", "negative": "guesses of b = 0"}


@dataclass(frozen=True)
class Pool:
    """All guesses about all models; pairs of models that failed count as wrong guesses."""

    judged: Judged
    all_pairs: Guaranteed
    guessed: Guessed

    @property
    def tally(self) -> Tally:
        return self.all_pairs.tally

    @property
    def unfair(self) -> str | None:
        """Why the bits cannot be those of fair coins."""
        ones, n = int(self.tally.n_positive), int(self.tally.n_samples)
        if 2 * special.bdtr(min(ones, n - ones), n, 0.5) >= UNFAIR:
            return None
        return f"it needs fair bits, but {ones} of {n} are 1"

    def row(self, *, delta: float, level: float, on: Conditions) -> AuditRow:
        """No upper end comes from it."""
        method = METHODS["pooled"]
        promise, why = promise_of(method, on)
        bound = pooled_bound(guesses_of(self.tally, self.guessed), delta=delta, level=(1 + level) / 2)
        notes = [f"of {WHICH[self.guessed]}"] + ([why] if why else [])
        if self.unfair:
            promise, notes = "estimate", [*notes, self.unfair]
        if bound.delta_costs > 0.05 * bound.eps_without_delta:
            notes.append(f"δ for each of {bound.guesses.n_bits} bits costs {bound.delta_costs:.2g} of it")
        if self.all_pairs.n_failed:
            notes.append(f"{self.all_pairs.n_failed} pairs of failed models count as wrong guesses")
        return AuditRow(
            method.name, method.label, promise, method.assumptions, bound.eps, math.inf, self.tally, "; ".join(notes)
        )


def pool(judged: Judged, failed_bits: Ints, *, guessed: Guessed | None, delta: float) -> Pool:
    """`guessed` as fixed beforehand; else what would have been best on the models that chose the rule."""
    ones = int(failed_bits.sum())
    if guessed is None:
        guessed = "all" if judged.fit_tally is None else _best(judged.fit_tally, delta)
    return Pool(judged, Guaranteed(judged.tally, ones, len(failed_bits) - ones), guessed)


def _best(tally: Tally, delta: float) -> Guessed:
    """At a level of ½, where few guesses say something too."""
    return max(KINDS, key=lambda kind: OneSided("pooled", 0.5, delta, kind).of(tally))


@dataclass(frozen=True)
class InOrder:
    """The judged models in the order of their numbers, up to the first that is neither done nor failed."""

    one_each: Guaranteed  # the first pair of each
    fn: Ints  # of each model, over all its pairs
    fp: Ints
    pairs: Ints

    @property
    def several(self) -> bool:
        return bool(np.any(self.pairs > 1))

    def lower_bound(self, level: float, delta: float) -> float:
        """Of several pairs a model all count, with a bet on each model; of one pair the likelihood ratio is sharper."""
        if self.several:
            return betting_lower_bound(self.fn, self.fp, self.pairs, delta=delta, level=level)
        return OneSided("anytime", level, delta).of(self.one_each.tally)

    def at_best(self, level: float, delta: float) -> float:
        """If every guess were right, but on models that failed."""
        if self.several:
            none = np.zeros_like(self.fn)
            return betting_lower_bound(none, none, self.pairs, delta=delta, level=level)
        return OneSided("anytime", level, delta).of(self.one_each.perfect)

    def ends(self, *, delta: float, level: float) -> tuple[float, float]:
        """Of several pairs a model there is no upper end."""
        if self.several:
            return self.lower_bound((1 + level) / 2, delta), math.inf
        return self.one_each.ends(COUNTED["anytime"], delta=delta, level=level)

    def row(self, *, delta: float, level: float, on: Conditions) -> AuditRow:
        method = COUNTED["anytime"]
        promise, why = promise_of(method, on)
        low, high = self.ends(delta=delta, level=level)
        notes = [f"of {len(self.pairs)} models in the order of their numbers, up to the first that is missing"]
        notes += [why] if why else []
        if self.one_each.n_failed:
            notes.append(f"{self.one_each.n_failed} failed models count as wrong guesses")
        return AuditRow(
            method.name, method.label, promise, method.assumptions, low, high, self.one_each.tally, "; ".join(notes)
        )


def by_model(scores: Scores, rows: Bools) -> Ints:
    """How many of the rows each model has, in the order of the models."""
    if not len(scores):
        return np.zeros(0, np.int64)
    return np.add.reduceat(rows[scores.by_model].astype(np.int64), scores.starts)


def in_order(judged: Judged, failed: list[Failure], cut: int, run: Run | None) -> InOrder:
    """What is missing in a run is neither done nor failed."""
    scores, end = judged.judged, np.inf
    if run is not None:
        over = np.union1d(run.done, run.failed_models)
        missing = np.setdiff1d(np.arange(cut, run.plan.n_models), over)
        end = float(missing[0]) if len(missing) else np.inf
    if np.isfinite(end):
        scores, failed = scores[scores.model < end], [f for f in failed if f.index < end]
    wrong = scores.bit != (scores.score >= judged.threshold)
    fn, fp, pairs = (
        np.concatenate([each, extra]).astype(np.int64)
        for each, extra in (
            (by_model(scores, wrong & (scores.bit == 1)), [int(f.bits.sum()) for f in failed]),
            (by_model(scores, wrong & (scores.bit == 0)), [len(f.bits) - int(f.bits.sum()) for f in failed]),
            (scores.pairs, [len(f.bits) for f in failed]),
        )
    )
    ones = sum(int(f.bits[0]) for f in failed)
    tally = tally_at(firsts(scores), np.asarray(judged.threshold))
    return InOrder(Guaranteed(tally, ones, len(failed) - ones), fn, fp, pairs)


@dataclass(frozen=True)
class Thresholds:
    """One pair a model at every threshold; a model that failed is wrong at each of them."""

    ins: Floats
    outs: Floats
    one_each: Guaranteed

    def lower_bound(self, level: float, delta: float) -> float:
        return self._bound(self.ins, self.outs, level, delta)

    def at_best(self, level: float, delta: float) -> float:
        g = self.one_each
        ones, zeros = len(self.ins) - g.failed_ones, len(self.outs) - g.failed_zeros
        ins = np.concatenate([np.ones(ones), np.full(g.failed_ones, -1.0)])
        outs = np.concatenate([np.zeros(zeros), np.full(g.failed_zeros, 2.0)])
        return self._bound(ins, outs, level, delta)

    @staticmethod
    def _bound(ins: Floats, outs: Floats, level: float, delta: float) -> float:
        if not len(ins) or not len(outs):
            return 0.0
        return simultaneous_lower_bound(ins, outs, delta=delta, level=level, directions="high").low

    def row(self, *, delta: float, level: float, on: Conditions) -> AuditRow:
        """No upper end comes from it."""
        method = METHODS["simultaneous"]
        promise, why = promise_of(method, on)
        notes = [why] if why else []
        if on.pairs_per_model > 1:
            notes.append(f"of one pair a model, fixed beforehand, of {on.pairs_per_model}")
        if self.one_each.n_failed:
            notes.append(f"{self.one_each.n_failed} failed models count as wrong guesses")
        low = self.lower_bound((1 + level) / 2, delta)
        note = "; ".join(notes) or None
        return AuditRow(
            method.name, method.label, promise, method.assumptions, low, math.inf, self.one_each.tally, note
        )


def thresholds(scores: Scores, one_each: Guaranteed) -> Thresholds:
    first = firsts(scores)
    ins, outs = first.score[first.bit == 1], first.score[first.bit == 0]
    worst, best = np.min(first.score) - 1.0, np.max(first.score) + 1.0
    return Thresholds(
        np.sort(np.concatenate([ins, np.full(one_each.failed_ones, worst)])),  # once for every level
        np.sort(np.concatenate([outs, np.full(one_each.failed_zeros, best)])),
        one_each,
    )


def clusters(judged: Judged, *, delta: float, level: float, on: Conditions) -> AuditRow | None:
    """The posterior that allows for dependence within a model; None for few models, one bit, and one pair each."""
    scores = judged.judged
    if on.pairs_per_model == 1 or len(np.unique(scores.bit)) < 2:
        return None
    wrong = scores.bit != (scores.score >= judged.threshold)
    fn, n1, fp, n0 = (
        by_model(scores, of)
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

    @cached_property
    def pool(self) -> Pool:
        bits = np.concatenate([f.bits for f in self.failed]) if self.failed else np.empty(0, np.int64)
        return pool(self.judged, bits, guessed=self.settings.pooled_guesses, delta=self.settings.delta)

    @cached_property
    def in_order(self) -> InOrder:
        return in_order(self.judged, self.failed, self.cut, self.run)

    @cached_property
    def thresholds(self) -> Thresholds:
        return thresholds(self.judged.judged, self.one_each)

    def rows(self, method: str, on: Conditions) -> tuple[AuditRow, ...]:
        """Those that this audit calls for, and that of the verdict's method."""
        delta, level = self.settings.delta, self.settings.level
        stopped = on.lost is not None and on.lost.stopping
        called_for = {"pooled": on.pairs_per_model > 1, "simultaneous": on.same_data, "anytime": stopped}
        sources: dict[str, Callable[[], Pool | Thresholds | InOrder]] = {
            "pooled": lambda: self.pool,
            "simultaneous": lambda: self.thresholds,
            "anytime": lambda: self.in_order,
        }
        found = [clusters(self.judged, delta=delta, level=level, on=on)]
        found += [
            sources[name]().row(delta=delta, level=level, on=on)
            for name, called in called_for.items()
            if called or name == method
        ]
        return tuple(row for row in found if row is not None)

    def promise(self, method: Method, on: Conditions) -> tuple[Kind, tuple[str, ...]]:
        """What the verdict's bound promises, and a caveat where bits are not fair."""
        promise, _ = promise_of(method, on)
        needs_coins = method.name == "pooled" or (method.name == "anytime" and self.in_order.several)
        if needs_coins and self.pool.unfair:
            return "estimate", (f"The bound promises nothing here: {self.pool.unfair}.",)
        return promise, ()

    def evidence(self, method: Method, who: Adversary, adjacency: Adjacency) -> Evidence:
        """What the verdict rests on."""
        if method.promise != "guaranteed":
            return Evidence(self.judged.tally, 0, 0, who, adjacency)
        if method.name == "pooled":
            g = self.pool.all_pairs
            return Evidence(g.tally, g.failed_ones, g.failed_zeros, who, adjacency, self.pool.guessed)
        if method.name not in ("anytime", "simultaneous"):
            g = self.one_each
            return Evidence(g.tally, g.failed_ones, g.failed_zeros, who, adjacency)
        source: InOrder | Thresholds = self.in_order if method.name == "anytime" else self.thresholds
        g = source.one_each
        return Evidence(
            *(g.tally, g.failed_ones, g.failed_zeros, who, adjacency),
            measured=cache(source.lower_bound),
            at_best=source.at_best,
        )
