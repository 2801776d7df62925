"""The answer of `epsgauge compare` for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from epsgauge.auditing.compare import Comparison
from epsgauge.figures.ladder import ladder, pipelines_of
from epsgauge.numbers import interval_text, level_percent, short
from epsgauge.reporting import layout
from epsgauge.reporting.ladder import show_ladder

WIDEST = 1000  # of a table that is measured


def show(found: Comparison, console: Console) -> None:
    """Print a line per run, how far its CDF is from that of the first, and what each of several adversaries shows."""
    title = Text(f"ε at δ = {found.delta:g}", style="bold")
    title.append(layout.said(f"   adjacency {found.adjacency}; {found.rule}"))
    console.print(title)
    labels = [run.label for run in found.runs]
    numbers = [str(i) for i in range(1, len(labels) + 1)]
    fits = console.measure(_table(found, labels), options=console.options.update_width(WIDEST)).maximum <= console.width
    console.print(_table(found, labels if fits else numbers))
    if not fits:
        for number, label in zip(numbers, labels, strict=True):
            console.print(layout.hanging(f" {number}  ", label, "bold"))
    if found.of_adversaries:
        show_ladder(ladder(pipelines_of(found)), console)
        console.print()
        for run in found.runs:
            console.print(layout.hanging("adversary ", f"{run.label}: {run.audit.adversary.powers}", "dim"))
    for run in found.runs:
        console.print(layout.hanging("verdict   ", f"{run.label}: {run.audit.verdict.brief}", "dim"))
    if found.family.sentence:
        console.print(layout.hanging("together  ", found.family.sentence, "dim"))
    layout.warnings(found.warnings, console)


def _table(found: Comparison, names: list[str]) -> Table:
    """A row per run. Names that do not fit stand below the table, and their numbers in it."""
    table = Table(box=None, pad_edge=True, padding=(0, 1), header_style="dim")
    table.add_column("", overflow="fold")
    for column in (
        "m",
        "N",
        "FNR",
        "FPR",
        f"Bayesian {level_percent(found.level)}",
        "promise",
        "median",
        "CDF vs first",
    ):
        table.add_column(column, no_wrap=True, justify="right" if column in ("m", "N", "FNR", "FPR") else "left")
    for i, (name, run) in enumerate(zip(names, found.runs, strict=True)):
        tally = run.audit.judged.tally
        table.add_row(
            Text(name, style="bold"),
            str(run.audit.pairs_per_model),
            str(int(tally.n_samples)),
            short(float(tally.fnr)),
            short(float(tally.fpr)),
            interval_text(run.low, run.high),
            Text(run.audit.credible.promise, style=layout.PROMISE_STYLE[run.audit.credible.promise]),
            short(run.median),
            "" if i == 0 else f"{run.difference:.3f}",
        )
    return table
