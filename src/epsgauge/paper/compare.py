"""A printed number beside the same number recomputed: do they agree at the printed digits?"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

NOTHING = "---"  # where the paper prints a dash


def value_of(text: str) -> float:
    """The number a printed text stands for; NaN for a dash."""
    return math.nan if text == NOTHING else float(text)


def unit_of(text: str) -> float:
    """One unit of the last printed digit: 0.01 for "0.90"."""
    return 10.0 ** -_decimals(text)


def rounds_to(number: float, text: str, *, unit: float | None = None) -> bool:
    """Whether `number`, rounded to the digits of `text`, is what `text` says; two dashes or two ∞ agree."""
    value = value_of(text)
    if not math.isfinite(value) or not math.isfinite(number):
        return value == number or (math.isnan(value) and not math.isfinite(number))
    half = 0.5 * (unit_of(text) if unit is None else unit)
    return abs(value - number) <= half * (1 + 1e-9)


@dataclass(frozen=True)
class Compared:
    """One number of the paper. `printed` is None where the paper gives none and ours is only for comparison.

    `unit` is set where the text is rougher than its digits ("approximately 1,500"); `note` is the key of the
    sentence in `epsgauge.paper.notes` that explains a difference.
    """

    printed: str | None
    recomputed: float
    unit: float | None = None
    decimals: int | None = None  # shown of `recomputed`; one more than printed unless said
    note: str | None = None

    @property
    def agrees(self) -> bool:
        return self.printed is None or rounds_to(self.recomputed, self.printed, unit=self.unit)

    @property
    def differs(self) -> bool:
        return not self.agrees

    def explained(self, note: str | None) -> Compared:
        """The same with a note, which only a difference gets."""
        return replace(self, note=note) if self.differs else self

    @property
    def printed_text(self) -> str:
        """What the paper prints, with typographic signs."""
        if self.printed is None:
            return ""
        text = {"inf": "∞", NOTHING: "–"}.get(self.printed, self.printed.replace("-", "−"))
        return text if self.unit is None else f"≈ {text}"

    @property
    def recomputed_text(self) -> str:
        """Our number with one digit more than the paper's, so that a rounding can be seen."""
        number = self.recomputed
        if not math.isfinite(number):
            return "–" if math.isnan(number) else "∞"
        if number == 0:
            return "0"
        decimals = self.decimals
        if decimals is None:
            decimals = 4 if self.printed is None else _decimals(self.printed) + 1
        return f"{number:.{decimals}f}".replace("-", "−")


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])
