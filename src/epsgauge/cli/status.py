"""`epsgauge status`: how a run stands."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epsgauge.cli.run import INCOMPLETE
from epsgauge.cli.terminal import AsJson, console, print_json


def status(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")], as_json: AsJson = False
) -> None:
    """Show how many models are done, how many failed, and why. Does not look at the results."""
    from epsgauge.reporting.status import show
    from epsgauge.runner.view import Run

    found = Run.open(folder)
    if as_json:
        print_json(found.status())
    else:
        show(found.status(), console())
    if found.n_failed:
        raise typer.Exit(INCOMPLETE)
