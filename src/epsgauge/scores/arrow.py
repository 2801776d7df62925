"""Columns of Parquet files and of Arrow streams, read by PyArrow: call it by `isolated.read`, as PyArrow may crash."""

from __future__ import annotations

import importlib.util
import io
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from epsgauge.errors import InvalidInput, MissingExtra
from epsgauge.scores import size
from epsgauge.scores.origin import bits_of, check_columns
from epsgauge.scores.table import COLUMNS, TEXTS

NOT_UTF8 = "must have names of columns in UTF-8, but has others. Rename its columns, and write it again."
STATED = {"adjacency": b"epsgauge.adjacency", "bits": b"epsgauge.bits"}


class Words(NamedTuple):
    """A column of texts: each text once, and which of them stands in each row."""

    words: list[str]
    indices: Any

    def array(self) -> Any:
        held = np.empty(len(self.words), np.object_)
        held[:] = self.words
        return held[self.indices]


Columns = dict[str, Any]  # arrays of numbers, and Words


def check_installed() -> None:
    if importlib.util.find_spec("pyarrow") is None:
        raise MissingExtra("this needs pyarrow. Install it with: pip install '.[parquet]' in the folder of epsgauge")


def parquet(raw: bytes, name: str, names: Mapping[str, str]) -> tuple[Columns, dict[str, str]]:
    """The columns that scores have, and what the file states; other columns are left alone.

    `names` are those of columns that the file calls otherwise.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(io.BytesIO(raw))
        found = [field.name for field in file.schema_arrow]
        check_columns(found, names, COLUMNS, name, "a column")
        size.check(_sizes(file.metadata, names), name)
        once = [column for column in TEXTS if column in found]  # a text that comes often is kept once
        file = pq.ParquetFile(io.BytesIO(raw), page_checksum_verification=True, read_dictionary=once)
        theirs = {column: names.get(column, column) for column in COLUMNS if names.get(column, column) in found}
        table = file.read(columns=list(theirs.values()), use_threads=False)
        table.validate(full=True)
    except MemoryError:
        raise
    except UnicodeDecodeError:
        raise InvalidInput(f"{name} {NOT_UTF8}") from None
    except (pa.ArrowException, OSError):
        raise InvalidInput(f"{name} is damaged: it cannot be read to the end. Write it again.") from None
    columns = {ours: _array(table[column], ours, name) for ours, column in theirs.items()}
    if isinstance(columns["bit"], Words):
        columns["bit"] = bits_of(columns["bit"].array(), name)
    if not len(columns["score"]):
        raise InvalidInput(f"{name} has columns and no rows. Give one row for each guess.")
    return columns, _stated(raw, file, name)


def stream(raw: bytes, name: str, column: str) -> tuple[Columns, dict[str, str]]:
    """One column of numbers of an Arrow stream; the others are not unpacked."""
    import pyarrow as pa

    try:
        found = [field.name for field in pa.ipc.open_stream(raw).schema]
        if found.count(column) != 1:
            raise InvalidInput(f"{name} must have one column {column}, but has: {', '.join(found) or 'none'}.")
        options = pa.ipc.IpcReadOptions(included_fields=[found.index(column)], use_threads=False)
        batches, n = [], 0
        for batch in pa.ipc.open_stream(raw, options=options):
            n += batch.num_rows
            size.check_rows(n, name)
            batch.validate(full=True)
            batches.append(_array(batch.column(0), column, name))
    except MemoryError:
        raise
    except UnicodeDecodeError:
        raise InvalidInput(f"{name} {NOT_UTF8}") from None
    except (pa.ArrowException, OSError):
        raise InvalidInput(f"{name} is damaged: it cannot be read to the end. Write it again.") from None
    return {column: np.concatenate(batches) if batches else np.empty(0)}, {}


def _sizes(held: Any, names: Mapping[str, str]) -> list[size.Size]:
    """As the footer says: a value takes 8 bytes, however well it is packed; of a column by its whole path."""
    sizes: dict[str, size.Size] = {}
    for group in map(held.row_group, range(held.num_row_groups)):
        for column in map(group.column, range(group.num_columns)):
            path, n = column.path_in_schema, max(column.num_values, group.num_rows)
            if path.split(".")[0] in (*COLUMNS, *names.values()):
                rows, n_bytes = sizes.get(path, (0, 0))
                sizes[path] = (rows + n, n_bytes + max(8 * n, column.total_uncompressed_size))
    return list(sizes.values())


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


def _array(column: Any, kind: str, name: str) -> Any:
    """As NumPy has it; an empty cell is an error, as it would become a NaN or a text."""
    import pyarrow.types as is_a

    plain = column.type
    if column.null_count:
        row = next(i for i, value in enumerate(column) if not value.is_valid)
        raise InvalidInput(f"{name}: {kind} must have a value in every row, but row {row} (the first is 0) has none.")
    words = plain.value_type if is_a.is_dictionary(plain) else plain
    labels = kind == "bit" and (is_a.is_string(words) or is_a.is_large_string(words))
    if kind in TEXTS or labels:  # numbers may be names too
        encoded = column if is_a.is_dictionary(plain) else column.dictionary_encode()
        encoded = encoded.unify_dictionaries().combine_chunks()
        return Words([str(value) for value in encoded.dictionary.to_pylist()], encoded.indices.to_numpy())
    if is_a.is_dictionary(plain):
        column, plain = column.cast(plain.value_type), plain.value_type
    if not (is_a.is_integer(plain) or is_a.is_floating(plain) or is_a.is_boolean(plain)):
        raise InvalidInput(f"{name}: {kind} must be a column of numbers, but its type is {plain}.")
    return np.asarray(column)
