"""`epsgauge demo`: the paper's game on real data, from training to verdict, in two settings."""

from __future__ import annotations

from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from epsgauge.cli.run import INCOMPLETE, Blind, Workers, watched
from epsgauge.cli.terminal import AsJson, console, print_json

PLANS = {
    "digits": "The average case: two handwritten digits, drawn at random; one is in the training set.",
    "digits-canary": "The worst a record can do: a crafted canary, or its opposite, is in the training set.",
}


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for both run directories.")] = Path(
        "runs"
    ),
    workers: Workers = None,
    blind: Blind = False,
    as_json: AsJson = False,
) -> None:
    """Train DP-SGD models on handwritten digits, attack them and print the verdict. Run it again to resume."""
    from epsgauge.auditing.audit import audit
    from epsgauge.reporting.audit import show, show_beside
    from epsgauge.runner.plan import Plan

    audits, failed = {}, False
    for name, title in PLANS.items():
        with as_file(files("epsgauge.cli").joinpath("plans", f"{name}.toml")) as file:
            plan = Plan.read(file)
        if not as_json:
            typer.secho(f"\n{title}", bold=True)
        done = watched(plan, out / name, workers=workers, blind=blind)
        failed = failed or bool(done.n_failed)
        audits[name] = audit(done)
        if not as_json:
            show(audits[name], console(), explained=len(audits) == len(PLANS))
    if as_json:
        print_json({name: found.to_json() for name, found in audits.items()})
    else:
        show_beside(audits, console())
        typer.echo(
            f"\nlook again: epsgauge audit {out / 'digits-canary'}   your own pipeline: epsgauge init --opacus DIR"
        )
    if failed:
        raise typer.Exit(INCOMPLETE)
