"""`epsgauge reproduce`: the paper's tables and figures, remade."""

from __future__ import annotations

import typer

app = typer.Typer(help="Remake the paper's tables and figures.", no_args_is_help=True)
