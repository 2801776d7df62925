"""`epsgauge card`: the facts that evaluators and registries of deployments ask for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epsgauge.cli.terminal import say


def card(
    source: Annotated[Path, typer.Argument(metavar="RUN|JSON", help="A run directory, or a report in JSON.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write to this .md or .json file.")
    ] = None,
    declared: Annotated[
        Path | None,
        typer.Option("--declare", metavar="FILE", help="TOML with what you state yourself: curator, unit, …"),
    ] = None,
    section: Annotated[bool, typer.Option("--section", help="Print the section for a model card.")] = False,
) -> None:
    """Write the audit as a privacy card: what was measured, what was declared, and what nobody stated."""
    from epsgauge.auditing.audit import audit
    from epsgauge.reporting.card import card, read_declared, read_report
    from epsgauge.runner.view import Run

    said = None if declared is None else read_declared(declared)
    found = audit(Run.open(source)) if source.is_dir() else read_report(source)
    made = card(found, declared=said)
    if out is not None:
        say(f"card: {made.save(out)}")
    if section or out is None:
        typer.echo(made.section if section else made.markdown, nl=False)
