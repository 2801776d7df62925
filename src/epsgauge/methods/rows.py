"""A method's row in an audit: a guaranteed bound at the verdict's level, or an interval, and what it promises."""

from __future__ import annotations

import math
from dataclasses import dataclass

from epsgauge.errors import InvalidInput
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.facts import Facts, left
from epsgauge.methods.method import Method
from epsgauge.numbers import at_least, interval_text, percent
from epsgauge.stats.interval import Kind
from epsgauge.stats.tally import Tally

NOTHING_LEFT = "no promise is left"


@dataclass(frozen=True)
class MethodRow:
    """What a method shows of ε in one audit; `note` says why it promises less, or what it rests on.

    A guaranteed row is a lower bound, one-sided at the level and δ of the verdict; others are two-sided intervals.
    """

    method: str
    label: str
    meaning: str  # of its promise
    promise: Kind
    assumptions: tuple[str, ...]
    level: float
    delta: float
    condition: str | None  # for a bound that does not hold for any training
    short_condition: str  # the same where there is little room
    low: float
    high: float
    tally: Tally  # that it rests on
    counts: str  # which guesses these are, in words
    remark: str  # what sets the method apart from the others, as a sentence
    note: str | None

    @property
    def text(self) -> str:
        """Its numbers: a bound is rounded down."""
        if self.promise == "guaranteed":
            return f"≥ {at_least(self.low)}" + ("" if self.condition is None else f" {self.short_condition}")
        return interval_text(self.low, self.high)

    @property
    def level_text(self) -> str:
        return percent(self.level) + (" one-sided" if self.promise == "guaranteed" else "")


@dataclass(frozen=True)
class Place:
    """Where bounds and intervals are computed."""

    delta: float
    level: float


def row_of(
    method: Method, evidence: Evidence, facts: Facts, *, bounds: Place, intervals: Place, by_mu: bool
) -> MethodRow | None:
    """Of the form that the method takes here; None where the evidence gives no interval. `facts` are for `bounds`."""
    form = method.form(evidence, by_mu=by_mu)
    kept, m = left(method, facts, evidence, form=form), facts.pairs_per_model
    proven = kept.promise == "guaranteed"
    at = bounds if proven else intervals
    found = (form.bounded if proven else form.found)(evidence, delta=at.delta, level=at.level)
    if found is None:
        return None
    of_one = f"of one pair per model out of {m}, fixed beforehand" if form.one_pair and m > 1 else None
    notes = (found.before, *kept.why, found.after, of_one, form.failures(evidence))
    return MethodRow(
        method=form.name,
        label=form.label,
        meaning=form.meaning if kept.promise == form.promise else NOTHING_LEFT,
        promise=kept.promise,
        assumptions=form.assumptions,
        level=at.level,
        delta=at.delta,
        condition=form.condition(evidence),
        short_condition=form.short_condition,
        low=bound_of(form, found.low),
        high=math.inf if proven else bound_of(form, found.high),
        tally=form.rests_on(evidence).tally,
        counts=form.counts(evidence, several=m > 1),
        remark=form.remark,
        note="; ".join(note for note in notes if note) or None,
    )


def bound_of(method: Method, value: float) -> float:
    """What a method gave, as a number: one of the user's may give anything."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not number >= 0:
        raise InvalidInput(f"a bound of {method.label} must be a number that is at least 0, but it gave {value!r}.")
    return number
