"""What is judged, in words: models that were trained, or samples of a mechanism. Texts speak of models."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Literal

from epsgauge.methods.facts import FAIR_BITS, INDEPENDENT, MODELS_INDEPENDENT
from epsgauge.methods.rows import MethodRow

Units = Literal["models", "samples"]

_WHOLE = {
    INDEPENDENT: "each sample is drawn independently of the others",
    MODELS_INDEPENDENT: "samples are drawn independently of each other",
    FAIR_BITS: "each bit is a fair coin that decides about one sample only",
}
# Words of a sentence; not parts of names such as zoo.models:noisy.
_WORDS = (
    (r"(?<![\w./:-])model(s?)\b(?![./:]\w)", r"sample\1"),
    (r"(?<![\w./:-])Model(s?)\b(?![./:]\w)", r"Sample\1"),
    (r"\b([Aa]ll|judged) pairs\b", r"\1 samples"),
    (r"\bthe pipeline\b", "the mechanism"),
)


def said_of(units: Units, text: str) -> str:
    """A text of ours about models, in words for what is judged."""
    if units == "models":
        return text
    for models, samples in _WHOLE.items():
        text = text.replace(models, samples)
    for pattern, word in _WORDS:
        text = re.sub(pattern, word, text)
    return text


def rows_of_units(units: Units, rows: tuple[MethodRow, ...]) -> tuple[MethodRow, ...]:
    return tuple(
        replace(
            row,
            assumptions=tuple(said_of(units, text) for text in row.assumptions),
            note=None if row.note is None else said_of(units, row.note),
        )
        for row in rows
    )
