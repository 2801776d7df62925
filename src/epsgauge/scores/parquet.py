"""Scores as Parquet: one column each, adjacency and bits in the file's metadata."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput, MissingExtra
from epsgauge.scores import size
from epsgauge.scores.origin import bits_of, check_columns
from epsgauge.scores.table import COLUMNS, TEXTS

STATED = {"adjacency": b"epsgauge.adjacency", "bits": b"epsgauge.bits"}
HOW = "add epsgauge.adjacency to its metadata"  # to say it in the file
MAGIC = b"PAR1"  # begins and ends every Parquet file


def parse(raw: bytes, name: str, names: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The columns that scores have, and what the file states; other columns are left alone.

    `names` are those of columns that the file calls otherwise.
    """
    pa, pq = _pyarrow()
    if not raw.startswith(MAGIC):
        raise InvalidInput(f"{name} is not a Parquet file. Write the scores as Parquet, or as CSV to another name.")
    try:
        file = pq.ParquetFile(io.BytesIO(raw))
        found = [field.name for field in file.schema_arrow]
        check_columns(found, names, COLUMNS, name, "a column")
        size.check(_columns(file.metadata, names), name)
        once = [column for column in TEXTS if column in found]  # a text that comes often is kept once
        file = pq.ParquetFile(io.BytesIO(raw), page_checksum_verification=True, read_dictionary=once)
        theirs = {column: names.get(column, column) for column in COLUMNS if names.get(column, column) in found}
        table = file.read(columns=list(theirs.values()))
        table.validate(full=True)
    except MemoryError:
        raise
    except (pa.ArrowException, OSError):
        raise InvalidInput(f"{name} is damaged: it cannot be read to the end. Write it again.") from None
    columns = {ours: _array(table[column], ours, name, pa) for ours, column in theirs.items()}
    columns["bit"] = bits_of(columns["bit"], name)
    if not len(columns["score"]):
        raise InvalidInput(f"{name} has columns and no rows. Give one row for each guess.")
    return columns, _stated(raw, file, name)


def inside(raw: bytes, names: Mapping[str, str] | None = None) -> list[size.Size]:
    """The rows and bytes of its columns."""
    _, pq = _pyarrow()
    return _columns(pq.ParquetFile(io.BytesIO(raw)).metadata, names or {})


def _columns(held: Any, names: Mapping[str, str]) -> list[size.Size]:
    """As the footer says: a value takes 8 bytes, however well it is packed; of a column by its whole path."""
    sizes: dict[str, size.Size] = {}
    for group in map(held.row_group, range(held.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            path, n = column.path_in_schema, max(column.num_values, group.num_rows)
            if path.split(".")[0] in (*COLUMNS, *names.values()):
                rows, n_bytes = sizes.get(path, (0, 0))
                sizes[path] = (rows + n, n_bytes + max(8 * n, column.total_uncompressed_size))
    return list(sizes.values())


def render(columns: dict[str, Any], stated: dict[str, str]) -> bytes:
    pa, pq = _pyarrow()
    arrays = {name: column.tolist() if name in TEXTS else column for name, column in columns.items()}
    types = {name: pa.string() if name in TEXTS else pa.from_numpy_dtype(columns[name].dtype) for name in columns}
    table = pa.table({name: pa.array(column, types[name]) for name, column in arrays.items()})
    out = io.BytesIO()
    said = {STATED[key]: value.encode() for key, value in stated.items()}
    pq.write_table(table.replace_schema_metadata(said), out, write_page_checksum=True)
    return out.getvalue()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(
            "this needs pyarrow. Install it with: pip install '.[parquet]' in the folder of epsgauge"
        ) from None
    return pyarrow, pyarrow.parquet


def _stated(raw: bytes, file: Any, name: str) -> dict[str, str]:
    """What the footer says, and Arrow's schema in it, where programs other than pyarrow do not write such keys.

    A footer can have a key twice, and Arrow shows the first; after the key come a mark, a length and the value.
    """
    footer = raw[-8 - int.from_bytes(raw[-8:-4], "little") : -8]
    kept = [held for held in (file.metadata.metadata, file.schema_arrow.metadata) if held]
    said = {}
    for key, stored in STATED.items():
        found = [held[stored] for held in kept if stored in held]
        for at in re.finditer(re.escape(stored) + rb"\x18[\x00-\x7f]", footer):
            found.append(footer[at.end() : at.end() + footer[at.end() - 1]])
        values = [value.decode(errors="replace") for value in dict.fromkeys(found)]
        if len(values) > 1:
            both = " and also ".join(f"{key}={value}" for value in values)
            raise InvalidInput(f"{name} says {both} in its metadata. Write it again with the one that holds.")
        if values:
            said[key] = values[0]
    return said


def _array(column: Any, kind: str, name: str, pa: Any) -> Any:
    """As NumPy has it; an empty cell is an error, as it would become a NaN or a text."""
    if column.null_count:
        row = next(i for i, value in enumerate(column) if not value.is_valid)
        raise InvalidInput(f"{name}: {kind} must have a value in every row, but row {row} (the first is 0) has none.")
    is_a, plain = pa.types, column.type
    words = plain.value_type if is_a.is_dictionary(plain) else plain
    labels = kind == "bit" and (is_a.is_string(words) or is_a.is_large_string(words))
    if kind in TEXTS or labels:  # numbers may be names too
        encoded = column if is_a.is_dictionary(plain) else column.dictionary_encode()
        return _words(encoded.unify_dictionaries().combine_chunks())
    if is_a.is_dictionary(plain):
        column, plain = column.cast(plain.value_type), plain.value_type
    if not (is_a.is_integer(plain) or is_a.is_floating(plain) or is_a.is_boolean(plain)):
        raise InvalidInput(f"{name}: {kind} must be a column of numbers, but its type is {plain}.")
    return column.to_numpy()


def _words(encoded: Any) -> Any:
    """The texts of a column whose dictionary has each of them once."""
    words = np.empty(len(encoded.dictionary), np.object_)
    words[:] = [str(value) for value in encoded.dictionary.to_pylist()]
    return words[encoded.indices.to_numpy()]
