"""Words: what is said beside a chart, and the phrases that several charts share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from epsgauge.numbers import count
from epsgauge.stats.methods import METHODS

if TYPE_CHECKING:
    from epsgauge.auditing.audit import Audit


@dataclass(frozen=True)
class Words:
    """What a chart shows, and what it does not; each is a few short sentences."""

    shows: str
    hides: str


def eps_axis(delta: float) -> str:
    return f"ε at δ = {delta:g}"


def only_an_estimate(caveat: str | None) -> str:
    """Why the posterior promises less than it could, as a sentence with a blank before it."""
    return "" if caveat is None else f" The posterior is an estimate here: {caveat}."


def rests_on(audit: Audit, method: str) -> str:
    """Which guesses a method counts."""
    from epsgauge.auditing.rows import POOLED

    several, failed = audit.pairs_per_model > 1, audit.guaranteed.n_failed
    pairs = "all judged pairs"
    if METHODS[method].promise != "guaranteed":
        return pairs
    if several and method not in (*POOLED, "anytime"):
        pairs = "one pair per model, fixed beforehand"
    if not failed:
        return pairs
    none = ", or as none where only the surest count" if method in POOLED else ""
    return f"{pairs}, with {count(failed, 'failed model')} as wrong guesses{none}"
