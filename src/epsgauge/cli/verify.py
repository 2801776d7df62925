"""`epsgauge verify`: whether a run directory holds what was written to it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epsgauge.cli.terminal import AsJson, console, print_json

NOT_INTACT = 1


def verify(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")], as_json: AsJson = False
) -> None:
    """Check that a run is intact. Exits with 1 if it is not. Does not look at the results."""
    from epsgauge.reporting.verify import show
    from epsgauge.runner.verify import verify

    found = verify(folder)
    if as_json:
        print_json(found.to_json())
    else:
        show(found, console())
    if not found.intact:
        raise typer.Exit(NOT_INTACT)
