"""One pair a model at every threshold: the bound that holds after the best of them was picked."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from epsgauge.auditing.one_sided import POWER, REDRAWN
from epsgauge.auditing.rows import AuditRow, Conditions, Guaranteed, promise_of
from epsgauge.bounds.simultaneous import simultaneous_lower_bound
from epsgauge.scores.rules import firsts
from epsgauge.scores.table import Scores
from epsgauge.stats.arrays import Floats
from epsgauge.stats.methods import METHODS

# Of more scores what the bound would detect is not computed.
MOST = 4_000


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

    def detectable(self, level: float, delta: float) -> float | None:
        """Claims below it are refuted with a probability of `POWER` by as many scores like these."""
        if len(self.ins) + len(self.outs) > MOST:
            return None
        rng = np.random.default_rng(0)
        drawn = ([rng.choice(side, len(side)) for side in (self.ins, self.outs)] for _ in range(REDRAWN))
        return float(np.quantile([self._bound(ins, outs, level, delta) for ins, outs in drawn], 1.0 - POWER))

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
