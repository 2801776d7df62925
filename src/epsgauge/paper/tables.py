"""The paper's tables, recomputed: every printed number beside ours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from epsgauge.methods.intervals import intervals
from epsgauge.paper import notes, printed
from epsgauge.paper.compare import Compared
from epsgauge.stats.tally import Tally

METHODS = ("bayes", "jeffreys", "clopper-pearson")


@dataclass(frozen=True)
class MethodCells:
    """One method's interval, its width and, in per cent, how much it is wider than that of Clopper-Pearson."""

    low: Compared
    high: Compared
    width: Compared
    vs_cp: Compared | None

    @property
    def cells(self) -> tuple[Compared, ...]:
        return (self.low, self.high, self.width, *([] if self.vs_cp is None else [self.vs_cp]))


@dataclass(frozen=True)
class Row:
    """One line of a table; `label` says which it is."""

    label: str
    m: int
    tally: Tally
    methods: dict[str, MethodCells]


@dataclass(frozen=True)
class Table:
    """A table of the paper, recomputed."""

    name: str
    number: int
    title: str
    rows: tuple[Row, ...]

    def cells(self) -> Iterator[Compared]:
        for row in self.rows:
            for method in row.methods.values():
                yield from method.cells


def tally_of(rows: tuple[printed.Row, ...]) -> Tally:
    """The counts of these rows as one tally of arrays."""
    return Tally(tp=[r.tp for r in rows], tn=[r.tn for r in rows], fp=[r.fp for r in rows], fn=[r.fn for r in rows])


def tables() -> tuple[Table, ...]:
    """The six tables of Appendix D, in the paper's order."""
    return tuple(_recomputed(t, tuple(f"m = {row.m}" for row in t.rows)) for t in printed.TABLES)


def summary() -> Table:
    """Table 2: the rows with m = 1."""
    return _recomputed(printed.SUMMARY, printed.SUMMARY_LABELS)


def _recomputed(table: printed.Table, labels: tuple[str, ...]) -> Table:
    tally = tally_of(table.rows)
    every = intervals(tally, delta=printed.DELTA, level=printed.LEVEL)
    rows = []
    for i, (label, row) in enumerate(zip(labels, table.rows, strict=True)):
        methods = {}
        for name in METHODS:
            ours = every[name]
            low, high, percentage = (
                float(np.asarray(a)[i]) for a in (ours.low, ours.high, 100 * ours.against_baseline)
            )
            methods[name] = _cells(row, name, low, high, percentage)
        rows.append(Row(label, row.m, tally[i], methods))
    return Table(table.name, table.number, table.title, tuple(rows))


def _cells(row: printed.Row, name: str, low: float, high: float, percentage: float) -> MethodCells:
    paper = row.methods[name]
    end = notes.of_end(row, name)
    versus = None
    if paper.vs_cp is not None:
        versus = Compared(paper.vs_cp, percentage).explained(notes.of_percentage(row, name))
    return MethodCells(
        low=Compared(paper.low, low).explained(end),
        high=Compared(paper.high, high).explained(end),
        width=Compared(paper.width, high - low).explained(notes.of_width(row, name)),
        vs_cp=versus,
    )
