"""`epsgauge export`: the scores of a run as a file for any other tool."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epsgauge.cli.audit import given_settings
from epsgauge.cli.terminal import AsJson, print_json, say


def export(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="The .csv, .npz or .parquet file to write.")],
    attack: Annotated[
        str | None,
        typer.Option(
            help="percentile, loss, difference, margin, lira, lira-offline, attack-r, rmia, quantile, shadow or your "
            "own as module:attr. [default: the plan's]"
        ),
    ] = None,
    groups: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV with columns point and group: the group of each z1, for cohorts."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the score and bit of every pair to a file. This is logged as a look at the results."""
    from epsgauge.auditing.cohorts import grouped
    from epsgauge.auditing.setup import setup_of
    from epsgauge.runner.view import Run, results_of, unlogged
    from epsgauge.scores.groups import read_groups

    found = Run.open(folder)
    chosen = setup_of(found.plan.audit, given_settings({"attack": attack})).attack
    group_of = None if groups is None else read_groups(groups)  # before the look, which is logged
    signals = results_of(found).signals
    scores = chosen.scores(signals)
    if group_of is not None:
        scores = grouped(scores, signals.pairs, group_of)
    if not found.log_look("export"):
        say(f"! {unlogged(folder)}", err=True)
    scores.write(out)
    if not found.complete or found.extended_after_look:
        say(
            "! the run is not finished, has failed models or was extended after a look: the file does not say so",
            err=True,
        )
    if found.n_failed:
        say(f"! {found.n_failed} models failed and have no scores: an audit of the file cannot count them", err=True)
    if as_json:
        print_json({"file": str(out), "rows": len(scores), "attack": chosen.name, "adjacency": scores.adjacency})
    else:
        say(f"wrote {len(scores)} scores of the attack {chosen.name} to {out}")
