"""What a session and a stage send each other: which script is run, and what is said meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from epsgauge.scripts.command import Command


@dataclass(frozen=True)
class Order:
    """What the command line asks of a stage."""

    target: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    delta: float | None = None
    adjacency: Any = "add-remove"
    only: tuple[str, ...] = ()
    quick: bool = False
    seed: int = 0
    seconds: float = 600.0  # of one training
    # of a loop without an accountant of Opacus
    data: str = ""
    noise_multiplier: float | None = None
    sample_rate: float | None = None
    steps: int | None = None
    claimed_eps: float | None = None

    @property
    def command(self) -> Command:
        return Command(self.target, self.arguments, self.module)


@dataclass(frozen=True)
class Progress:
    """The number of trainings so far, and what they are for."""

    name: str
    count: int


@dataclass(frozen=True)
class Failed:
    """Why there is no answer, in a sentence."""

    sentence: str


@dataclass(frozen=True)
class Held:
    """The script stands before its training, and requests are answered from here on."""
