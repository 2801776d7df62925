"""Files of scores: which kind a path is, and what is said of it: adjacency, bits, and which rows share a model."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from epsgauge.adjacency import checked
from epsgauge.errors import InvalidInput
from epsgauge.files import replace
from epsgauge.scores import archive, parquet, text
from epsgauge.scores.origin import Origin
from epsgauge.scores.said import OPTION, Models, checked_bits, checked_models
from epsgauge.scores.table import COLUMNS, Scores

KINDS: dict[str, Any] = {".csv": text, ".npz": archive, ".parquet": parquet}
STATED: dict[str, Any] = {"adjacency": checked, "bits": checked_bits}  # in a file or where it is read


class Unstated(InvalidInput):
    """A file that does not say something, and nobody else does: `asks` is the argument that can."""

    def __init__(self, sentence: str, asks: str = "adjacency") -> None:
        super().__init__(sentence)
        self.asks = asks


def read(
    path: str | os.PathLike[str],
    *,
    adjacency: str | None = None,
    bits: str | None = None,
    models: str | None = None,
    bit_column: str = "bit",
    score_column: str = "score",
    lower_is_in: bool = False,
) -> Scores:
    """The table in a file, with what is said of it there or here."""
    passed = {
        "adjacency": None if adjacency is None else checked(adjacency),
        "bits": None if bits is None else checked_bits(bits),
    }
    rows = None if models is None else checked_models(models)
    name = "standard input" if os.fspath(path) == "-" else os.fspath(path)
    if bit_column == score_column:
        raise InvalidInput(f"bit_column and score_column must be two columns, but both are {bit_column!r}.")
    try:
        return _read(Origin(os.fspath(path), bit_column, score_column, lower_is_in), name, passed, rows)
    except MemoryError:
        raise InvalidInput(
            f"{name} does not fit into memory. Judge it on a machine with more, or fewer rows."
        ) from None


def _read(origin: Origin, name: str, passed: Mapping[str, str | None], rows: Models | None) -> Scores:
    kind = KINDS.get(Path(origin.file).suffix.lower(), text)
    columns, stated = kind.parse(raw_bytes(origin.file, name), name, origin.names)
    said = {key: _agreed(key, passed[key], stated.get(key), name) for key in STATED}
    if said["adjacency"] is None:
        raise Unstated(
            f"{name} does not say its adjacency. Pass adjacency as substitute (one point was replaced), "
            f"add-remove (it was in or out) or label-only (its label was changed), or {kind.HOW}."
        )
    columns = with_models(columns, rows, name)
    if origin.lower_is_in:
        columns["score"] = -np.asarray(columns["score"], np.float64)
    of_all = {"adjacency": said["adjacency"], "bits": said["bits"] or "unknown", "taken_as": rows, "origin": origin}
    try:
        return Scores(**columns, **of_all)
    except InvalidInput as error:
        raise InvalidInput(f"{name}: {error}") from None


def write(scores: Scores, path: str | os.PathLike[str]) -> None:
    file = Path(path)
    kind = KINDS.get(file.suffix.lower())
    if kind is None:
        raise InvalidInput(f"scores are written to a .csv, a .npz or a .parquet file, but got {os.fspath(path)}.")
    columns = {name: getattr(scores, name) for name in COLUMNS if getattr(scores, name) is not None}
    try:
        replace(file, kind.render(columns, _known(scores)))  # one that is cut short would be a smaller audit
    except OSError as error:
        raise InvalidInput(f"{os.fspath(path)} cannot be written: {error.strerror}.") from None


def _known(scores: Scores) -> dict[str, str]:
    """What a file states; of bits of which nothing is known it says nothing."""
    return {"adjacency": scores.adjacency, **({} if scores.bits == "unknown" else {"bits": scores.bits})}


def raw_bytes(path: str | os.PathLike[str], name: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if os.fspath(path) == "-" else Path(path).read_bytes()
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {name}. Give a CSV, a .npz or a .parquet file of scores.") from None
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}.") from None


def _agreed(key: str, passed: str | None, stated: str | None, name: str) -> Any:
    """What is passed or stated, checked; None where neither is."""
    if stated is None:
        return passed
    said = STATED[key](stated, f"the {key} of {name}")
    if passed not in (None, said):
        verb = "is" if key == "adjacency" else "are"
        raise InvalidInput(
            f"{name} says that its {key} {verb} {said}, but {key} {verb} {passed}. Leave {key} out, or give the file "
            "that belongs to it."
        )
    return said


def with_models(columns: dict[str, Any], rows: Models | None, name: str) -> dict[str, Any]:
    """With the columns that may be missing; which rows share a model is never guessed."""
    n = len(columns["score"])
    if "model" in columns:
        if rows is not None:
            raise InvalidInput(
                f"{name} has a column model, which says which rows share a model, but models is {rows}. Leave models "
                f"out ({OPTION[rows]})."
            )
        return {"pair": np.zeros(n, np.int64), **columns}
    if rows in ("one", "orthogonal"):
        return {"model": np.zeros(n, np.int64), "pair": np.arange(n), **columns}
    if "pair" in columns:
        raise InvalidInput(
            f"{name} has a column pair and none that says of which model. Add the column model, or pass models as one "
            "(--one-model) if all rows are of one model."
        )
    if rows is None:
        raise Unstated(
            f"{name} does not say which rows share a model. If all rows are guesses about one model, pass --one-model "
            '(models="one"); add --fit-pairs N to pick a threshold on N of them. If each row has a model of its own, '
            'pass --independent (models="independent"). Or add the column model.',
            "models",
        )
    return {"model": np.arange(n), "pair": np.zeros(n, np.int64), **columns}
