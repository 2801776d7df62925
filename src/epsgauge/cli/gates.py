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


FailAbove = Annotated[float | None, typer.Option(metavar="EPS", help="Exit with 1 if the lower bound is above EPS.")]
FailOn = Annotated[
    str | None,
    typer.Option(
        metavar="WORDS",
        help="Exit with 1 on any of violation (claim refuted or unsupported), underpowered (too few models to tell) "
        "and weak (attack too weak to tell), for example violation,weak.",
    ),
]
CountEstimates = Annotated[
    bool, typer.Option("--count-estimates", help="Let gates also count bounds that are not guaranteed.")
]
AllowInconclusive = Annotated[
    bool,
    typer.Option("--allow-inconclusive", help="Exit with 0, not 4, if a gate could not have failed."),
]

REFUSED, COULD_NOT_FAIL = 1, 4


@dataclass(frozen=True)
class Gates:
    """What was asked for."""

    fail_above: float | None
    fail_on: str | None
    count_estimates: bool
    allow_inconclusive: bool

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
            say(f"! this gate could not have failed: {reason}", err=True)
        if said.outcome == "fails":
            raise typer.Exit(REFUSED)
        if said.outcome == "could not fail" and not self.allow_inconclusive:
            say("gate: not passed, since it could not have failed (--allow-inconclusive lets it pass).", err=True)
            raise typer.Exit(COULD_NOT_FAIL)
