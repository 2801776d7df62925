"""Stops a run whose first models all fail the same way: the others would too."""

from __future__ import annotations

import re
from collections.abc import Iterable

from epsgauge.errors import EpsgaugeError

FIRST = 5  # models
NO_CONTROL = "No control: "  # begins a note on why there are no models without noise


class AllFail(EpsgaugeError):
    """The first models of a run all failed the same way. What is done is kept."""


class First:
    """Is told of every model, once it is stored, and raises when the first ones have all failed the same way.

    Errors that differ in numbers alone are the same: they name seeds, indices or addresses.
    """

    def __init__(self, remedy: str, *, watching: bool, models: int = FIRST) -> None:
        self.remedy, self.watching, self.models = remedy, watching, models
        self.kind: str | None = None
        self.n = 0

    def told(self, error: str | None, *, more: bool = True) -> None:
        """Of one more model; `more`: others are still to come."""
        if not self.watching:
            return
        if error is None or self.kind not in (None, kind_of(error)):
            self.watching = False
            return
        self.kind, self.n = kind_of(error), self.n + 1
        if self.n >= self.models and more:
            raise AllFail(
                f"the run was stopped, as its first {self.n} models all failed the same way: {last_line(error)} "
                f"{self.remedy} To go on in spite of the error, use --keep-going."
            )


def last_line(error: str) -> str:
    """What was raised, without the way there."""
    lines = [line.strip() for line in error.splitlines() if line.strip()]
    text = lines[-1] if lines else "no reason was given"
    return text if text.endswith((".", "!", "?")) else f"{text}."


def kind_of(error: str) -> str:
    return re.sub(r"0x[0-9a-fA-F]+|\d+", "#", last_line(error))


def no_control(trainer: str, error: str) -> str:
    """What is said of a run whose models without noise all fail."""
    return (
        f"{NO_CONTROL}trainer {trainer} fails without noise: {last_line(error)} So an attack that sees nothing is not "
        "found out. Let it train with noise_multiplier = 0, where an accountant may have no ε (engine.get_epsilon of "
        "Opacus fails there), or give it a method without_noise(), and start a new run."
    )


def uncontrolled(notes: Iterable[str]) -> bool:
    """Whether notes of a run say that it can have no models without noise."""
    return any(note.startswith(NO_CONTROL) for note in notes)
