"""Scores as CSV: columns found by their header, and a first comment line that states adjacency, bits and rows."""

from __future__ import annotations

import csv
import io
import math
import re
import warnings
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.scores import size
from epsgauge.scores.origin import BIT_IS, LABELS, check_columns, renamed
from epsgauge.scores.table import COLUMNS, NUMBERS, TEXTS, WHOLE

MARK = "# epsgauge scores"
HOW = f'make its first line "{MARK}, adjacency=substitute"'  # to say it in the file
WIDEST = 10_000  # columns: NumPy takes some 300 bytes for the type of each


def parse(raw: bytes, name: str, names: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The columns that scores have, and what the file states; other columns are left alone.

    `names` are those of columns that the file calls otherwise.
    """
    size.check([(raw.count(b"\n"), len(raw))], name)
    body = decoded(raw, name)
    stream = io.StringIO(body, newline="")
    stated, header, above = _head(stream, name, names)
    rows = stream.read()
    columns = _fast(rows, header)
    if columns is None:
        columns = _careful(rows, header, name, above)
    _check_rows(stated.pop("rows", None), len(columns["score"]), rows, name)
    if not len(columns["score"]):
        raise InvalidInput(f"{name} has a header and no rows. Give one row for each guess.")
    return columns, stated


def render(columns: dict[str, Any], stated: dict[str, str]) -> bytes:
    out = io.StringIO(newline="")
    said = {**stated, "rows": len(columns["score"])}
    out.write(", ".join([MARK, *(f"{key}={value}" for key, value in said.items())]) + "\n")
    out.write(",".join(columns) + "\n")
    # floats by their repr; every text in quotes, as a lone carriage return would get none
    writer = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return out.getvalue().encode()


def decoded(raw: bytes, name: str) -> str:
    if raw.startswith(b"PK\x03\x04"):
        raise InvalidInput(f"{name} is a zip archive and not CSV. If NumPy wrote it, let its name end in .npz.")
    if raw.startswith(b"PAR1"):
        raise InvalidInput(f"{name} is a Parquet file and not CSV. Let its name end in .parquet.")
    if raw.startswith(b"\x93NUMPY"):
        raise InvalidInput(f"{name} is one NumPy array and not CSV. Write its columns with np.savez or as CSV.")
    try:
        if b"\x00" not in raw:
            return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    raise InvalidInput(
        f"{name} is not CSV in UTF-8 but a binary file or another encoding (pickles are never read). Write the scores "
        "as CSV or with np.savez."
    )


def _head(stream: io.StringIO, name: str, names: Mapping[str, str]) -> tuple[dict[str, str], list[str], int]:
    """What the comment lines state, the header, and how many lines both take."""
    stated: dict[str, str] = {}
    for number, line in enumerate(stream, start=1):
        if line.startswith("#"):
            keys = "adjacency|bits|rows" if line.startswith(MARK) else "adjacency"  # elsewhere they may mean anything
            for key, value in re.findall(rf"\b({keys})\s*=\s*([\w-]+)", line):
                if stated.setdefault(key, value) != value:
                    raise InvalidInput(
                        f"{name} says {key}={stated[key]} and also {key}={value}. Correct the comment lines above its "
                        "header."
                    )
        elif line.strip():
            try:
                header = [cell.strip() for cell in next(csv.reader([line], skipinitialspace=True))]
            except csv.Error as error:
                raise InvalidInput(f"{name}, line {number}: not CSV: {error}.") from None
            if all(_number(cell) is not None for cell in header):
                raise InvalidInput(
                    f"{name} has no header. Make its first line the names of the columns: bit, score, ..."
                )
            if len(header) == 1 and re.search("[;\t|]", header[0]):
                raise InvalidInput(f"{name} must have commas between its columns, but has: {header[0]}.")
            check_columns(header, names, COLUMNS, name, "a column")
            return stated, renamed(header, names), number
    raise InvalidInput(f"{name} is empty. Write a header with the columns bit and score, and one row for each guess.")


def _check_rows(stated: str | None, n: int, rows: str, name: str) -> None:
    """A file that was cut short would read as a smaller audit; in its last row a number may be cut, too."""
    if stated is None or (stated == str(n) and rows.endswith(("\n", "\r"))):
        return
    found = "the last of them has no end of line" if stated == str(n) else f"it has {n}"
    raise InvalidInput(
        f"{name} says that it has {stated[:20]} rows, but {found}: it was cut short or edited. Write or copy it again, "
        "or delete rows= from its first line if you want to judge the rows that it has now."
    )


def _fast(rows: str, header: list[str]) -> dict[str, Any] | None:
    """The columns by NumPy's reader in C; None where it finds anything amiss, which `_careful` then names."""
    if len(header) > WIDEST or rows.count('"') % 2:  # a quote that is never closed would swallow all rows after it
        return None
    for whole in (np.int64, np.float64):  # some programs write bits as 1.0
        kinds: dict[str, Any] = {**dict.fromkeys(WHOLE, whole), "score": np.float64, **dict.fromkeys(TEXTS, object)}
        # every column is in the type, so that a row with a cell more or less is an error; others are cut to one sign
        kind = np.dtype([(str(i), kinds.get(column, "U1")) for i, column in enumerate(header)])
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                table = np.loadtxt(
                    io.StringIO(rows, newline=""), delimiter=",", dtype=kind, comments=None, quotechar='"', ndmin=1
                )
        except (ValueError, Warning):
            continue
        columns = {column: table[str(i)] for i, column in enumerate(header) if column in kinds}
        one_a_line = len(table) == rows.rstrip().count("\n") + 1
        return columns if one_a_line and _plausible(columns) else None
    return None


def _plausible(columns: dict[str, Any]) -> bool:
    return all(np.isfinite(columns[c]).all() for c in NUMBERS if c in columns) and bool(
        np.isin(columns["bit"], (0, 1)).all()
        and all((columns[c] >= 0).all() and (columns[c] == np.floor(columns[c])).all() for c in WHOLE if c in columns)
    )


def _careful(rows: str, header: list[str], name: str, above: int) -> dict[str, Any]:
    """The same columns cell by cell; an error says line and column."""
    columns: dict[str, list[Any]] = {column: [] for column in header if column in COLUMNS}
    reader = csv.reader(io.StringIO(rows, newline=""), strict=True)
    try:
        for row in reader:
            line = above + reader.line_num
            if not row:
                continue
            if len(row) != len(header):
                cells = "1 cell" if len(row) == 1 else f"{len(row)} cells"
                raise InvalidInput(f"{name}, line {line}: {cells}, but the header has {len(header)} columns.")
            for column, cell in zip(header, row, strict=True):
                if column in columns:
                    columns[column].append(cell if column in TEXTS else _cell(cell, column, f"{name}, line {line}"))
    except csv.Error as error:
        raise InvalidInput(f"{name}, line {above + reader.line_num}: not CSV: {error}.") from None
    return dict(columns)


def _cell(cell: str, column: str, where: str) -> float:
    value = _number(cell)
    if column == "bit":
        value = LABELS.get(cell.strip().lower(), value)
        if value not in (0, 1):
            _refuse(where, column, BIT_IS, cell)
    elif value is None or not math.isfinite(value):
        _refuse(where, column, "a finite number", cell)
    elif column in WHOLE and (value < 0 or value != math.floor(value)):
        _refuse(where, column, "a whole number, 0 or more", cell)
    return value


def _refuse(where: str, column: str, rule: str, cell: str) -> NoReturn:
    raise InvalidInput(f"{where}: {column} must be {rule}, but got {cell[:80]!r}.")


def _number(cell: str) -> float | None:
    """What NumPy's reader takes for a number, too: no underscores, no digits of other scripts."""
    try:
        return float(cell) if cell.isascii() and "_" not in cell else None
    except ValueError:
        return None
