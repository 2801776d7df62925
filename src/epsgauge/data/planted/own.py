"""Canaries of the user's own: the rows of a CSV file or of JSON Lines."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np

from epsgauge.data.planted.kind import Kind, Known, Row
from epsgauge.errors import InvalidInput

OURS = ("coin", "kind")  # columns that the coins bring


class Own(Kind):
    name = "own"
    meaning = "the rows of a file of yours"
    needs = ("own",)

    def rows(self, n: int, rng: np.random.Generator, known: Known) -> list[Row]:
        return [dict(row) for row in known.own or ()]


def read_own(path: Path) -> list[Row]:
    """The rows of a file: all cells as text, and the same columns in every row."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InvalidInput(f"{path} must be text in UTF-8, as CSV or JSON Lines, but is not.") from None
    rows = _of_lines(text, path) if path.suffix.lower() in (".jsonl", ".ndjson") else _of_csv(text, path)
    if not rows:
        raise InvalidInput(f"{path} has no canary. Give one row for each.")
    for number, row in enumerate(rows):
        if set(row) != set(rows[0]):
            raise InvalidInput(f"every canary of {path} must have the same columns, but row {number} has others.")
    taken = [name for name in OURS if name in rows[0]]
    if taken:
        raise InvalidInput(f"{path} has a column {taken[0]}, which epsgauge writes itself. Rename yours.")
    return rows


def _of_csv(text: str, path: Path) -> list[Row]:
    try:
        table = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    except csv.Error as error:
        raise InvalidInput(f"{path} is not CSV: {error}.") from None
    header, rows = (table[0], [row for row in table[1:] if row]) if table else ([], [])
    for number, row in enumerate(rows):
        if len(row) != len(header) or len(set(header)) < len(header):
            raise InvalidInput(
                f"{path} must have one cell for each of its {len(header)} columns, each with a name of its own, but "
                f"row {number} has {len(row)}."
            )
    return [dict(zip(header, row, strict=True)) for row in rows]


def _of_lines(text: str, path: Path) -> list[Row]:
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if not isinstance(row, dict):
            raise InvalidInput(f"{path}, line {number}: must be one JSON object, but got {line[:80]!r}.")
        rows.append({key: cell if isinstance(cell, str) else json.dumps(cell) for key, cell in row.items()})
    return rows
