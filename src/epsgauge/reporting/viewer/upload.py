"""A dropped file of scores: taken up to a size, parsed in a file that is deleted at once, no pickle read."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath

from epsgauge.errors import InvalidInput
from epsgauge.scores.files import KINDS
from epsgauge.scores.table import Scores

MOST_BYTES = 20 * 2**20
MOST_INSIDE = 10 * MOST_BYTES  # what a compressed file may hold
MOST_ROWS = 5_000_000
TOO_LARGE = f"A dropped file may have {MOST_BYTES // 2**20} MB. Audit a larger one with: epsgauge scores FILE"


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


def scores_of(raw: bytes, name: str, adjacency: str | None) -> Scores:
    """The table in a file that a user calls `name`."""
    suffix = PurePosixPath(name.lower()).suffix
    if suffix not in KINDS:
        raise InvalidInput(f"a file of scores ends in {', '.join(KINDS)}, but got {name[-80:]!r}.")
    _check_inside(raw, suffix)
    with tempfile.TemporaryDirectory(prefix="epsgauge-") as folder:
        file = Path(folder, f"scores{suffix}")
        file.write_bytes(raw)
        try:
            return Scores.read(file, adjacency=adjacency or None)
        except InvalidInput as error:
            raise InvalidInput(str(error).replace(str(file), name[-80:])) from None
        except MemoryError:
            raise InvalidInput(f"{name[-80:]} does not fit into memory.") from None


def _check_inside(raw: bytes, suffix: str) -> None:
    """A small file can unpack into a very large one."""
    if suffix == ".npz":
        try:
            with zipfile.ZipFile(io.BytesIO(raw)) as archive:
                inside = sum(info.file_size for info in archive.infolist())
        except (zipfile.BadZipFile, ValueError, NotImplementedError):
            return  # the reader says what is wrong with it
        if inside > MOST_INSIDE:
            raise InvalidInput(TOO_LARGE)
    if suffix == ".parquet":
        try:
            from pyarrow.parquet import ParquetFile

            n_rows = ParquetFile(io.BytesIO(raw)).metadata.num_rows
        except Exception:  # the reader says what is wrong with it, or that pyarrow is missing
            return
        if n_rows > MOST_ROWS:
            raise InvalidInput(TOO_LARGE)
