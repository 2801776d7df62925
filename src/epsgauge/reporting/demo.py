"""The answer of `epsgauge demo`: the ε that each adversary shows, as bars beside the claim."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from epsgauge.auditing.audit import Audit
from epsgauge.numbers import level_percent, number
from epsgauge.reporting import layout
from epsgauge.reporting.audit import VERDICT_STYLE

ANY, DPSGD, CLAIM, ZERO = "█", "▒", "┊", "▏"
HEAD = 16
NARROWEST, WIDEST = 60, 100


def show_step(who: str, does: str, console: Console) -> None:
    """Which adversary comes next."""
    console.print(layout.hanging(f"{who:<{HEAD}}", does, "bold"))


def show_finding(audit: Audit, console: Console) -> None:
    """What it shows, on one line."""
    v = audit.verdict
    console.print(Text(f"{'':<{HEAD}}ε ≥ {number(v.bound)}, ").append(v.kind, style=VERDICT_STYLE[v.kind]))


def show_ladder(pipelines: Mapping[str, Mapping[str, Audit]], console: Console) -> None:
    """A bar per adversary, pipeline by pipeline, and how to read them."""
    audits = [audit for found in pipelines.values() for audit in found.values()]
    claim = next((audit.claim.eps for audit in audits if audit.claim is not None), None)
    room = min(max(console.width, NARROWEST), WIDEST) - HEAD - 9 - max(len(audit.verdict.kind) for audit in audits)
    longest = max(claim or 0.0, *(max(audit.lower_bound, audit.verdict.bound) for audit in audits))
    cell = (longest or 1.0) / (room - 1)
    mark = None if claim is None else round(claim / cell)
    for title, found in pipelines.items():
        console.print()
        console.print(Text(title, style="bold"))
        for who, audit in found.items():
            v = audit.verdict
            bar = _bar(round(audit.lower_bound / cell), round(v.bound / cell), mark, room)
            line = Text(f"{who:<{HEAD}}{number(v.bound):>5} {bar} ").append(v.kind, style=VERDICT_STYLE[v.kind])
            console.print(line, no_wrap=True, crop=True)
    if claim is not None and mark is not None:
        console.print(f"{'':<{HEAD + 6 + mark}}{CLAIM} claimed {number(claim)}", no_wrap=True, crop=True)
    console.print()
    for sign, text in (
        (2 * ANY, f"ε is at least this, whatever the training does (level {level_percent(audits[0].verdict.level)})"),
        (2 * DPSGD, "ε is at least this if it is DP-SGD with the stated sampling rate and steps"),
        (CLAIM, "the accountant's claim; a bar that goes beyond it refutes it"),
    ):
        console.print(layout.hanging(f"{sign:<4}", text, ""))


def _bar(surely: int, shown: int, claim: int | None, room: int) -> str:
    cells = [ANY] * surely + [DPSGD] * (shown - surely) or [ZERO]
    cells += [" "] * (room - len(cells))
    if claim is not None:
        cells[claim] = CLAIM
    return "".join(cells)
