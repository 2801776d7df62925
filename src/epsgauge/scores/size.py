"""How much a file of scores may hold: a small one can unpack to more than a machine has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from epsgauge.errors import InvalidInput

MOST_ROWS = 20_000_000
MOST_BYTES = 2 * 2**30  # of all columns, unpacked
LONGEST = 1_000  # characters of an id or a group

Size = tuple[int, int]  # rows and bytes of a column


@dataclass(frozen=True)
class Limit:
    """Rows of a column, and bytes of all columns together; `sentence` is said of a file that has more."""

    rows: int = MOST_ROWS
    n_bytes: int = MOST_BYTES
    sentence: str = (
        f"{{name}} may unpack to {MOST_ROWS:,} rows and {MOST_BYTES // 2**30} GB at most, but is larger. Leave out the "
        "columns id and group, or judge fewer rows that you choose without looking at their scores."
    )


_limit: ContextVar[Limit] = ContextVar("limit", default=Limit())  # noqa: B039  # it is frozen


def limit() -> Limit:
    """The limit of files that are read now."""
    return _limit.get()


@contextmanager
def limited(to: Limit) -> Iterator[None]:
    """Files that are read meanwhile may hold no more than this."""
    token = _limit.set(to)
    try:
        yield
    finally:
        _limit.reset(token)


def check(columns: Iterable[Size], name: str) -> None:
    most, columns = limit(), list(columns)
    if any(n > most.rows for n, _ in columns) or sum(n_bytes for _, n_bytes in columns) > most.n_bytes:
        raise InvalidInput(most.sentence.format(name=name))


def check_rows(n: int, name: str) -> None:
    """Before `n` rows are made of less."""
    check([(n, 8 * n)], name)
