"""`epsgauge calibrate`: how often a method's lower bound is above an ε that is known exactly."""

from __future__ import annotations

from typing import Annotated

import typer

from epsgauge.cli.terminal import AsJson, console, print_json


def calibrate(
    method: Annotated[str, typer.Argument(metavar="METHOD", help="bayes, clopper-pearson, exact, pooled, ...")],
    runs: Annotated[int, typer.Option(help="Number of runs per scenario.")] = 400,
    level: Annotated[float, typer.Option(help="One-sided level of the lower bound.")] = 0.95,
    exact: Annotated[
        bool, typer.Option("--exact", help="Enumerate all outcomes of small scenarios instead of drawing.")
    ] = False,
    seed: Annotated[int, typer.Option(help="The same seed gives the same draws.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Test whether a method keeps its promise where ε is known.

    Exits with 1 if a guaranteed method fails within its assumptions.
    """
    from epsgauge.auditing.calibration import calibrate as play_all
    from epsgauge.reporting.calibration import Bar, show

    with Bar(method, console(err=True)) as bar:
        found = play_all(method, runs=runs, level=level, seed=seed, exact=exact, on_scenario=bar.on_scenario)
    if as_json:
        print_json(found.to_json())
    else:
        show(found, console())
    if found.passed is False:
        raise typer.Exit(1)
