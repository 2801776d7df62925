"""What a session and a stage send each other: which script is run, and what is said meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, fields

from epsgauge.adjacency import Adjacency, checked
from epsgauge.errors import InvalidInput
from epsgauge.scripts.command import Command
from epsgauge.stats import checks

# What a probe, a run and a plan of one script have in common.
STATED = ("delta", "adjacency", "timeout", "data", "noise_multiplier", "sample_rate", "steps", "claimed_eps")


@dataclass(frozen=True)
class Order:
    """What is asked of a stage: a script, and what the command line says of it."""

    target: str
    arguments: tuple[str, ...] = ()
    module: bool = False
    delta: float | None = None
    adjacency: Adjacency = "add-remove"
    only: tuple[str, ...] = ()
    quick: bool = False
    seed: int = 0
    timeout: float = 600.0  # seconds of one training
    # of a loop without an accountant of Opacus
    data: str = ""
    noise_multiplier: float | None = None
    sample_rate: float | None = None
    steps: int | None = None
    claimed_eps: float | None = None

    def __post_init__(self) -> None:
        checks.delta(1e-5 if self.delta is None else self.delta)
        for name in ("noise_multiplier", "sample_rate", "steps", "claimed_eps", "timeout"):
            if getattr(self, name) is not None:
                checks.positive(name, getattr(self, name))
        checks.rate("sample_rate", self.sample_rate or 1.0)
        if checked(self.adjacency) == "label-only":
            raise InvalidInput('adjacency must be "add-remove" or "substitute" for a script, but got "label-only".')

    @property
    def command(self) -> Command:
        return Command(self.target, self.arguments, self.module)

    @property
    def words(self) -> tuple[str, ...]:
        """Of a command line, after `epsgauge probe` or `epsgauge run`: what is stated, and the script."""
        given = ((f, getattr(self, f.name)) for f in fields(self) if f.name in STATED)
        options = [(f"--{f.name.replace('_', '-')}", f"{value}") for f, value in given if value != f.default]
        return (*(word for option in options for word in option), *self.command.words)


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
