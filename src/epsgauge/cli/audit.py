"""`epsgauge audit`: judges a run, and is a gate where one is wanted."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsgauge.cli.gates import AllowUndecided, CountEstimates, FailAbove, FailOn, Gates
from epsgauge.cli.terminal import AsJson, console, print_json
from epsgauge.errors import InvalidInput

if TYPE_CHECKING:
    from epsgauge.auditing.audit import Audit


Delta = Annotated[float | None, typer.Option(help="δ at which to estimate ε.")]
Level = Annotated[float | None, typer.Option(help="Level of the intervals.")]
ClaimedEps = Annotated[float | None, typer.Option(help="Claimed ε. Needs --claimed-delta and --claimed-adjacency.")]
ClaimedDelta = Annotated[float | None, typer.Option(help="δ of the claim.")]
ClaimedMu = Annotated[float | None, typer.Option(help="Claimed μ of Gaussian DP, instead of ε and δ.")]
FitPairs = Annotated[int | None, typer.Option(help="Use this many pairs of each model to choose the rule.")]
VerdictMethod = Annotated[
    str | None,
    typer.Option(
        help="weighted, exact, pooled, one-run, anytime, simultaneous, curve, gaussian, clopper-pearson, jeffreys, "
        "bayes or your own as module:attr."
    ),
]
VerdictLevel = Annotated[float | None, typer.Option(help="One-sided level of the verdict's bound.")]
PooledGuesses = Annotated[
    str | None, typer.Option(help="Guesses that the pooled bound counts: all, positive, negative, top or top-positive.")
]
PooledNumber = Annotated[
    int | None, typer.Option(help="How many of the surest guesses count, with top or top-positive.")
]
ClaimedAdjacency = Annotated[
    str | None, typer.Option(help="Adjacency of the claim: substitute, add-remove or label-only.")
]
Attack = Annotated[
    str | None,
    typer.Option(
        help="percentile, loss, difference, margin, trajectory, lira, lira-offline, attack-r, rmia, quantile, shadow "
        "or your own as module:attr."
    ),
]
FitModels = Annotated[int | None, typer.Option(help="Use this many models, from the first, to choose the rule.")]
Percentile = Annotated[float | None, typer.Option(help="Use this percentile, fixed beforehand.")]
Threshold = Annotated[float | None, typer.Option(help="Use this threshold, fixed beforehand.")]
SameData = Annotated[
    bool,
    typer.Option(
        "--same-data",
        help="Choose the rule on the judged data. Then only bounds that need no chosen rule stay guaranteed.",
    ),
]
TargetFpr = Annotated[float | None, typer.Option(help="Choose the rule with this FPR.")]
Explain = Annotated[bool, typer.Option("--explain", help="Also say what each promise means and assumes.")]
RunFolder = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")]


def audit(
    folder: RunFolder,
    delta: Delta = None,
    level: Level = None,
    attack: Attack = None,
    fit_models: FitModels = None,
    fit_pairs: FitPairs = None,
    percentile: Percentile = None,
    threshold: Threshold = None,
    same_data: SameData = False,
    target_fpr: TargetFpr = None,
    verdict_method: VerdictMethod = None,
    verdict_level: VerdictLevel = None,
    pooled_guesses: PooledGuesses = None,
    pooled_number: PooledNumber = None,
    claimed_eps: ClaimedEps = None,
    claimed_delta: ClaimedDelta = None,
    claimed_mu: ClaimedMu = None,
    claimed_adjacency: ClaimedAdjacency = None,
    fail_above: FailAbove = None,
    fail_on: FailOn = None,
    count_estimates: CountEstimates = False,
    allow_undecided: AllowUndecided = False,
    curve: Annotated[
        bool, typer.Option("--curve", help="Also compare the rates with DP-SGD's whole trade-off curve.")
    ] = False,
    explain: Explain = False,
    unsealed: Annotated[
        bool,
        typer.Option("--unsealed", help="Read a run whose seals are missing or do not fit. All bounds are estimates."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Judge a run: print the verdict, bounds and posterior. Options override the plan."""
    found = audited(folder, locals(), same_data, unsealed=unsealed)
    gates = Gates(fail_above, fail_on, count_estimates, allow_undecided)
    judged(found, gates, as_json, curve=curve, explain=explain)


def given_settings(options: dict[str, Any]) -> dict[str, Any]:
    """Of all options of a command those that are settings of an audit and were given."""
    from epsgauge.references import check_not_hidden, is_reference, search_in
    from epsgauge.settings import AuditSettings

    for name in ("attack", "verdict_method"):
        if is_reference(options.get(name)):
            search_in(Path.cwd())
            check_not_hidden(Path.cwd(), options[name].partition(":")[0], f"{name} = {options[name]!r}")
    return {name: options[name] for name in AuditSettings.model_fields if options.get(name) is not None}


def audited(folder: Path, options: dict[str, Any], same_data: bool, *, unsealed: bool = False) -> Audit:
    """The audit of a run with the settings that were given; the others are the plan's."""
    from epsgauge.auditing.audit import audit as audit_of
    from epsgauge.runner.view import Run

    given = given_settings(options)
    return audit_of(Run.open(folder, unsealed=unsealed), **given, **rule_of(given, same_data))


def rule_of(given: dict[str, Any], same_data: bool) -> dict[str, Any]:
    """The kind of rule that the options mean, and nothing left of another kind that the plan has."""
    meant = [name for name in ("percentile", "threshold", "fit_models", "fit_pairs") if name in given]
    if len(meant) + same_data > 1:
        options = [f"--{name.replace('_', '-')}" for name in meant] + ["--same-data"] * same_data
        raise InvalidInput(f"only one of {', '.join(options)} can decide how the rule is chosen. Leave out the others.")
    if same_data:
        return {"rule": "same-data"}
    if not meant:
        return {}
    others = {name: None for name in ("percentile", "threshold", "fit_models", "fit_pairs") if name not in meant}
    return {"rule": {"fit_models": "split", "fit_pairs": "split-pairs"}.get(meant[0], "given"), **others}


def judged(found: Audit, gates: Gates, as_json: bool, *, curve: bool = False, explain: bool = False) -> None:
    """Print an audit, then say what a gate says."""
    from epsgauge.reporting.audit import show, show_noise

    said = gates.of(found)
    noise = found.effective_noise() if curve else None
    if as_json:
        of_noise = {} if noise is None else {"noise": asdict(noise)}
        print_json({**found.to_json(), "gate": gates.to_json(said), **of_noise})
    else:
        show(found, console(), explained=explain)
        if noise is not None:
            show_noise(noise, console())
    gates.tell(said)
