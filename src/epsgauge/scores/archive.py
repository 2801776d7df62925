"""Scores as NumPy's .npz: one array a column, adjacency and bits."""

from __future__ import annotations

import io
import zipfile
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.references import nearest
from epsgauge.scores.table import COLUMNS, NEEDED, TEXTS

BEGINS = (b"PK\x03\x04", b"PK\x05\x06")  # a zip file, and one without members
STATED = ("adjacency", "bits")  # arrays of one text each
NUMERIC, NAMES = "biuf", "biufSU"  # kinds of NumPy's types


def parse(raw: bytes, name: str) -> tuple[dict[str, Any], dict[str, str]]:
    """The columns that scores have, and what the file states; a pickle inside is not read."""
    if not raw.startswith(BEGINS):
        raise InvalidInput(f"{name} is not a NumPy archive. Write the scores with np.savez, or as CSV to another name.")
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as members:
            locked = any(member.flag_bits & 1 for member in members.infolist())
        if not locked:
            with np.load(io.BytesIO(raw), allow_pickle=False) as fields:
                found = list(fields)
                columns = {key: fields[key] for key in COLUMNS if key in found}
                stated = {key: str(fields[key].item()) for key in STATED if key in found and fields[key].size == 1}
    except Exception as error:  # whatever zipfile, zlib, NumPy or its reader of headers make of strange bytes
        if isinstance(error, ValueError) and "pickle" in str(error):
            why = "holds Python objects, which are not read. Write plain arrays of numbers and text with np.savez."
        else:
            why = "is damaged: its archive cannot be read to the end. Write it again with np.savez."
        raise InvalidInput(f"{name} {why}") from None
    if locked:
        raise InvalidInput(f"{name} is encrypted, and there is no password to read it. Write it again with np.savez.")
    for needed in NEEDED:
        if needed not in found:
            raise InvalidInput(
                f"{name} must have an array {needed}, but has: {', '.join(found) or 'none'}.{nearest(needed, found)}"
            )
    for key in (*COLUMNS, *STATED):
        if found.count(key) > 1:
            raise InvalidInput(f"{name} must have one array {key}, but has {found.count(key)}.")
    for key, column in columns.items():
        _check(key, column, name)
    return columns, stated


def _check(key: str, column: Any, name: str) -> None:
    """A list of numbers, or for a text of anything that has a plain one."""
    if not isinstance(column, np.ndarray):
        raise InvalidInput(f"{name} is damaged: {key} is no array. Write it again with np.savez.")
    if column.ndim != 1:
        raise InvalidInput(
            f"the array {key} of {name} must have one dimension, but has {column.ndim}. Give one value per row."
        )
    if column.dtype.kind not in (NAMES if key in TEXTS else NUMERIC):
        what = "plain values" if key in TEXTS else "real numbers"
        raise InvalidInput(f"the array {key} of {name} must hold {what}, but its type is {column.dtype}. Convert it.")


def render(columns: dict[str, Any], stated: dict[str, str]) -> bytes:
    out = io.BytesIO()
    arrays: dict[str, Any] = {**{key: np.array(value) for key, value in stated.items()}, **columns}
    np.savez(out, **arrays)
    return out.getvalue()
