"""The gates of `audit`, `scores` and `compare`: their options, and what they say before a command ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsgauge.cli.terminal import say

if TYPE_CHECKING:
    from epsgauge.auditing.audit import Audit
    from epsgauge.auditing.gate import Gate


FailAbove = Annotated[
    float | None,
    typer.Option(metavar="EPS", help="Exit with 1 if a guaranteed bound, conditional or not, is above EPS."),
]
FailOn = Annotated[
    str | None,
    typer.Option(
        metavar="violation",
        help="Exit with 1 if the claim is refuted or unsupported, and with 4 if the audit cannot decide.",
    ),
]
CountEstimates = Annotated[
    bool, typer.Option("--count-estimates", help="Let gates also count bounds that are not guaranteed.")
]
AllowUndecided = Annotated[
    bool,
    typer.Option("--allow-undecided", help="Exit with 0, not 4, if a gate cannot decide."),
]

REFUSED, UNDECIDED = 1, 4


@dataclass(frozen=True)
class Gates:
    """What was asked for."""

    fail_above: float | None
    fail_on: str | None
    count_estimates: bool
    allow_undecided: bool

    def of(self, *found: Audit, labels: Sequence[str] = ()) -> Gate:
        """What they say of one audit, or of several with their labels."""
        from epsgauge.auditing.gate import gate, gate_all

        asked: dict[str, Any] = {name: getattr(self, name) for name in ("fail_above", "fail_on", "count_estimates")}
        return gate_all(zip(labels, found, strict=True), **asked) if labels else gate(found[0], **asked)

    def to_json(self, said: Gate) -> dict[str, Any] | None:
        """None where no gate was asked for."""
        return None if self.fail_above is None and self.fail_on is None else said.to_json()

    def tell(self, said: Gate) -> None:
        """Say on standard error what they say, and end where they do not pass."""
        for reason in said.reasons:
            say(f"gate: {reason}", err=True)
        for reason in said.uncounted:
            say(f"! not counted, since it is not guaranteed (--count-estimates counts it): {reason}", err=True)
        for reason in said.idle:
            say(f"! cannot decide: {reason}", err=True)
        if said.outcome == "fails":
            raise typer.Exit(REFUSED)
        if said.outcome == "cannot decide" and not self.allow_undecided:
            say("gate: not passed, since it could not have failed (--allow-undecided lets it pass).", err=True)
            raise typer.Exit(UNDECIDED)
