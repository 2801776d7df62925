"""`epsgauge reproduce`: the paper's tables and figures, remade."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

# Written out here, so that --help does not load the figures; a test compares.
NAMES = (
    "density, region, contours, sizes, cifar10-average, cifar10-worst, sst2-dp, sst2-no-dp, advantage or convergence"
)

app = typer.Typer(help="Reproduce the paper's tables and figures.", no_args_is_help=True)


@app.command()
def tables(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")] = False,
) -> None:
    """Recompute every number in the paper's tables and examples and show it beside the printed one."""
    from epsgauge.paper.reproduction import reproduction

    found = reproduction()
    if as_json:
        from epsgauge.paper.record import record

        typer.echo(json.dumps(record(found), indent=2, ensure_ascii=False))
        return
    from rich.console import Console

    from epsgauge.paper.terminal import show

    show(found, Console(highlight=False))


@app.command()
def figures(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the files; created if missing.")],
    only: Annotated[list[str] | None, typer.Option(metavar="NAME", help=f"Draw only {NAMES}. May be repeated.")] = None,
) -> None:
    """Draw every figure of the paper as SVG and PNG."""
    from rich.console import Console

    from epsgauge.paper.figures import chosen, show, write

    console = Console(highlight=False)
    for figure in chosen(only):
        show(figure, write(figure, out), console)
