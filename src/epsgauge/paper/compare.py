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
    return bool(abs(value - number) <= half * (1 + 1e-9))


@dataclass(frozen=True)
class Compared:
    """One number of the paper. `printed` is None where the paper gives none and ours is only for comparison.

    `unit` is the last digit that counts, where the text is rougher ("approximately 1,500") or finer (0, meant
    exactly) than it looks; `note` is the key of the sentence in `epsgauge.paper.notes` that explains a difference.
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
        return f"≈ {text}" if self.unit is not None and self.unit > unit_of(self.printed) else text

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
            decimals = 4 if self.printed is None else self._telling_decimals(self.printed)
        return f"{number:.{decimals}f}".replace("-", "−")

    def _telling_decimals(self, printed: str) -> int:
        """One more than printed; more where that would leave the rounding open: 0.62503, not 0.625, is not 0.62."""
        few = _decimals(printed) + 1
        for decimals in range(few, few + 3):
            gap = abs(round(self.recomputed, decimals) - value_of(printed))
            if not math.isclose(gap, 0.5 * unit_of(printed)):
                return decimals
        return few


def _decimals(text: str) -> int:
    return len(text.partition(".")[2])
