"""Verdicts read side by side: the level at which all that are guaranteed hold together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from epsgauge.numbers import count, level_percent

FIXED = "if this set of {} was fixed before its results were seen"
OF_POINTS = "groups depend on the points alone, not on bits, scores or guesses"


@dataclass(frozen=True)
class Family:
    """The levels of those that are guaranteed among `n` verdicts; `divided`: what may be missed was divided by n.

    Each is wrong with at most 1 − its level, so that any of them is with at most the sum, however they depend on each
    other. A divided level is a function of what was declared and of n: nothing that was seen chose it if n was fixed.
    """

    n: int
    levels: tuple[float, ...]
    divided: bool
    of: str = "runs"  # what each verdict is about

    @property
    def together(self) -> float | None:
        """The level at which they all hold; None where none is guaranteed."""
        return self._holds(1) if self.levels else None

    @property
    def sentence(self) -> str:
        """What to know of several verdicts; empty where there is nothing to divide."""
        at = ", ".join(dict.fromkeys(level_percent(level) for level in self.levels))
        each = f"each at {at}" if len(set(self.levels)) == 1 else f"at {at}"
        if not self.divided:
            if len(self.levels) < 2:
                return ""
            holds, better = level_percent(self._holds(1)), level_percent(self._holds(self.n))
            what = count(len(self.levels), "guaranteed verdict")
            return f"{what}, {each}: all hold together at {holds} or more. --family-wise makes that {better}."
        if not self.levels:
            return "No verdict is guaranteed here, so there is no level at which they hold together."
        fixed = FIXED.format(self.of) + (f" and {OF_POINTS}" if self.of == "groups" else "")
        what = f"{len(self.levels)} of {self.n} verdicts {'is' if len(self.levels) == 1 else 'are'} guaranteed"
        if len(self.levels) == 1:
            return f"{what}, at {at}, {fixed}."
        return f"{what}, {each}: all hold together at {level_percent(self._holds(1))} or more, {fixed}."

    def to_json(self) -> dict[str, Any]:
        return {
            "family_wise": self.divided,
            "verdicts": self.n,
            "guaranteed": len(self.levels),
            "levels": list(self.levels),
            "together": self.together,
            "sentence": self.sentence,
        }

    def _holds(self, n: int) -> float:
        """With what each may miss divided by n."""
        return max(0.0, 1.0 - sum(1.0 - level for level in self.levels) / n)
