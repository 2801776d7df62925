"""The `epsgauge` command: gathers the groups and turns errors into one sentence and an exit code."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from epsgauge import __version__
from epsgauge.cli import reproduce
from epsgauge.cli.estimate import estimate
from epsgauge.cli.size import size
from epsgauge.errors import EpsgaugeError

app = typer.Typer(
    name="epsgauge",
    help="Measure the differential privacy that a training pipeline really spends.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command()(estimate)
app.command()(size)
app.add_typer(reproduce.app, name="reproduce")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"epsgauge {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Options before the command."""


def main() -> None:
    """Exit 0 good, 1 a gate says no, 2 bad usage or input, 130 interrupted."""
    try:
        app()
    except EpsgaugeError as error:
        typer.echo(f"error: {error}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
