"""Where a table of scores was read from: the file, the names of its columns, and which way its scores point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.errors import InvalidInput
from epsgauge.references import nearest

# What other tools write for a bit, in any case.
LABELS = {
    "true": 1.0,
    "in": 1.0,
    "member": 1.0,
    "yes": 1.0,
    "false": 0.0,
    "out": 0.0,
    "non-member": 0.0,
    "nonmember": 0.0,
    "non_member": 0.0,
    "no": 0.0,
}
BIT_IS = "0 or 1 (or in/out, true/false, member/non-member, yes/no)"


@dataclass(frozen=True)
class Origin:
    """How to read a table again."""

    file: str
    bit_column: str = "bit"
    score_column: str = "score"
    lower_is_in: bool = False
    coins: str | None = None  # the file of `epsgauge coins` whose bits these are
    tool: str | None = None  # that wrote the file, if it is not one of ours
    uneven: str | None = None  # why gradient canaries are not worth models of their own, if that was seen

    @property
    def declaration(self) -> str | None:
        """Beside the coins, which were declared with it."""
        return None if self.coins is None else f"{self.coins[: -len('.csv')]}.json"

    @property
    def names(self) -> dict[str, str]:
        """Our names of columns that the file calls otherwise, with its names."""
        each = {"bit": self.bit_column, "score": self.score_column}
        return {ours: theirs for ours, theirs in each.items() if ours != theirs}

    @property
    def options(self) -> list[str]:
        """Of the command line."""
        named = [word for ours, theirs in self.names.items() for word in (f"--{ours}-column", theirs)]
        written = [] if self.tool is None else ["--from", self.tool]
        return [*written, *named, *(["--lower-is-in"] if self.lower_is_in else [])]

    @property
    def reader(self) -> str:
        """The call that reads it, in Python."""
        return "eg.Scores.read" if self.tool is None else "eg.import_scores"

    @property
    def arguments(self) -> dict[str, object]:
        """Of `reader`."""
        named: dict[str, object] = {} if self.tool is None else {"tool": self.tool}
        named |= {f"{ours}_column": theirs for ours, theirs in self.names.items()}
        return {**named, **({"lower_is_in": True} if self.lower_is_in else {})}


def bits_of(column: NDArray[Any], name: str) -> NDArray[Any]:
    """Labels as bits; numbers stay as they are."""
    if column.dtype.kind not in "SUO":
        return column
    texts = [label.decode(errors="replace") if isinstance(label, bytes) else str(label) for label in column.tolist()]
    bits = [LABELS.get(text.strip().lower(), {"0": 0.0, "1": 1.0}.get(text.strip())) for text in texts]
    if None in bits:
        row = bits.index(None)
        raise InvalidInput(f"{name}: bit must be {BIT_IS}, but row {row} (the first is 0) has {texts[row][:80]!r}.")
    return np.array(bits, dtype=np.float64)


def renamed(found: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """The columns of a file by our names; one that has our name and is not asked for is another column."""
    ours = {theirs: own for own, theirs in names.items()}
    return [ours.get(column, f"{column} of the file" if column in names else column) for column in found]


def check_columns(found: Sequence[str], names: Mapping[str, str], known: Sequence[str], name: str, what: str) -> None:
    """Refuse a file without bit or score, and one that has a column twice."""
    for needed in ("bit", "score"):
        theirs = names.get(needed, needed)
        if theirs not in found:
            raise InvalidInput(
                f"{name} must have {what} {theirs}, but has: {', '.join(found) or 'none'}.{nearest(theirs, found)} "
                f"Name yours with --{needed}-column ({needed}_column in Python)."
            )
    for column in (*known, *names.values()):
        if found.count(column) > 1:
            raise InvalidInput(f"{name} must have one {what.split()[-1]} {column}, but has {found.count(column)}.")
