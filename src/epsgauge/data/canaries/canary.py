"""What a canary is: a pair of records, z0 and z1, that training is likely to tell apart, made from the data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from epsgauge.data.canaries.view import Kind, Record, View

Pair = tuple[Record, Record]  # z0 and z1


class Canary(ABC):
    """Subclass it in one file, and add a row to the table."""

    name: ClassVar[str]
    meaning: ClassVar[str]  # what z1 is, in words
    kinds: ClassVar[tuple[Kind, ...]] = ("numbers",)  # of data that it can be made for
    needs_labels: ClassVar[bool] = False
    of_label: ClassVar[bool] = False  # whether z0 and z1 differ in the label alone
    tried: ClassVar[bool] = True  # whether "auto" tries it, which takes models from the others

    def pair(self, view: View) -> Pair | None:
        """The pair; None where such data give none."""
        if view.kind not in self.kinds or (self.needs_labels and view.labels[0] == view.labels[1]):
            return None
        return self.made(view)

    @abstractmethod
    def made(self, view: View) -> Pair | None:
        """Of data of these kinds, with two labels where it needs them."""
