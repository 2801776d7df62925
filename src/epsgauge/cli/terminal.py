"""What the commands share: the console, JSON on standard output, words on standard error."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else.")]


def console(*, err: bool = False, quiet: bool = False) -> Console:
    from rich.console import Console

    return Console(highlight=False, stderr=err, quiet=quiet)


def print_json(value: Any) -> None:
    from epsgauge.numbers import json_ready

    typer.echo(json.dumps(json_ready(value), indent=2, ensure_ascii=False))
