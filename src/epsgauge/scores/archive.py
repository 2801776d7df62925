"""Scores as NumPy's .npz: one array a column, and the adjacency."""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.references import nearest
from epsgauge.scores.table import COLUMNS, NEEDED


def parse(raw: bytes, name: str) -> tuple[dict[str, Any], str | None]:
    """The columns that scores have, and the adjacency that the file states; a pickle inside is not read."""
    if not raw.startswith(b"PK"):
        raise InvalidInput(f"{name} is not a NumPy archive. Write the scores with np.savez, or as CSV to another name.")
    try:
        with np.load(io.BytesIO(raw), allow_pickle=False) as fields:
            found = list(fields)
            columns = {key: fields[key] for key in COLUMNS if key in found}
            stated = str(fields["adjacency"]) if "adjacency" in found else None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, KeyError, NotImplementedError):
        raise InvalidInput(f"{name} is damaged: its archive cannot be read to the end. Write it again.") from None
    except ValueError as error:
        why = "holds Python objects, which are not read" if "pickle" in str(error) else "is damaged"
        raise InvalidInput(f"{name} {why}. Write plain arrays of numbers and text with np.savez.") from None
    for needed in NEEDED:
        if needed not in found:
            raise InvalidInput(
                f"{name} must have an array {needed}, but has: {', '.join(found) or 'none'}.{nearest(needed, found)}"
            )
    return columns, stated


def render(columns: dict[str, Any], adjacency: str) -> bytes:
    out = io.BytesIO()
    np.savez(out, adjacency=np.array(adjacency), **columns)
    return out.getvalue()
