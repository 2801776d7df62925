"""`epsgauge merge`: run directories of one plan, made on different machines, as one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epsgauge.cli.terminal import AsJson, console, print_json, say


def merge(
    parts: Annotated[list[Path], typer.Argument(metavar="RUN...", help="Run directories of one plan.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The merged run directory, a new one.")],
    as_json: AsJson = False,
) -> None:
    """Merge the models of several run directories of one plan. Parts that disagree are refused."""
    from epsgauge.reporting.status import show
    from epsgauge.runner.merge import merge

    status = merge(parts, out=out).status()
    if as_json:
        print_json(status)
    else:
        show(status, console())
        say(f"next: epsgauge audit {out}", err=True)
