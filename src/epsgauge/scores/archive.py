"""Scores as NumPy's .npz: one array per column, adjacency and bits."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.lib.format

from epsgauge.errors import InvalidInput
from epsgauge.scores import size
from epsgauge.scores.origin import bits_of, check_columns
from epsgauge.scores.table import COLUMNS, TEXTS

BEGINS = (b"PK\x03\x04", b"PK\x05\x06")  # a zip file, and one without members
STATED = ("adjacency", "bits")  # arrays of text
NUMERIC, TEXT = "biuf", "SU"  # kinds of NumPy's types
NAMES = NUMERIC + TEXT
HOW = "add an array adjacency"  # to say it in the file
NPY: Any = numpy.lib.format  # without types of its own


def parse(raw: bytes, name: str, names: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The columns that scores have, and what the file states; a pickle inside is not read.

    `names` are those of arrays that the file calls otherwise.
    """
    theirs = {key: names.get(key, key) for key in COLUMNS}
    fields, found = arrays(raw, name, (*COLUMNS, *STATED, *names.values()))
    check_columns(found, names, (*COLUMNS, *STATED), name, "an array")
    columns = {key: fields[theirs[key]] for key in COLUMNS if theirs[key] in fields}
    for key, column in columns.items():
        _check(key, column, name)
    columns["bit"] = bits_of(columns["bit"], name)
    said = {key: _stated(key, fields[key], name) for key in STATED if key in fields}
    return columns, {key: text for key, text in said.items() if text is not None}


def arrays(raw: bytes, name: str, wanted: Collection[str]) -> tuple[dict[str, Any], list[str]]:
    """Those of the `wanted` arrays that an archive has, and the names of all that it has."""
    if not raw.startswith(BEGINS):
        raise InvalidInput(f"{name} is not a NumPy archive. Write the scores with np.savez, or as CSV to another name.")
    try:
        with zipfile.ZipFile(io.BytesIO(raw)) as members:
            locked = any(member.flag_bits & 1 for member in members.infolist())
        if not locked:
            size.check(inside(raw, wanted), name)
            with np.load(io.BytesIO(raw), allow_pickle=False) as fields:
                found = list(fields)
                read = {key: fields[key] for key in wanted if key in found}
    except (InvalidInput, MemoryError):
        raise
    except Exception as error:  # whatever zipfile, zlib, NumPy or its reader of headers make of strange bytes
        if isinstance(error, ValueError) and "pickle" in str(error):
            why = "holds Python objects, which are not read. Write plain arrays of numbers and text with np.savez."
        else:
            why = "is damaged: its archive cannot be read to the end. Write it again with np.savez."
        raise InvalidInput(f"{name} {why}") from None
    if locked:
        raise InvalidInput(f"{name} is encrypted, and there is no password to read it. Write it again with np.savez.")
    return read, found


def _stated(key: str, array: Any, name: str) -> str | None:
    """The text that an array holds once, or in every row; None for one that is about something else."""
    if not isinstance(array, np.ndarray) or not array.size or (array.size > 1 and array.dtype.kind not in TEXT):
        return None
    texts = [text.decode(errors="replace") if isinstance(text, bytes) else str(text) for text in np.unique(array)[:2]]
    if len(texts) > 1:
        raise InvalidInput(
            f"{name} says {key}={texts[0]} and also {key}={texts[1]}. Write it again with the one that holds."
        )
    return texts[0]


def _check(key: str, column: Any, name: str) -> None:
    """A list of numbers, or for a text of anything that has a plain one."""
    if not isinstance(column, np.ndarray):
        raise InvalidInput(f"{name} is damaged: {key} is no array. Write it again with np.savez.")
    if column.ndim != 1:
        raise InvalidInput(
            f"the array {key} of {name} must have one dimension, but has {column.ndim}. Give one value per row."
        )
    if column.dtype.kind not in (NAMES if key in (*TEXTS, "bit") else NUMERIC):
        what = "plain values" if key in TEXTS else "real numbers"
        raise InvalidInput(f"the array {key} of {name} must hold {what}, but its type is {column.dtype}. Convert it.")


def inside(raw: bytes, wanted: Collection[str] = (*COLUMNS, *STATED)) -> list[size.Size]:
    """The rows and bytes of `wanted` arrays, as their headers say, and no less than what is packed."""
    sizes = []
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        for info in archive.infolist():
            if info.filename.removesuffix(".npy") not in wanted:
                continue  # it is not read
            n_rows, n_bytes = 0, 0
            with suppress(Exception), archive.open(info) as file:  # of one that is no array its size alone is known
                version = NPY.read_magic(file)
                read = NPY.read_array_header_1_0 if version == (1, 0) else NPY.read_array_header_2_0
                shape, _, kind = read(file)
                n_rows = math.prod(shape)
                n_bytes = n_rows * kind.itemsize
            sizes.append((n_rows, max(n_bytes, info.file_size)))
    return sizes


def render(columns: dict[str, Any], stated: dict[str, str]) -> bytes:
    out = io.BytesIO()
    arrays: dict[str, Any] = {**{key: np.array(value) for key, value in stated.items()}, **columns}
    for key in TEXTS:
        if key in arrays:
            _check_room(key, columns[key])
            arrays[key] = columns[key].astype(np.str_)
    np.savez(out, **arrays)
    return out.getvalue()


def _check_room(key: str, texts: Any) -> None:
    """In a .npz file every text has the room of the longest."""
    longest = max(map(len, texts), default=0)
    if 4 * longest * len(texts) > size.MOST_BYTES:
        raise InvalidInput(
            f"{key} has {len(texts):,} texts, of up to {longest} characters, which need too much room in a .npz file. "
            "Write a .csv or a .parquet file."
        )
