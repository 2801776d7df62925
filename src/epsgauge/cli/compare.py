"""`epsgauge compare`: several runs beside each other, and a gate over all of them where one is wanted."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from epsgauge.cli.audit import Attack, Percentile, given_settings
from epsgauge.cli.gates import AllowUndecided, CountEstimates, FailAbove, FailOn, Gates
from epsgauge.cli.report import ReportFile
from epsgauge.cli.terminal import AsJson, console, print_json, say


class Rule(StrEnum):
    auto = "auto"
    shared = "shared"
    best = "best"


def compare(
    folders: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN...", help="Run directories; the first is the baseline.")
    ],
    rule: Annotated[
        Rule,
        typer.Option(
            help="shared: one threshold, chosen on the first run. best: each run's own attack and threshold. auto: "
            "shared, except where runs cannot share one or it hides what a run's own shows."
        ),
    ] = Rule.auto,
    attack: Attack = None,
    percentile: Percentile = None,
    target_fpr: Annotated[float | None, typer.Option(help="Choose the rule with this FPR instead.")] = None,
    family_wise: Annotated[
        bool,
        typer.Option("--family-wise", help="Divide the level among the runs, so that all verdicts hold together."),
    ] = False,
    fail_above: FailAbove = None,
    fail_on: FailOn = None,
    count_estimates: CountEstimates = False,
    allow_undecided: AllowUndecided = False,
    figure: Annotated[Path | None, typer.Option(help="Also draw the CDFs to this .svg file.")] = None,
    report: ReportFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare runs: their intervals, their verdicts, and the largest difference of each CDF from the first.

    A gate fails if any of the runs does.
    """
    from epsgauge.auditing.compare import compare as compare_runs
    from epsgauge.reporting.compare import show
    from epsgauge.reporting.report import checked
    from epsgauge.reporting.report import report as write
    from epsgauge.runner.view import Run

    if report is not None:
        checked(report)  # before the look, which is logged
    given = given_settings({"attack": attack})
    found = compare_runs(
        [Run.open(folder) for folder in folders],
        rule=rule.value,
        percentile=percentile,
        target_fpr=target_fpr,
        family_wise=family_wise,
        **given,
    )
    gates = Gates(fail_above, fail_on, count_estimates, allow_undecided)
    said = gates.of(*(run.audit for run in found.runs), labels=[run.label for run in found.runs])
    if figure is not None:
        from epsgauge.figures.charts import chart

        chart("cdfs", found).save(figure)
    if report is not None:
        write(found, out=report)
    if as_json:
        print_json({**found.to_json(), "gate": gates.to_json(said)})
    else:
        show(found, console())
    if figure is not None:
        say(f"figure: {figure}", err=True)
    if report is not None:
        say(f"report: {report}", err=True)
    gates.tell(said)
