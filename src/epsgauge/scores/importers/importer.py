"""What an importer is: how the scores of one tool become the columns of a table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from epsgauge.scores.importers.source import Source


class Importer(ABC):
    """Subclass it in one file, and add a row to the table.

    It must know the tool's direction: A HIGHER SCORE MEANS THAT b = 1 IS MORE LIKELY.
    """

    name: ClassVar[str]  # in calls and on the command line
    tool: ClassVar[str]  # as its authors write it
    wants: ClassVar[str]  # what it takes, in words
    of_one_model: ClassVar[
        bool
    ]  # whether the tool attacks one model, so that all rows without a column model are of it

    @abstractmethod
    def columns(self, source: Source) -> dict[str, Any]:
        """bit and score, and model and pair where the source says them."""
