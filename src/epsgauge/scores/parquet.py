"""Scores as Parquet: one column each, adjacency and bits in the file's metadata."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

from epsgauge.errors import InvalidInput
from epsgauge.scores import arrow, isolated
from epsgauge.scores.table import TEXTS

HOW = "add epsgauge.adjacency to its metadata"  # to say it in the file
MAGIC = b"PAR1"  # begins and ends every Parquet file


def parse(raw: bytes, name: str, names: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The columns that scores have, and what the file states; `names` are columns that the file calls otherwise."""
    arrow.check_installed()
    if not raw.startswith(MAGIC):
        raise InvalidInput(f"{name} is not a Parquet file. Write the scores as Parquet, or as CSV to another name.")
    return isolated.read("parquet", raw, name, names=dict(names))


def render(columns: dict[str, Any], stated: dict[str, str]) -> bytes:
    arrow.check_installed()
    import pyarrow as pa
    import pyarrow.parquet as pq

    arrays = {name: column.tolist() if name in TEXTS else column for name, column in columns.items()}
    types = {name: pa.string() if name in TEXTS else pa.from_numpy_dtype(columns[name].dtype) for name in columns}
    table = pa.table({name: pa.array(column, types[name]) for name, column in arrays.items()})
    out = io.BytesIO()
    said = {arrow.STATED[key]: value.encode() for key, value in stated.items()}
    pq.write_table(table.replace_schema_metadata(said), out, write_page_checksum=True)
    return out.getvalue()
