"""Scores by id, in the columns id and score of a CSV file."""

from __future__ import annotations

import csv
import io
import os

from epsgauge.errors import InvalidInput
from epsgauge.references import nearest
from epsgauge.scores.files import raw_bytes
from epsgauge.scores.text import decoded

IDS = "id"


def read_by_id(path: str | os.PathLike[str], *, score_column: str = "score") -> dict[str, list[str]]:
    """The columns of the file, by their names; cells as text."""
    name = "standard input" if os.fspath(path) == "-" else os.fspath(path)
    try:
        table = list(csv.reader(io.StringIO(decoded(raw_bytes(path, name), name), newline=""), strict=True))
    except csv.Error as error:
        raise InvalidInput(f"{name} is not CSV: {error}.") from None
    rows = [row for row in table if row and not row[0].startswith("#")]
    header = [cell.strip() for cell in rows[0]] if rows else []
    for column in (IDS, score_column):
        if header.count(column) != 1:
            raise InvalidInput(
                f"{name} must have one column {column}, but has: {', '.join(header) or 'none'}."
                f"{nearest(column, header)} Write one row for each canary, with its id and its score."
            )
    for number, row in enumerate(rows[1:]):
        if len(row) != len(header):
            raise InvalidInput(f"{name} has {len(header)} columns, but row {number} (the first is 0) has {len(row)}.")
    return dict(zip(header, map(list, zip(*rows[1:], strict=True)), strict=True)) if rows[1:] else {}


def number_of(cell: str, name: str, row: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise InvalidInput(
            f"{name}: every score must be a number, but that of {row[:80]!r} is {cell[:80]!r}. Give it a finite score."
        ) from None
