"""What the commands share: the console, JSON on standard output, lines of words."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from epsgauge.plain import SENTENCE, plain, spelled

if TYPE_CHECKING:
    from rich.console import Console

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def console(*, err: bool = False, quiet: bool = False) -> Console:
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False, stderr=err, quiet=quiet)


def print_json(value: Any) -> None:
    from epsgauge.numbers import json_ready

    typer.echo(spelled(json.dumps(json_ready(value), indent=2, ensure_ascii=False)))


def say(*lines: str, err: bool = False) -> None:
    """Each as one line, whatever names are in it."""
    for line in lines:
        typer.echo(plain(line, SENTENCE), err=err)
