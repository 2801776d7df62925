"""The answer of `epsgauge scores --cohorts` for the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from epsgauge.auditing.cohorts import Cohorts
from epsgauge.numbers import interval_text, short
from epsgauge.plain import plain
from epsgauge.reporting import layout


def show(found: Cohorts, console: Console) -> None:
    """Print a line per group, what the verdicts hold together, and how the groups differ."""
    first = found.cohorts[0].audit
    console.print(Text(f"ε at δ = {first.settings.delta:g}   adjacency {first.adjacency}", style="bold"))
    table = Table(box=None, pad_edge=True, padding=(0, 1), header_style="dim")
    table.add_column("group", overflow="fold")
    for name in ("N", "ε at least", "promise", "verdict", "TPR − FPR"):
        table.add_column(name, no_wrap=True, justify="right" if name == "N" else "left")
    for cohort in found.cohorts:
        audit, tally = cohort.audit, cohort.audit.judged.tally
        table.add_row(
            Text(plain(cohort.name), style="bold"),
            str(int(tally.n_samples)),
            short(audit.gauge.bound),
            Text(audit.gauge.promise, style=layout.PROMISE_STYLE[audit.gauge.promise]),
            audit.verdict.kind,
            f"{short(cohort.advantage)} {interval_text(cohort.low, cohort.high)}",
        )
    console.print(table)
    console.print(layout.hanging("together   ", found.family.sentence, "dim"))
    console.print(layout.hanging("disparity  ", plain(found.sentence, 500), "dim"))
    named = (f"{plain(cohort.name)}: {text}" for cohort in found.cohorts for text in cohort.audit.warnings)
    layout.warnings(dict.fromkeys(named), console)
