"""Files that a plan names: found beside it, read whole, and one sentence where that cannot be."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from pathlib import Path

from epsgauge.errors import InvalidInput
from epsgauge.references import plan_folder

MOST_BYTES = 4 * 2**30  # of a file, unpacked


def located(path: str | os.PathLike[str], what: str) -> Path:
    """The file or folder; a relative path is seen from the plan's folder, else from the current one."""
    base = plan_folder()
    found = Path(path).expanduser()
    if base is not None and not found.is_absolute():
        found = base / found
    if not found.exists():
        raise InvalidInput(f"{what} must be there, but {found} is not. Give the path where you have it.")
    return found


def content(file: Path, what: str) -> bytes:
    """The bytes of a file, unpacked if it is gzipped."""
    try:
        raw = file.read_bytes()
        return _unpacked(raw, f"{what} {file}") if raw[:2] == b"\x1f\x8b" else raw
    except OSError as error:
        raise InvalidInput(f"{what} {file} cannot be read: {error.strerror or error}.") from None
    except (EOFError, zlib.error):
        raise InvalidInput(f"{what} {file} is damaged: its compressed content ends too early.") from None


def _unpacked(raw: bytes, what: str) -> bytes:
    """A small file can unpack to more than a machine has."""
    with gzip.open(io.BytesIO(raw)) as file:
        out = file.read(MOST_BYTES + 1)
    if len(out) > MOST_BYTES:
        raise InvalidInput(f"{what} may unpack to {MOST_BYTES // 2**30} GB at most, but is larger. Unpack it yourself.")
    return out
