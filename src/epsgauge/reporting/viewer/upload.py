"""A dropped file of scores: taken up to a size, parsed in a file that is deleted at once, no pickle read."""

from __future__ import annotations

import io
import math
import tempfile
import zipfile
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

import numpy.lib.format

from epsgauge.errors import InvalidInput
from epsgauge.scores.files import KINDS
from epsgauge.scores.table import Scores

MOST_BYTES = 20 * 2**20
MOST_INSIDE = 10 * MOST_BYTES  # what a compressed file may hold
MOST_ROWS = 2_000_000
TOO_LARGE = (
    f"A dropped file may have {MOST_BYTES // 2**20} MB and {MOST_ROWS:,} rows. Audit a larger one with: "
    "epsgauge scores FILE"
)

NPY: Any = numpy.lib.format  # without types of its own
Size = tuple[int, int]  # rows and bytes


async def taken(stream: AsyncIterator[bytes], length: str | None) -> bytes:
    """The whole file, or an error as soon as it is too large."""
    if length is not None and length.isdigit() and int(length) > MOST_BYTES:
        raise InvalidInput(TOO_LARGE)
    parts, size = [], 0
    async for chunk in stream:
        size += len(chunk)
        if size > MOST_BYTES:
            raise InvalidInput(TOO_LARGE)
        parts.append(chunk)
    return b"".join(parts)


def scores_of(raw: bytes, name: str, said: Mapping[str, str]) -> Scores:
    """The table in a file that a user calls `name`, with what the form says of it."""
    suffix = PurePosixPath(name.lower()).suffix
    if suffix not in KINDS:
        raise InvalidInput(f"a file of scores ends in {', '.join(KINDS)}, but got {name[-80:]!r}.")
    _check_inside(raw, suffix)
    with tempfile.TemporaryDirectory(prefix="epsgauge-") as folder:
        file = Path(folder, f"scores{suffix}")
        file.write_bytes(raw)
        try:
            return Scores.read(file, **{key: said.get(key) or None for key in ("adjacency", "bits", "models")})
        except InvalidInput as error:
            raise InvalidInput(str(error).replace(str(file), name[-80:])) from None
        except MemoryError:
            raise InvalidInput(f"{name[-80:]} does not fit into memory.") from None


def _check_inside(raw: bytes, suffix: str) -> None:
    """A small file can be a very large table; what is wrong with it otherwise, the reader says."""
    arrays: list[Size] = [(raw.count(b"\n"), len(raw))] if suffix == ".csv" else []
    with suppress(Exception):  # also where pyarrow is missing
        if suffix == ".npz":
            arrays = _of_archive(raw)
        if suffix == ".parquet":
            arrays = _of_parquet(raw)
    if any(n_rows > MOST_ROWS for n_rows, _ in arrays) or sum(n_bytes for _, n_bytes in arrays) > MOST_INSIDE:
        raise InvalidInput(TOO_LARGE)


def _of_archive(raw: bytes) -> list[Size]:
    """As the headers of its arrays say, and no less than what is packed."""
    sizes = []
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        for info in archive.infolist():
            n_rows, n_bytes = 0, 0
            with suppress(Exception), archive.open(info) as file:  # of one that is no array its size alone is known
                version = NPY.read_magic(file)
                read = NPY.read_array_header_1_0 if version == (1, 0) else NPY.read_array_header_2_0
                shape, _, kind = read(file)
                n_rows = math.prod(shape)
                n_bytes = n_rows * kind.itemsize
            sizes.append((n_rows, max(n_bytes, info.file_size)))
    return sizes


def _of_parquet(raw: bytes) -> list[Size]:
    from pyarrow.parquet import ParquetFile

    held = ParquetFile(io.BytesIO(raw)).metadata
    return [(held.num_rows, sum(held.row_group(i).total_byte_size for i in range(held.num_row_groups)))]
