"""The judged models in the order of their numbers, and the bounds that hold at every moment."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from epsgauge.auditing.one_sided import POWER, REDRAWN, OneSided
from epsgauge.auditing.rows import AuditRow, Conditions, Guaranteed, promise_of
from epsgauge.bounds.betting import betting_lower_bound
from epsgauge.runner.view import Failure, Run
from epsgauge.scores.rules import Judged, Split, SplitPairs, firsts
from epsgauge.scores.search import tally_at
from epsgauge.stats.arrays import Bools, Ints
from epsgauge.stats.methods import BETTING, COUNTED, Method
from epsgauge.stats.tally import Tally


@dataclass(frozen=True)
class InOrder:
    """Up to the first model that is neither done nor failed; those that failed stand last."""

    one_each: Guaranteed  # the first pair of each
    fn: Ints  # of each model, over all its pairs
    fp: Ints
    ones: Ints  # pairs with b = 1
    pairs: Ints

    @property
    def several(self) -> bool:
        return bool(np.any(self.pairs > 1))

    @property
    def method(self) -> Method:
        """With what it assumes here."""
        return BETTING if self.several else COUNTED["anytime"]

    @property
    def counted(self) -> Guaranteed:
        """The guesses that count: of several pairs a model all of them."""
        if not self.several:
            return self.one_each
        ones, zeros = int(self.ones[self._failed].sum()), int((self.pairs - self.ones)[self._failed].sum())
        fn, fp, n1, n = (int(x.sum()) for x in (self.fn, self.fp, self.ones, self.pairs))
        return Guaranteed(Tally(tp=n1 - fn, tn=n - n1 - fp, fp=fp - zeros, fn=fn - ones), ones, zeros)

    def lower_bound(self, level: float, delta: float) -> float:
        """Of several pairs a model all count, with a bet on each model; of one pair the likelihood ratio is sharper."""
        if self.several:
            return betting_lower_bound(self.fn, self.fp, self.pairs, delta=delta, level=level)
        return OneSided("anytime", level, delta).of(self.one_each.tally)

    def at_best(self, level: float, delta: float) -> float:
        """If every guess were right, but on models that failed."""
        if self.several:
            fn, fp = (np.where(self._failed, wrong, 0) for wrong in (self.fn, self.fp))
            return betting_lower_bound(fn, fp, self.pairs, delta=delta, level=level)
        return OneSided("anytime", level, delta).of(self.one_each.perfect)

    def detectable(self, level: float, delta: float) -> float:
        """Claims below it are refuted with a probability of `POWER` by as many models like these."""
        if not self.several:
            return OneSided("anytime", level, delta).detectable(self.one_each.tally)
        rng = np.random.default_rng(0)
        drawn = [rng.integers(0, len(self.pairs), len(self.pairs)) for _ in range(REDRAWN)] if len(self.pairs) else []
        found = [betting_lower_bound(self.fn[i], self.fp[i], self.pairs[i], delta=delta, level=level) for i in drawn]
        return float(np.quantile(found, 1.0 - POWER)) if found else 0.0

    def ends(self, *, delta: float, level: float) -> tuple[float, float]:
        """Of several pairs a model there is no upper end."""
        if self.several:
            return self.lower_bound((1 + level) / 2, delta), math.inf
        return self.one_each.ends(COUNTED["anytime"], delta=delta, level=level)

    def row(self, *, delta: float, level: float, on: Conditions, unfair: str | None) -> AuditRow:
        """`unfair`: why the bits are no fair coins, which several pairs a model need."""
        promise, why = promise_of(self.method, on)
        low, high = self.ends(delta=delta, level=level)
        notes = [f"of {len(self.pairs)} models in the order of their numbers, up to the first that is missing"]
        notes += [why] if why else []
        if unfair and self.several:
            promise, notes = "estimate", [*notes, unfair]
        if self.one_each.n_failed:
            notes.append(f"{self.one_each.n_failed} failed models count as wrong guesses")
        m = self.method
        return AuditRow(m.name, m.label, promise, m.assumptions, low, high, self.counted.tally, "; ".join(notes))

    @property
    def _failed(self) -> Bools:
        return np.arange(len(self.pairs)) >= len(self.pairs) - self.one_each.n_failed


def failures(run: Run, judged: Judged, cut: int) -> list[Failure]:
    """Models that failed among those to be judged, with the bits of the pairs that are."""
    chose = judged.choice.fit_pairs if isinstance(judged.choice, SplitPairs) else 0
    return [replace(f, bits=f.bits[chose:]) for f in run.failed if f.index >= cut]


def in_order(judged: Judged, failed: list[Failure], cut: int, run: Run | None) -> InOrder:
    """What is missing in a run is neither done nor failed; while a model that chooses the rule is, none counts."""
    scores, end = judged.judged, np.inf
    if run is not None:
        over = np.union1d(run.done, run.failed_models)
        missing = np.setdiff1d(np.arange(run.plan.n_models), over)
        end = float(missing[0]) if len(missing) else np.inf
        if isinstance(judged.choice, Split) and end < cut:
            end = 0.0
    if np.isfinite(end):
        scores, failed = scores[scores.model < end], [f for f in failed if f.index < end]
    one, wrong = scores.bit == 1, scores.bit != (scores.score >= judged.threshold)
    of_failed = [int(f.bits.sum()) for f in failed]
    fn, fp, ones, pairs = (
        np.concatenate([each, extra]).astype(np.int64)
        for each, extra in (
            (scores.per_model(wrong & one), of_failed),
            (scores.per_model(wrong & ~one), [len(f.bits) - n for f, n in zip(failed, of_failed, strict=True)]),
            (scores.per_model(one), of_failed),
            (scores.pairs, [len(f.bits) for f in failed]),
        )
    )
    first = sum(int(f.bits[0]) for f in failed)
    tally = tally_at(firsts(scores), np.asarray(judged.threshold))
    return InOrder(Guaranteed(tally, first, len(failed) - first), fn, fp, ones, pairs)
