"""`epsgauge report`: a run's audit as one file to read, to print or to send."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsgauge.cli.audit import (
    Attack,
    ClaimedAdjacency,
    ClaimedDelta,
    ClaimedEps,
    ClaimedMu,
    Delta,
    FitModels,
    FitPairs,
    Level,
    Percentile,
    PooledGuesses,
    PooledNumber,
    SameData,
    TargetFpr,
    Threshold,
    VerdictLevel,
    VerdictMethod,
    audited,
    given_settings,
    rule_of,
)
from epsgauge.cli.terminal import say
from epsgauge.errors import InvalidInput

if TYPE_CHECKING:
    from epsgauge.auditing.audit import Audit
    from epsgauge.scores.table import Scores


class Kind(StrEnum):
    html = "html"
    md = "md"
    json = "json"


STDOUT = Path("-")
ReportFile = Annotated[
    Path | None,
    typer.Option("--report", metavar="FILE", help="Also write a report to this .html, .md or .json file."),
]

CoinsFile = Annotated[
    Path | None,
    typer.Option(
        "--coins", metavar="FILE", help="Join by id with this file of `epsgauge coins`, and judge as it says."
    ),
]


def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory; with --coins a file of scores.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="File; - is standard output. [default: report.html]"),
    ] = None,
    format: Annotated[Kind | None, typer.Option(help="Format, if the file name does not say it.")] = None,
    probe: Annotated[
        Path | None, typer.Option("--probe", metavar="FILE", help="Also show what `epsgauge probe --out FILE` found.")
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option(
            "--groups", metavar="FILE", help="CSV with columns point and group: also judge each group of points."
        ),
    ] = None,
    coins: CoinsFile = None,
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
) -> None:
    """Write the audit of a run, or of scores with their coins, as one file with pictures."""
    options = dict(locals())
    from epsgauge.auditing.cohorts import cohorts_of
    from epsgauge.probing.result import Probe
    from epsgauge.reporting.report import checked, report, written
    from epsgauge.scores.groups import read_groups

    chosen = Kind.html if format is None and out in (None, STDOUT) else format
    target = Path(f"report.{chosen}") if out is None else out
    kind = checked(target, None if chosen is None else chosen.value)  # before the look, which is logged
    for read in (folder, coins, groups, probe):
        if read is not None and read.exists() and target.exists() and read.samefile(target):
            raise InvalidInput(f"--out would write over {target}, which this command reads. Name another file.")
    shown = None if probe is None else Probe.read(probe)
    group_of = None if groups is None else read_groups(groups)
    found = audited(folder, options, same_data) if coins is None else _of_coins(folder, coins, options)
    cohorts = None if group_of is None else cohorts_of(found, group_of)
    if target == STDOUT:
        typer.echo(written(found, kind, probe=shown, cohorts=cohorts), nl=False)
        return
    report(found, out=target, format=kind, probe=shown, cohorts=cohorts)
    say(found.verdict.sentence, f"report: {target}")


def of_coins(file: Path, coins: Path, score_column: str = "score") -> Scores:
    """Scores of the canaries of one training, joined by id."""
    from epsgauge.auditing.coins import read_coins

    return read_coins(coins).scores(file, score_column=score_column)


def _of_coins(file: Path, coins: Path, options: dict[str, Any]) -> Audit:
    """The audit that the coins declare; settings that differ are refused there."""
    from epsgauge.auditing.audit import audit

    for name in ("attack", "percentile", "groups"):
        if options[name] is not None:
            raise InvalidInput(f"--{name} goes with a run, but --coins with a file of scores. Leave out one.")
    given = given_settings(options)
    return audit(of_coins(file, coins), **given, **rule_of(given, bool(options["same_data"])))
