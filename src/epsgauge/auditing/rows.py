"""One row a method: its interval in this audit, and what is left of its promise."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from epsgauge.auditing.level import Lost
from epsgauge.stats.families import EpsAtDelta, Family, Mu
from epsgauge.stats.interval import Kind
from epsgauge.stats.methods import BASELINE, COUNTED, DELTA_FIXED, Counted, Counts, Intervals, Method, Row
from epsgauge.stats.posterior import JEFFREYS
from epsgauge.stats.tally import Tally

# Methods that count guesses of fair bits about all models.
POOLED = ("pooled", "one-run")
SAME_DATA = "the rule was chosen on the data that it is judged on"
SAME_MODELS = "the rule was chosen on other pairs of the judged models"
OTHER_DELTA = "δ is not what the plan declared before results were seen, and this bound is for one δ"
DEPENDENT = (
    "the {m} pairs of a model are not independent of each other; the paper's heuristic takes them as if they were"
)


def perfect(tally: Tally, failed_ones: int, failed_zeros: int) -> Tally:
    n1, n0 = int(tally.n_positive), int(tally.n_negative)
    return Tally(tp=n1 - failed_ones, fn=failed_ones, tn=n0 - failed_zeros, fp=failed_zeros)


@dataclass(frozen=True)
class AuditRow:
    """A method's interval for ε at the audit's δ and level; `note` says why it promises less, or what it rests on."""

    method: str
    label: str
    promise: Kind
    assumptions: tuple[str, ...]
    low: float
    high: float
    tally: Tally
    note: str | None


@dataclass(frozen=True)
class Guaranteed:
    """What guaranteed bounds rest on: one pair a model, failed models as wrong guesses."""

    guesses: Tally  # of the models that did not fail
    failed_ones: int
    failed_zeros: int

    @property
    def tally(self) -> Tally:
        t = self.guesses
        return Tally(tp=t.tp, tn=t.tn, fp=t.fp + self.failed_zeros, fn=t.fn + self.failed_ones)

    @property
    def n_failed(self) -> int:
        return self.failed_ones + self.failed_zeros

    @property
    def perfect(self) -> Tally:
        """If every guess were right, but on models that failed."""
        return perfect(self.tally, self.failed_ones, self.failed_zeros)

    def ends(
        self, method: Counted, *, level: float, delta: float = 0.0, family: Family | None = None
    ) -> tuple[float, float]:
        """An interval, for ε at δ or another quantity, that covers whatever the failed models would have shown.

        The low end takes them as wrong guesses, and is 0 where that is no better than chance. For the high end each
        side's failures are taken as right and as wrong: every corner of the rectangle of rates is in one of the four.
        """
        corners = [(1, 1)] if not self.n_failed else [(0, 0), (0, 1), (1, 0), (1, 1)]
        f1, f0 = np.array(corners).T * np.array([[self.failed_ones], [self.failed_zeros]])
        t = self.guesses
        counts = Counts(
            *(
                np.asarray(cell, np.float64)
                for cell in (t.tp + self.failed_ones - f1, t.tn + self.failed_zeros - f0, t.fp + f0, t.fn + f1)
            )
        )
        of = EpsAtDelta(np.full(len(corners), delta)) if family is None else family
        low, high = method.ends(of, counts, 1.0 - level, JEFFREYS)
        if not self.n_failed:
            return float(low[0]), float(high[0])
        wrong = self.tally
        chance = wrong.tp * wrong.n_negative <= wrong.fp * wrong.n_positive
        return 0.0 if chance else float(low[-1]), float(high.max())


@dataclass(frozen=True)
class Conditions:
    """What the promises depend on."""

    same_data: bool
    pairs_per_model: int
    lost: Lost | None  # where the level was not kept
    same_models: bool = False  # other pairs of the judged models chose the rule
    other_delta: bool = False  # δ is not what was declared


def promise_of(method: Method, on: Conditions) -> tuple[Kind, str | None]:
    """What a method promises under these conditions, and why it is less than it could be."""
    why = [SAME_DATA] if on.same_data and method.name != "simultaneous" else []
    if on.same_models and method.name not in POOLED:  # these hold given all bits but one
        why.append(SAME_MODELS)
    if on.lost is not None and (on.lost.rule or (method.promise == "guaranteed" and not _unharmed(method, on.lost))):
        why.append(on.lost.why)
    if on.other_delta and DELTA_FIXED in method.assumptions:
        why.append(OTHER_DELTA)
    if method.promise != "guaranteed" and method.name != "clusters" and on.pairs_per_model > 1:
        why.append(DEPENDENT.format(m=on.pairs_per_model))
    if not why:
        return method.promise, None
    return "estimate", "; ".join(why)


def _unharmed(method: Method, lost: Lost) -> bool:
    return lost.stopping and not lost.verdict and method.name == "anytime"


def rows(result: Intervals, guaranteed: Guaranteed, on: Conditions) -> tuple[AuditRow, ...]:
    """Every method's row: guaranteed ones of one pair a model with failures, the others of all judged pairs."""
    return tuple(_row(row, result, guaranteed, on) for row in result)


def as_warned(result: Intervals, found: tuple[AuditRow, ...]) -> Intervals:
    """The intervals with the ends of the audit's rows, which the warnings must be about.

    Where several bounds are guaranteed, the guaranteed low end is that of the highest.
    """
    ends = {row.method: (row.low, row.high) for row in found}
    proven = [row.low for row in found if row.promise == "guaranteed" and Mu.assumption not in row.assumptions]
    ends[BASELINE] = (max([ends[BASELINE][0], *proven]), ends[BASELINE][1])
    return replace(result, rows=tuple(replace(r, low=ends[r.method][0], high=ends[r.method][1]) for r in result))


def _row(row: Row, result: Intervals, guaranteed: Guaranteed, on: Conditions) -> AuditRow:
    method = COUNTED[row.method]
    promise, why = promise_of(method, on)
    notes = [why] if why else []
    tally, low, high = result.posterior.tally, float(row.low), float(row.high)
    if method.promise == "guaranteed":
        tally = guaranteed.tally
        low, high = guaranteed.ends(method, delta=float(result.posterior.family.parameter), level=result.level)
        if on.pairs_per_model > 1:
            notes.append(f"of one pair a model, fixed beforehand, of {on.pairs_per_model}")
        if guaranteed.n_failed:
            notes.append(f"{guaranteed.n_failed} failed models count as wrong guesses")
    note = "; ".join(notes) or None
    return AuditRow(method.name, method.label, promise, row.assumptions, low, high, tally, note)
