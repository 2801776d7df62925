"""Files of scores: which kind a path is, and which adjacency holds."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

from epsgauge.adjacency import Adjacency, checked
from epsgauge.errors import InvalidInput
from epsgauge.scores import archive, parquet, text
from epsgauge.scores.table import COLUMNS, Scores

KINDS: dict[str, Any] = {".csv": text, ".npz": archive, ".parquet": parquet}


def read(path: str | os.PathLike[str], *, adjacency: str | None = None) -> Scores:
    """The table in a file; without the columns model and pair, every row is of a model of its own."""
    passed = None if adjacency is None else checked(adjacency)
    name = "standard input" if os.fspath(path) == "-" else os.fspath(path)
    raw = _bytes(path, name)
    columns, stated = KINDS.get(Path(path).suffix.lower(), text).parse(raw, name)
    holds = _agreed(passed, stated, name)
    try:
        return Scores(**_with_models(columns, name), adjacency=holds)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from None


def write(scores: Scores, path: str | os.PathLike[str]) -> None:
    file = Path(path)
    kind = KINDS.get(file.suffix.lower())
    if kind is None:
        raise InvalidInput(f"scores are written to a .csv, a .npz or a .parquet file, but got {os.fspath(path)}.")
    columns = {name: getattr(scores, name) for name in COLUMNS if getattr(scores, name) is not None}
    try:
        _replace(file, kind.render(columns, scores.adjacency))
    except OSError as error:
        raise InvalidInput(f"{os.fspath(path)} cannot be written: {error.strerror}.") from None


def _bytes(path: str | os.PathLike[str], name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if os.fspath(path) == "-" else Path(path).read_bytes()
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {name}. Give a CSV, a .npz or a .parquet file of scores.") from None
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}.") from None


def _agreed(passed: Adjacency | None, stated: str | None, name: str) -> Adjacency:
    if stated is None:
        if passed is None:
            raise InvalidInput(
                f"{name} does not say its adjacency. Pass adjacency as substitute (one point was replaced) or "
                f'add-remove (it was in or out), or make its first line "{text.MARK}substitute".'
            )
        return passed
    said = checked(stated, f"the adjacency of {name}")
    if passed not in (None, said):
        raise InvalidInput(
            f"{name} says that its adjacency is {said}, but adjacency is {passed}. Leave adjacency out, or give the "
            "file that belongs to it."
        )
    return said


def _with_models(columns: dict[str, Any], name: str) -> dict[str, Any]:
    """With the columns that may be missing: every row of a model of its own."""
    if "model" not in columns and "pair" in columns:
        raise InvalidInput(f"{name} has a column pair and none that says of which model. Add the column model.")
    n = len(columns["score"])
    return {"model": np.arange(n), "pair": np.zeros(n, np.int64), **columns}


def _replace(file: Path, content: bytes) -> None:
    """All or nothing: a file that was cut short would read as a smaller audit."""
    spare = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        spare.write_bytes(content)
        os.replace(spare, file)
    finally:
        spare.unlink(missing_ok=True)
