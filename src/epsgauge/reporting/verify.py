"""The answer of `epsgauge verify` for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from epsgauge.reporting import layout
from epsgauge.runner.verify import Verified

HEAD = 12
_WRONG = {"digest": ""}


def show(found: Verified, console: Console) -> None:
    """Print each check, and what follows."""
    for check in found.checks:
        text = Text("" if check.intact else _WRONG.get(check.name, "damaged. "), style="bold red")
        text.append(layout.said(check.sentence, "" if check.intact else "red"))
        console.print(layout.hanging(f"{check.name:<{HEAD}}", text, "dim"))
    console.print()
    if found.digest is not None:
        console.print(layout.hanging(f"{'digest':<{HEAD}}", Text(found.digest), "dim"))
    said = Text("intact", style="bold green") if found.intact else Text(_verdict(found), style="bold red")
    console.print(layout.hanging(f"{'run':<{HEAD}}", said, "bold"))
    if found.unseen:
        console.print(layout.hanging(" " * HEAD, Text(found.unseen, style="dim"), "dim"))


def _verdict(found: Verified) -> str:
    wrong = [check.name for check in found.checks if not check.intact]
    return f"{'not the published one' if wrong == ['digest'] else 'damaged'}. {found.remedy}"
