"""Words: what is said beside a chart, and the phrases that several charts share."""

from __future__ import annotations

from dataclasses import dataclass


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
