"""The `epsgauge` command: gathers the groups and turns errors into one sentence and an exit code."""

from __future__ import annotations

import sys

import typer

from epsgauge.cli import reproduce
from epsgauge.errors import EpsgaugeError

app = typer.Typer(
    name="epsgauge",
    help="Measure the differential privacy that a training pipeline really spends.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(reproduce.app, name="reproduce")


def main() -> None:
    """Exit 0 good, 1 a gate says no, 2 bad usage or input, 130 interrupted."""
    try:
        app()
    except EpsgaugeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
