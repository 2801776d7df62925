"""What a kind of planted canary is, and what it may know of the training."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epsgauge.errors import InvalidInput

Row = dict[str, str]  # the columns of one canary

OPTION = {  # of the command line
    "corpus": "--corpus FILE",
    "labels": "--labels 10",
    "shape": "--shape 28x28",
    "features": "--features 30",
    "parameters": "--parameters 100000",
    "own": "--from FILE",
}


@dataclass(frozen=True)
class Known:
    """What is known of the training; a kind says what it needs."""

    corpus: Sequence[str] | None = None  # texts as the training has them
    labels: int | None = None  # how many classes
    shape: tuple[int, ...] | None = None  # of an image
    features: int | None = None  # columns of a table
    parameters: int | None = None  # numbers in an update
    own: Sequence[Row] | None = None  # canaries of the user's

    def label(self, rng: np.random.Generator) -> Row:
        """A random class, where there are classes."""
        return {} if self.labels is None else {"label": str(rng.integers(self.labels))}


class Kind(ABC):
    """Subclass it in one file, and add a row to the table. All canaries of a kind are different from each other."""

    name: ClassVar[str]
    meaning: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()  # of what is known
    orthogonal: ClassVar[bool] = False  # whether canaries are gradients, each in a direction of its own

    def made(self, n: int, rng: np.random.Generator, known: Known) -> list[Row]:
        for name in self.needs:
            if getattr(known, name) is None:
                raise InvalidInput(f'kind = "{self.name}" needs {name}, but got none. Pass {OPTION[name]}.')
        return self.rows(n, rng, known)

    @abstractmethod
    def rows(self, n: int, rng: np.random.Generator, known: Known) -> list[Row]:
        """As many canaries, by their columns."""


def distinct(n: int, draw: Any, what: str) -> list[Any]:
    """As many different draws; InvalidInput where there are hardly so many."""
    found: dict[Any, None] = {}
    for _ in range(20 * n + 100):
        if len(found) == n:
            break
        found[draw()] = None
    if len(found) < n:
        raise InvalidInput(f"{what} give only {len(found)} different canaries, but {n} are wanted. Ask for fewer.")
    return list(found)
