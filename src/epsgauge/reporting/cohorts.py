"""Cohorts as a table: the answer of `epsgauge scores --cohorts` for the terminal, and a section of a report."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from epsgauge.auditing.cohorts import Cohort, Cohorts
from epsgauge.numbers import at_least, interval_text, short
from epsgauge.plain import plain
from epsgauge.reporting import layout
from epsgauge.reporting.page import Grouped

COLUMNS = ("group", "N", "ε at least", "promise", "verdict", "TPR − FPR")


def grouped(found: Cohorts) -> Grouped:
    """For a report."""
    rows = tuple((plain(cohort.name), *_cells(cohort)) for cohort in found.cohorts)
    return Grouped(COLUMNS, rows, (found.family.sentence, plain(found.sentence, 500)))


def show(found: Cohorts, console: Console) -> None:
    """Print a line per group, what the verdicts hold together, and how the groups differ."""
    first = found.cohorts[0].audit
    console.print(Text(f"ε at δ = {first.settings.delta:g}   adjacency {first.adjacency}", style="bold"))
    table = Table(box=None, pad_edge=True, padding=(0, 1), header_style="dim")
    table.add_column(COLUMNS[0], overflow="fold")
    for name in COLUMNS[1:]:
        table.add_column(name, no_wrap=True, justify="right" if name == "N" else "left")
    for cohort in found.cohorts:
        n, bound, promise, *rest = _cells(cohort)
        styled = Text(promise, style=layout.PROMISE_STYLE[cohort.audit.verdict.bound.promise])
        table.add_row(Text(plain(cohort.name), style="bold"), n, bound, styled, *rest)
    console.print(table)
    console.print(layout.hanging("together   ", found.family.sentence, "dim"))
    console.print(layout.hanging("disparity  ", plain(found.sentence, 500), "dim"))
    named = (f"{plain(cohort.name)}: {text}" for cohort in found.cohorts for text in cohort.audit.warnings)
    layout.warnings(dict.fromkeys(named), console)


def _cells(cohort: Cohort) -> tuple[str, ...]:
    audit = cohort.audit
    return (
        str(int(audit.judged.tally.n_samples)),
        at_least(audit.verdict.bound.value),
        audit.verdict.bound.promise,
        audit.verdict.kind,
        f"{short(cohort.advantage)} {interval_text(cohort.low, cohort.high)}",
    )
