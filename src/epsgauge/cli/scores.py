"""`epsgauge scores`: audits a file of scores from any framework."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsgauge.cli.audit import (
    ClaimedAdjacency,
    ClaimedDelta,
    ClaimedEps,
    ClaimedMu,
    Delta,
    Explain,
    FitPairs,
    Level,
    PooledGuesses,
    PooledNumber,
    SameData,
    VerdictLevel,
    VerdictMethod,
    given_settings,
    judged,
    rule_of,
)
from epsgauge.cli.gates import AllowInconclusive, CountEstimates, FailAbove, FailOn, Gates
from epsgauge.cli.report import ReportFile
from epsgauge.cli.terminal import AsJson, console, print_json, say
from epsgauge.errors import InvalidInput
from epsgauge.scores.said import Models

if TYPE_CHECKING:
    from epsgauge.scores.table import Scores

OneModel = Annotated[
    bool, typer.Option("--one-model", help="All rows are of one model. Of a file without the column model.")
]
Independent = Annotated[
    bool, typer.Option("--independent", help="Each row is of a model of its own. Of a file without that column.")
]


def scores(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV, .npz or .parquet with bit and score; - is stdin.")],
    adjacency: Annotated[str | None, typer.Option(help="substitute or add-remove, if the file does not say.")] = None,
    bits: Annotated[
        str | None, typer.Option(help="coins, dealt or unknown: where the bits come from, if the file does not say.")
    ] = None,
    one_model: OneModel = False,
    independent: Independent = False,
    delta: Delta = None,
    level: Level = None,
    fit_models: Annotated[int | None, typer.Option(help="Models that choose the threshold. [default: a sixth]")] = None,
    fit_pairs: FitPairs = None,
    seed: Annotated[
        int | None, typer.Option(help="Decides which models or pairs choose the threshold. [default: 0]")
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Use this threshold, fixed beforehand.")] = None,
    same_data: SameData = False,
    target_fpr: Annotated[float | None, typer.Option(help="Choose the threshold with this FPR.")] = None,
    verdict_method: VerdictMethod = None,
    verdict_level: VerdictLevel = None,
    pooled_guesses: PooledGuesses = None,
    pooled_number: PooledNumber = None,
    claimed_eps: ClaimedEps = None,
    claimed_delta: ClaimedDelta = None,
    claimed_mu: ClaimedMu = None,
    claimed_adjacency: ClaimedAdjacency = None,
    declared: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Judge as this file of `epsgauge declare` says.")
    ] = None,
    cohorts: Annotated[
        bool, typer.Option("--cohorts", help="Judge each group of the column group, at levels that hold together.")
    ] = False,
    fail_above: FailAbove = None,
    fail_on: FailOn = None,
    count_estimates: CountEstimates = False,
    allow_inconclusive: AllowInconclusive = False,
    report: ReportFile = None,
    explain: Explain = False,
    as_json: AsJson = False,
) -> None:
    """Audit a file of scores. A higher score must mean that b = 1 is more likely."""
    options = dict(locals())
    from epsgauge.auditing.audit import audit as audit_of
    from epsgauge.auditing.beforehand import declaration_of
    from epsgauge.scores.table import Scores

    models = models_of(one_model, independent)
    if declared is not None:
        before = declaration_of(declared).content
        adjacency = adjacency or before["adjacency"]
        bits = bits or (None if before["bits"] == "unknown" else before["bits"])
        models = models or before.get("models")
    table = Scores.read(file, adjacency=adjacency, bits=bits, models=models)
    given = given_settings(options)
    rule = {name: value for name, value in rule_of(given, same_data).items() if value is not None}
    gates = Gates(fail_above, fail_on, count_estimates, allow_inconclusive)
    if cohorts:
        _by_cohorts(table, seed, {**given, **rule}, options, gates)
        return
    found = audit_of(table, seed=seed, declared=declared, **given, **rule)
    if report is not None:
        from epsgauge.reporting.report import report as write

        say(f"report: {write(found, out=report)}", err=True)
    judged(found, gates, as_json, explain=explain)


def _by_cohorts(
    table: Scores, seed: int | None, settings: dict[str, Any], options: dict[str, Any], gates: Gates
) -> None:
    from epsgauge.auditing.audit import audit
    from epsgauge.auditing.cohorts import cohorts
    from epsgauge.reporting.cohorts import show
    from epsgauge.reporting.report import report as write

    if options["declared"] is not None:
        raise InvalidInput("a declaration does not fix groups, so --cohorts cannot go with --declared. Leave out one.")
    found = cohorts(table, seed=seed, **settings)
    if options["report"] is not None:
        whole = audit(table, seed=seed, **settings)
        say(f"report: {write(whole, out=options['report'], cohorts=found)}", err=True)
    labels = [f"group {cohort.name}" for cohort in found.cohorts]
    said = gates.of(*(cohort.audit for cohort in found.cohorts), labels=labels)
    if options["as_json"]:
        print_json({**found.to_json(), "gate": gates.to_json(said)})
    else:
        show(found, console())
    gates.tell(said)


def models_of(one_model: bool, independent: bool) -> Models | None:
    """What is said of rows without the column model."""
    if one_model and independent:
        raise InvalidInput("only one of --one-model and --independent can hold. Leave out the other.")
    return "one" if one_model else "independent" if independent else None
