"""`epsgauge view`: a page on this machine that lists runs, follows them and lets you explore them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from epsgauge.cli.terminal import say

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder of run directories, or one run directory.")]


def view(
    folder: Folder = Path("."),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on 127.0.0.1; 0 picks a free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address without opening a browser.")] = False,
) -> None:
    """Show runs in the browser, on this machine only: progress, verdicts, pictures and a calculator."""
    from epsgauge.reporting.viewer.server import serve

    serve(folder, port=port, open_browser=not no_open, say=lambda line: say(line, err=True))
