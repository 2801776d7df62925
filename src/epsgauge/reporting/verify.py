"""The answer of `epsgauge verify` for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from epsgauge.reporting import layout
from epsgauge.runner.verify import Verified

HEAD = 12


def show(found: Verified, console: Console) -> None:
    """Print each check, and what follows."""
    for check in found.checks:
        text = Text("" if check.intact else "damaged. ", style="bold red")
        text.append(layout.said(check.sentence, "" if check.intact else "red"))
        console.print(layout.hanging(f"{check.name:<{HEAD}}", text, "dim"))
    console.print()
    damaged = "damaged. Restore it from a copy, or run the plan again with a new --out."
    said = Text("intact", style="bold green") if found.intact else Text(damaged, style="bold red")
    console.print(layout.hanging(f"{'run':<{HEAD}}", said, "bold"))
    console.print(layout.hanging(" " * HEAD, Text(found.unseen, style="dim"), "dim"))
