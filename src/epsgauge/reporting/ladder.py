"""The ladder for the terminal: a bar per adversary, in the answers of `epsgauge demo` and `compare`."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from epsgauge.figures.ladder import Ladder
from epsgauge.numbers import at_least, at_most, level_percent
from epsgauge.reporting import layout
from epsgauge.reporting.audit import VERDICT_STYLE

ANY, DPSGD, CLAIM, ZERO = "█", "▒", "┊", "▏"
HEAD = 16  # the narrowest column of adversaries
NARROWEST, WIDEST = 60, 100


def show_ladder(shown: Ladder, console: Console) -> None:
    """A bar per adversary, pipeline by pipeline, and how to read them."""
    head = max(HEAD, *(len(rung.adversary) + 1 for rungs in shown.pipelines.values() for rung in rungs))
    kinds = max(len(rung.kind) for rungs in shown.pipelines.values() for rung in rungs)
    room = min(max(console.width, NARROWEST), WIDEST) - head - 9 - kinds
    cell = shown.end / (room - 1)
    mark = None if shown.claimed is None else round(shown.claimed / cell)
    for title, rungs in shown.pipelines.items():
        console.print()
        console.print(Text(title, style="bold"))
        for rung in rungs:
            surely = rung.bounds[0].value
            bar = _bar(round(surely / cell), round(rung.reach / cell), mark, room)
            line = Text(f"{rung.adversary:<{head}}{at_least(surely):>5} {bar} ")
            console.print(line.append(rung.kind, style=VERDICT_STYLE[rung.kind]), no_wrap=True, crop=True)
    if shown.claimed is not None and mark is not None:
        console.print(f"{'':<{head + 6 + mark}}{CLAIM} claimed {at_most(shown.claimed)}", no_wrap=True, crop=True)
    console.print()
    for sign, text in (
        (
            2 * ANY,
            f"ε is at least this for any training (level {level_percent(shown.level)}); the number is this bound",
        ),
        (2 * DPSGD, "ε is at least this if the training is DP-SGD with the stated sampling rate and steps"),
        (
            CLAIM,
            "the accountant's claim: a solid bar beyond it refutes it; a pale one: this is not what was accounted",
        ),
    ):
        console.print(layout.hanging(f"{sign:<4}", text, ""))


def _bar(surely: int, shown: int, claim: int | None, room: int) -> str:
    cells = [ANY] * surely + [DPSGD] * (shown - surely) or [ZERO]
    cells += [" "] * (room - len(cells))
    if claim is not None:
        cells[claim] = CLAIM
    return "".join(cells)
