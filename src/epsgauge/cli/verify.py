"""`epsgauge verify`: whether a run directory holds what was written to it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epsgauge.cli.run import Small
from epsgauge.cli.terminal import AsJson, console, print_json

NOT_INTACT = 1


def verify(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")],
    plan_file: Annotated[
        Path | None, typer.Option("--plan", metavar="PLAN", help="The run's plan: train some of its models again.")
    ] = None,
    replay: Annotated[
        int,
        typer.Option(min=1, metavar="N", help="With --plan: models to train again, of each kind."),
    ] = 3,
    digest: Annotated[
        str | None,
        typer.Option(metavar="HEX", help="Check that the run has this digest, published earlier."),
    ] = None,
    small: Small = False,
    as_json: AsJson = False,
) -> None:
    """Check that a run is intact. Exits with 1 if it is not. Does not look at the results."""
    from epsgauge.reporting.verify import show
    from epsgauge.runner.plan import Plan
    from epsgauge.runner.verify import verify

    plan = None if plan_file is None else Plan.read(plan_file, small=small)
    found = verify(folder, plan=plan, replay=replay, digest=digest)
    if as_json:
        print_json(found.to_json())
    else:
        show(found, console())
    if not found.intact:
        raise typer.Exit(NOT_INTACT)
