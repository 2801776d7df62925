"""How much a file of scores may hold: a small one can unpack to more than a machine has."""

from __future__ import annotations

from collections.abc import Iterable

from epsgauge.errors import InvalidInput

MOST_ROWS = 20_000_000
MOST_BYTES = 2 * 2**30  # of all columns, unpacked
LONGEST = 1_000  # characters of an id or a group

Size = tuple[int, int]  # rows and bytes of a column


def too_large(columns: Iterable[Size], rows: int = MOST_ROWS, size: int = MOST_BYTES) -> bool:
    """Whether some column has more rows, or all together more bytes."""
    columns = list(columns)
    return any(n > rows for n, _ in columns) or sum(n_bytes for _, n_bytes in columns) > size


def check(columns: Iterable[Size], name: str) -> None:
    if too_large(columns):
        raise InvalidInput(
            f"{name} may unpack to {MOST_ROWS:,} rows and {MOST_BYTES // 2**30} GB at most, but is larger. Leave out "
            "the columns id and group, or judge fewer rows that you choose without looking at their scores."
        )
