"""The gates of `audit`, `scores` and `compare`: their options, and what they say before a command ends with 1."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from epsgauge.cli.terminal import say

if TYPE_CHECKING:
    from epsgauge.auditing.gate import Gate


class Kind(StrEnum):
    violation = "violation"
    inconclusive = "inconclusive"


FailAbove = Annotated[float | None, typer.Option(metavar="EPS", help="Exit with 1 if the lower bound is above EPS.")]
FailOn = Annotated[
    Kind | None,
    typer.Option(help="Exit with 1 if the claim is refuted or unsupported, or also if that could not be seen."),
]
CountEstimates = Annotated[
    bool, typer.Option("--count-estimates", help="Let gates count bounds that are not guaranteed too.")
]

REFUSED = 1


def kind_of(fail_on: Kind | None) -> Literal["violation", "inconclusive"] | None:
    return None if fail_on is None else "violation" if fail_on is Kind.violation else "inconclusive"


def tell(said: Gate) -> None:
    """Say on standard error what a gate says, and end where it fails."""
    for reason in said.reasons:
        say(f"gate: {reason}", err=True)
    for reason in said.uncounted:
        say(f"! not counted, since it is not guaranteed (--count-estimates counts it): {reason}", err=True)
    for reason in said.idle:
        say(f"! this gate could not have failed: {reason}", err=True)
    if said.reasons:
        raise typer.Exit(REFUSED)
