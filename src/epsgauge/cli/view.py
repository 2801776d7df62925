"""`epsgauge view`: a page on this machine that lists runs, follows them and lets one explore."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder of run directories, or one of them.")]


def view(
    folder: Folder = Path("."),
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on 127.0.0.1; 0 is any that is free.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser: print the address only.")] = False,
) -> None:
    """Serve a page for this machine alone: runs, their progress and verdicts, pictures to explore, a calculator."""
    from epsgauge.reporting.viewer.server import serve

    serve(folder, port=port, open_browser=not no_open, say=lambda line: typer.echo(line, err=True))
