"""A method's row in an audit: its interval, and what is left of its promise."""

from __future__ import annotations

from dataclasses import dataclass

from epsgauge.errors import InvalidInput
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.facts import Facts, left
from epsgauge.methods.method import Method
from epsgauge.stats.interval import Kind
from epsgauge.stats.tally import Tally

NOTHING_LEFT = "no promise is left"


@dataclass(frozen=True)
class MethodRow:
    """A method's interval for ε in one audit; `note` says why it promises less, or what it rests on."""

    method: str
    label: str
    meaning: str  # of its promise
    promise: Kind
    assumptions: tuple[str, ...]
    low: float
    high: float
    tally: Tally  # that it rests on
    counts: str  # which guesses these are, in words
    remark: str  # what sets the method apart from the others, as a sentence
    note: str | None


def row_of(
    method: Method, evidence: Evidence, facts: Facts, *, delta: float, level: float, by_mu: bool
) -> MethodRow | None:
    """Of the form that the method takes here; None where the evidence gives no interval."""
    form = method.form(evidence, by_mu=by_mu)
    found = form.found(evidence, delta=delta, level=level)
    if found is None:
        return None
    kept, m = left(method, facts, evidence, form=form), facts.pairs_per_model
    of_one = f"of one pair per model out of {m}, fixed beforehand" if form.one_pair and m > 1 else None
    notes = (found.before, *kept.why, found.after, of_one, form.failures(evidence))
    return MethodRow(
        method=form.name,
        label=form.label,
        meaning=form.meaning if kept.promise == form.promise else NOTHING_LEFT,
        promise=kept.promise,
        assumptions=form.assumptions,
        low=bound_of(form, found.low),
        high=bound_of(form, found.high),
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
