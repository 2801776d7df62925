"""Where text goes in a picture: how wide it is, and rows of labels that do not overlap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Units of a picture's width, and the largest size of its letters in them: 12 px on a screen of 340 px.
WIDTH = 480.0
LEFT, RIGHT = 14.0, WIDTH - 16.0  # where most axes begin and end
SIZE = 17.0
LINE = 21.0  # from one line of text to the next
ARROW = 9.0
TURNED = 17.0  # where the baseline of a label along a y axis is


def wide(text: str, *, strong: bool = False) -> float:
    """About how wide a text is at its largest, in the broadest of usual fonts."""
    return SIZE * (1.12 if strong else 1.0) * sum(_BROAD.get(c, 0.69 if c.isupper() else 0.62) for c in text)


_BROAD = {
    **dict.fromkeys("iljI|.,:;'· !", 0.33),
    **dict.fromkeys("tfr()[]-", 0.42),
    **dict.fromkeys("mwMW%", 0.96),
    **dict.fromkeys("=<>≥≤+−–→←↑∞…", 0.85),
}


def shortened(text: str, room: float) -> str:
    """A text that fits, with an ellipsis where it had to be cut."""
    if wide(text) <= room:
        return text
    while text and wide(text + "…") > room:
        text = text[:-1]
    return text.rstrip() + "…"


def margin(names: Sequence[str]) -> float:
    """Where a y axis with these names, and a turned label left of them, may begin."""
    return TURNED + 14 + max((wide(name) for name in names), default=0.0)


@dataclass(frozen=True)
class Flag:
    """A text that belongs to a place on the x axis; a stem goes from below it to `stem`."""

    x: float
    text: str
    look: str = ""
    stem: float | None = None
    stem_look: str = "claim"


@dataclass(frozen=True)
class Placed:
    """A flag with where its text stands: `at` is its start, middle or end."""

    flag: Flag
    row: int
    at: float
    anchor: str


def placed(flags: Sequence[Flag], left: float, right: float) -> list[Placed]:
    """Flags in as few rows as can be, so that none overlaps another or leaves the picture.

    The first rows are the upper ones; a stem never crosses a text, as the flags of upper rows keep clear of it.
    """
    taken: list[list[tuple[float, float]]] = []
    out = []
    for flag in flags:
        width = wide(flag.text, strong="strong" in flag.look)
        start = min(max(flag.x - width / 2, left), max(right - width, left))
        row = 0
        while row < len(taken) and any(start < end + 10 and start + width > begin - 10 for begin, end in taken[row]):
            row += 1
        if row == len(taken):
            taken.append([])
        taken[row].append((start, start + width))
        if start == left:
            out.append(Placed(flag, row, left, "start"))
        elif start + width > right - 1e-6:
            out.append(Placed(flag, row, right, "end"))
        else:
            out.append(Placed(flag, row, start + width / 2, "middle"))
    return out


def flags_height(places: Sequence[Placed]) -> float:
    """The room above a picture that its flags need."""
    return LINE * (1 + max((p.row for p in places), default=-1))
