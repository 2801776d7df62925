"""Everything that `epsgauge reproduce tables` shows: tables, summary, examples, and the notes they need."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from epsgauge.paper import printed
from epsgauge.paper.compare import Compared
from epsgauge.paper.examples import Example, examples
from epsgauge.paper.notes import NOTES
from epsgauge.paper.tables import Table, summary, tables


@dataclass(frozen=True)
class Reproduction:
    """The paper's numbers beside ours; notes are numbered in the order in which a reader meets them."""

    summary: Table
    tables: tuple[Table, ...]
    examples: tuple[Example, ...]
    delta: float = printed.DELTA
    level: float = printed.LEVEL

    def cells(self) -> Iterator[Compared]:
        parts: tuple[Table | Example, ...] = (self.summary, *self.tables, *self.examples)
        for part in parts:
            yield from part.cells()

    @cached_property
    def numbers(self) -> dict[str, int]:
        """Key of a note -> its number."""
        keys = dict.fromkeys(cell.note for cell in self.cells() if cell.note is not None)
        return {key: number for number, key in enumerate(keys, start=1)}

    @property
    def notes(self) -> dict[str, str]:
        """Key of a note -> its sentence, in the order of their numbers."""
        return {key: NOTES[key] for key in self.numbers}


def reproduction() -> Reproduction:
    """Recompute the paper."""
    return Reproduction(summary(), tables(), examples())
