"""`epsgauge scores`: audits a file of scores from any framework."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

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
from epsgauge.cli.gates import AllowUndecided, CountEstimates, FailAbove, FailOn, Gates
from epsgauge.cli.report import CoinsFile, ReportFile, of_coins
from epsgauge.cli.terminal import AsJson, console, print_json, say
from epsgauge.errors import InvalidInput
from epsgauge.scores.said import Models

if TYPE_CHECKING:
    from epsgauge.scores.table import Scores

OneModel = Annotated[
    bool, typer.Option("--one-model", help="All rows come from one model. For a file without the column model.")
]
Independent = Annotated[
    bool,
    typer.Option("--independent", help="Each row comes from a model of its own. For a file without the column model."),
]
Tool = Annotated[
    str | None,
    typer.Option(
        "--from",
        metavar="TOOL",
        help="FILE is what this tool wrote: jax-privacy, leakpro, privacyguard, privacy-meter, privacy-estimates or "
        "sacroml.",
    ),
]
LowerIsIn = Annotated[
    bool,
    typer.Option(
        "--lower-is-in", help="A lower score means that b = 1 is more likely, as with losses. Decide this beforehand."
    ),
]
EitherWay = Annotated[
    bool, typer.Option("--either-way", help="Judge both directions of the scores, each with half of 1 − level.")
]


def scores(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV, .npz or .parquet with bit and score; - is stdin.")],
    adjacency: Annotated[
        str | None, typer.Option(help="substitute, add-remove or label-only, if the file does not say.")
    ] = None,
    bits: Annotated[
        str | None, typer.Option(help="coins, dealt or unknown: where the bits come from, if the file does not say.")
    ] = None,
    one_model: OneModel = False,
    independent: Independent = False,
    tool: Tool = None,
    bit_column: Annotated[str, typer.Option(metavar="NAME", help="Column with the bits.")] = "bit",
    score_column: Annotated[str, typer.Option(metavar="NAME", help="Column with the scores.")] = "score",
    lower_is_in: LowerIsIn = False,
    either_way: EitherWay = False,
    keep_direction: Annotated[
        bool, typer.Option("--keep-direction", help="Judge scores as they are, even if they point the wrong way.")
    ] = False,
    delta: Delta = None,
    level: Level = None,
    fit_models: Annotated[
        int | None, typer.Option(help="Use this many models to choose the threshold. [default: a sixth]")
    ] = None,
    fit_pairs: FitPairs = None,
    seed: Annotated[
        int | None, typer.Option(help="Decides which models or pairs are used to choose the threshold. [default: 0]")
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
        Path | None,
        typer.Option(metavar="FILE", help="Judge as declared in this file, which `epsgauge declare` wrote."),
    ] = None,
    coins: CoinsFile = None,
    cohorts: Annotated[
        bool, typer.Option("--cohorts", help="Judge each group in the column group, at levels that hold together.")
    ] = False,
    fail_above: FailAbove = None,
    fail_on: FailOn = None,
    count_estimates: CountEstimates = False,
    allow_undecided: AllowUndecided = False,
    report: ReportFile = None,
    explain: Explain = False,
    as_json: AsJson = False,
) -> None:
    """Audit a file of scores: a bit and a score per row. A higher score means that b = 1 (in) is more likely.

    Bits are 0 and 1, in/out, true/false, member/non-member or yes/no.
    """
    options = dict(locals())
    from epsgauge.auditing.audit import audit as audit_of
    from epsgauge.auditing.beforehand import declaration_of, direction_of

    models, direction = models_of(one_model, independent), kept_or_either(either_way, keep_direction)
    if coins is not None:
        check_alone(options)
    elif declared is not None:
        declaration = declaration_of(declared)
        before = declaration.content
        adjacency = adjacency or before["adjacency"]
        bits = bits or (None if before["bits"] == "unknown" else before["bits"])
        models = models or before.get("models")
        lower_is_in = lower_is_in or direction_of(declaration) == "lower"
    origin = {"bit_column": bit_column, "score_column": score_column, "lower_is_in": lower_is_in}
    if coins is not None:
        table = of_coins(file, coins, score_column)
    else:
        table = read_scores(file, tool, origin, adjacency=adjacency, bits=bits, models=models)
    given = given_settings(options)
    rule = {name: value for name, value in rule_of(given, same_data).items() if value is not None}
    gates = Gates(fail_above, fail_on, count_estimates, allow_undecided)
    if cohorts:
        _by_cohorts(table, seed, {**given, **rule}, options, gates)
        return
    found = audit_of(table, seed=seed, declared=declared, direction=direction, **given, **rule)
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
    if options["coins"] is not None:
        raise InvalidInput(
            "coins declare one audit of all canaries, so --cohorts cannot go with --coins. Leave out one."
        )
    if options["either_way"]:
        raise InvalidInput("groups are judged one way, so --cohorts cannot go with --either-way. Leave out one.")
    kept: Literal["kept"] | None = "kept" if options["keep_direction"] else None
    found = cohorts(table, seed=seed, direction=kept, **settings)
    if options["report"] is not None:
        whole = audit(table, seed=seed, direction=kept, **settings)
        say(f"report: {write(whole, out=options['report'], cohorts=found)}", err=True)
    labels = [f"group {cohort.name}" for cohort in found.cohorts]
    said = gates.of(*(cohort.audit for cohort in found.cohorts), labels=labels)
    if options["as_json"]:
        print_json({**found.to_json(), "gate": gates.to_json(said)})
    else:
        show(found, console())
    gates.tell(said)


def kept_or_either(either_way: bool, keep_direction: bool) -> Literal["kept", "either"] | None:
    if either_way and keep_direction:
        raise InvalidInput("only one of --either-way and --keep-direction can hold. Leave out the other.")
    return "either" if either_way else "kept" if keep_direction else None


def models_of(one_model: bool, independent: bool) -> Models | None:
    """What is said of rows without the column model."""
    if one_model and independent:
        raise InvalidInput("only one of --one-model and --independent can hold. Leave out the other.")
    return "one" if one_model else "independent" if independent else None


def check_alone(options: dict[str, Any]) -> None:
    """Refuse what coins have declared, or cannot go with them."""
    said = ("adjacency", "bits", "one_model", "independent", "tool", "lower_is_in", "either_way", "declared")
    given = [name for name in said if options[name]] + (["bit_column"] if options["bit_column"] != "bit" else [])
    if given:
        option = {"tool": "from"}.get(given[0], given[0]).replace("_", "-")
        raise InvalidInput(f"--{option} cannot go with --coins, which say where the bits come from. Leave it out.")


def read_scores(file: Path, tool: str | None, origin: dict[str, Any], **said: Any) -> Scores:
    """A file of scores, or what another tool wrote."""
    if tool is None:
        from epsgauge.scores.table import Scores

        return Scores.read(file, **said, **origin)
    from epsgauge.scores.importers.table import import_scores

    named = [f"--{key}-column" for key in ("bit", "score") if origin[f"{key}_column"] != key]
    if named:
        raise InvalidInput(f"--from {tool} knows its own columns: leave out {' and '.join(named)}.")
    if said["adjacency"] is None:
        raise InvalidInput(
            f"{file} does not say its adjacency. Pass --adjacency add-remove if a record was in or left out, or "
            "substitute if it was replaced."
        )
    return import_scores(
        file,
        tool=tool,
        adjacency=said["adjacency"],
        bits=said["bits"] or "unknown",
        models=said["models"],
        lower_is_in=origin["lower_is_in"],
    )
