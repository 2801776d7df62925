"""Arrays that are expensive to compute, kept in the user's cache folder."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from epsgauge.files import replace

_DIGEST = hashlib.sha256().digest_size


def cached(key: str, compute: Callable[[], NDArray[np.float32]]) -> NDArray[np.float32]:
    """What `compute` gave for this key before; a file that is missing or damaged is made anew.

    A file is an .npy array followed by the SHA-256 of its bytes. Where none can be written, nothing is kept.
    """
    file = folder() / f"{key}.npy"
    array = _read(file)
    if array is None:
        array = compute()
        _write(file, array)
    return array


def folder() -> Path:
    """$XDG_CACHE_HOME/epsgauge, or ~/.cache/epsgauge."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "epsgauge"


def _read(file: Path) -> NDArray[np.float32] | None:
    try:
        raw = file.read_bytes()
        if hashlib.sha256(raw[:-_DIGEST]).digest() != raw[-_DIGEST:]:
            return None
        array: NDArray[np.float32] = np.load(io.BytesIO(raw[:-_DIGEST]), allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return array


def _write(file: Path, array: NDArray[np.float32]) -> None:
    """Whole or not at all: another process may be reading."""
    content = io.BytesIO()
    np.save(content, array, allow_pickle=False)
    raw = content.getvalue()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace(file, raw + hashlib.sha256(raw).digest())
    except OSError:
        return
