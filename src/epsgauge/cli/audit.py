"""`epsgauge audit`: judges a run, and is a gate where one is wanted."""

from __future__ import annotations

from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsgauge.cli.terminal import AsJson, console, print_json
from epsgauge.errors import InvalidInput

if TYPE_CHECKING:
    from epsgauge.auditing.audit import Audit


class Gate(StrEnum):
    violation = "violation"


Delta = Annotated[float | None, typer.Option(help="The δ at which ε is estimated.")]
Level = Annotated[float | None, typer.Option(help="Level of the intervals.")]
ClaimedEps = Annotated[float | None, typer.Option(help="An ε that is promised, with the two options that follow.")]
ClaimedDelta = Annotated[float | None, typer.Option(help="Its δ.")]
ClaimedAdjacency = Annotated[str | None, typer.Option(help="Its adjacency: substitute or add-remove.")]
FailAbove = Annotated[float | None, typer.Option(metavar="EPS", help="Exit 1 if the lower bound is above it.")]
FailOn = Annotated[Gate | None, typer.Option(help="Exit 1 if the verdict is this.")]

REFUSED = 1


def audit(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    delta: Delta = None,
    level: Level = None,
    attack: Annotated[str | None, typer.Option(help="percentile, loss or difference.")] = None,
    fit_models: Annotated[int | None, typer.Option(help="The first so many models choose the rule.")] = None,
    percentile: Annotated[float | None, typer.Option(help="A percentile that was fixed beforehand, instead.")] = None,
    threshold: Annotated[float | None, typer.Option(help="A threshold that was fixed beforehand, instead.")] = None,
    same_data: Annotated[bool, typer.Option("--same-data", help="Choose on the judged data: an estimate.")] = False,
    target_fpr: Annotated[float | None, typer.Option(help="Choose the rule for this FPR.")] = None,
    verdict_method: Annotated[str | None, typer.Option(help="exact, pooled, anytime, clopper-pearson, bayes …")] = None,
    verdict_level: Annotated[float | None, typer.Option(help="One-sided level of the verdict's bound.")] = None,
    claimed_eps: ClaimedEps = None,
    claimed_delta: ClaimedDelta = None,
    claimed_adjacency: ClaimedAdjacency = None,
    fail_above: FailAbove = None,
    fail_on: FailOn = None,
    curve: Annotated[
        bool, typer.Option("--curve", help="Also hold DP-SGD's whole trade-off curve against the rates: some seconds.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Judge a run: attack, rule, tally, posterior, bounds, accountant, verdict. Options replace what the plan says."""
    from epsgauge.auditing.audit import audit as audit_of
    from epsgauge.runner.view import Run

    settings: dict[str, Any] = {
        "delta": delta,
        "level": level,
        "attack": attack,
        "fit_models": fit_models,
        "percentile": percentile,
        "threshold": threshold,
        "target_fpr": target_fpr,
        "verdict_method": verdict_method,
        "verdict_level": verdict_level,
        "claimed_eps": claimed_eps,
        "claimed_delta": claimed_delta,
        "claimed_adjacency": claimed_adjacency,
    }
    given = {name: value for name, value in settings.items() if value is not None}
    found = audit_of(Run.open(folder), **given, **rule_of(given, same_data))
    judged(found, fail_above, fail_on, as_json, curve=curve)


def rule_of(given: dict[str, Any], same_data: bool) -> dict[str, Any]:
    """The kind of rule that the options mean, and nothing left of another kind that the plan has."""
    meant = [name for name in ("percentile", "threshold", "fit_models") if name in given]
    if len(meant) + same_data > 1:
        options = [f"--{name.replace('_', '-')}" for name in meant] + ["--same-data"] * same_data
        raise InvalidInput(f"only one of {', '.join(options)} can decide how the rule is chosen. Leave out the others.")
    if same_data:
        return {"rule": "same-data"}
    if not meant:
        return {}
    if meant == ["fit_models"]:
        return {"rule": "split", "percentile": None, "threshold": None}
    other = "threshold" if meant == ["percentile"] else "percentile"
    return {"rule": "given", "fit_models": None, other: None}


def judged(found: Audit, fail_above: float | None, fail_on: Gate | None, as_json: bool, *, curve: bool = False) -> None:
    """Print an audit, then say what a gate says."""
    from epsgauge.auditing.gate import gate
    from epsgauge.reporting.audit import show, show_noise

    reasons = gate(found, fail_above=fail_above, fail_on=None if fail_on is None else "violation")
    noise = found.effective_noise() if curve else None
    if as_json:
        print_json({**found.to_json(), "gate": reasons, **({} if noise is None else {"noise": asdict(noise)})})
    else:
        show(found, console())
        if noise is not None:
            show_noise(found, noise, console())
    for reason in reasons:
        typer.echo(f"gate: {reason}", err=True)
    largest = found.verdict.largest
    if (fail_on and found.verdict.kind == "underpowered") or (fail_above is not None and largest <= fail_above):
        typer.echo(f"! this gate could not have failed: so few models show at most ε = {largest:.3g}", err=True)
    if reasons:
        raise typer.Exit(REFUSED)
