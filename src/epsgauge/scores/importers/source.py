"""What an importer reads: an object of a tool, a mapping, a file or a folder of files, as arrays by their names."""

from __future__ import annotations

import csv
import io
import json
import os
from array import array
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.references import nearest
from epsgauge.scores import isolated, size
from epsgauge.scores.archive import arrays
from epsgauge.scores.files import raw_bytes

PICKLES = (".pkl", ".pickle", ".joblib", ".pt", ".pth", ".npy")
NEVER_READ = (
    "a pickle, which is never read, as it can run any code. Load it where you trust it and pass the object, or write "
    "its arrays with np.savez."
)


@dataclass(frozen=True)
class Source:
    """`given` is the object, or the path of a file or folder; `wants` says in words what it should be."""

    given: Any
    wants: str

    @property
    def path(self) -> Path | None:
        return Path(self.given) if isinstance(self.given, str | os.PathLike) else None

    @property
    def name(self) -> str:
        return "the object" if self.path is None else os.fspath(self.given)

    @property
    def is_folder(self) -> bool:
        return self.path is not None and self.path.is_dir()

    @property
    def names(self) -> list[str]:
        """What this folder holds."""
        return sorted(file.name for file in (self.path or Path()).iterdir())

    def part(self, name: str) -> Source:
        """A file or folder in this folder."""
        return Source((self.path or Path()) / name, self.wants)

    def fields(self, wanted: Collection[str], needed: Collection[str] | None = None) -> dict[str, Any]:
        """Those of the `wanted` that there are, and all that are `needed`: all of them, unless it is said."""
        needed = wanted if needed is None else needed
        if self.path is not None:
            return self._of_file(self.path, wanted, needed)
        if isinstance(self.given, Mapping):
            return self._chosen(self.given, wanted, needed)
        held = {key: getattr(self.given, key, None) for key in wanted}
        return self._chosen({key: value for key, value in held.items() if value is not None}, wanted, needed)

    def _of_file(self, path: Path, wanted: Collection[str], needed: Collection[str]) -> dict[str, Any]:
        suffix = path.suffix.lower()
        if suffix in PICKLES:
            raise InvalidInput(f"{self.name} is a kind of file that can hold {NEVER_READ}")
        if suffix not in (".npz", ".json", ".csv"):
            raise InvalidInput(
                f"{self.name} must be a .npz, a .json or a .csv file, but is none of these. Give {self.wants}."
            )
        raw = raw_bytes(path, self.name)
        if suffix == ".npz":
            read, found = arrays(raw, self.name, wanted)
            for key in needed:
                if key not in found:
                    has = ", ".join(found) or "none"
                    raise InvalidInput(f"{self.name} must have an array {key}, but has: {has}.{nearest(key, found)}")
            for key in read:
                if found.count(key) > 1:
                    raise InvalidInput(f"{self.name} must have one array {key}, but has {found.count(key)}.")
            return read
        held = _json(raw, self.name) if suffix == ".json" else _csv(raw, self.name, wanted)
        return self._chosen(held, wanted, needed)

    def _chosen(self, held: Mapping[str, Any], wanted: Collection[str], needed: Collection[str]) -> dict[str, Any]:
        for key in needed:
            if key not in held:
                known = ", ".join(map(str, list(held)[:20])) or "none of what is read"
                guess = nearest(key, map(str, held))
                raise InvalidInput(f"{self.name} must have {key}, but has: {known}.{guess} Give {self.wants}.")
        return {key: held[key] for key in wanted if key in held}

    def dataset(self, column: str) -> Any:
        """One column of a folder that `save_to_disk` of Hugging Face's datasets wrote."""
        files = sorted((self.path or Path()).glob("*.arrow"))
        if not files:
            raise InvalidInput(
                f"{self.name} must be a folder with .arrow files, as save_to_disk writes it, but has none."
            )
        found: list[Any] = []
        for file in files:
            name = os.fspath(file)
            try:
                columns, _ = isolated.read("stream", raw_bytes(file, name), name, column=column)
            except MemoryError:
                raise InvalidInput(f"{name} does not fit into memory. Write fewer rows to it.") from None
            found.append(columns[column])
            size.check_rows(sum(map(len, found)), self.name)
        return np.concatenate(found)


def flat(value: Any, name: str) -> Any:
    """A list of numbers, of whatever held them."""
    return numbers(value, name, dimensions=(1,))


def numbers(value: Any, name: str, *, dimensions: tuple[int, ...]) -> Any:
    """An array of numbers of whatever held them, with one of these numbers of dimensions."""
    plain = value.detach().cpu().numpy() if hasattr(value, "detach") else value
    try:
        held = np.asarray(plain)
    except (TypeError, ValueError, OverflowError):  # lists of different lengths, say
        held = np.empty(0, np.object_)
    if held.dtype.kind in "biuf" and held.ndim in dimensions:
        return held
    rule = "one list of numbers" if dimensions == (1,) else "a list of numbers, or lists of them that are equally long"
    raise InvalidInput(f"{name} must be {rule}, but is a {type(value).__name__}.")


def in_out(ins: Any, outs: Any, names: tuple[str, str]) -> dict[str, Any]:
    """Scores of members and of others as columns, both in their order, mixed as evenly as can be."""
    from epsgauge.scores.table import Scores

    table = Scores.from_in_out(flat(ins, names[0]), flat(outs, names[1]), adjacency="add-remove", models="independent")
    return {"bit": table.bit, "score": table.score}


def _json(raw: bytes, name: str) -> dict[str, Any]:
    size.check([((raw.count(b",") + 1) // 2, len(raw))], name)  # two numbers a row, or more
    if raw.startswith(b"\x80"):  # LeakPro named pickles so for a while
        raise InvalidInput(f"{name} is {NEVER_READ}")
    try:
        held = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{name} is not JSON: {error}.") from None
    if not isinstance(held, dict):
        raise InvalidInput(f"{name} must hold an object with names, but holds a {type(held).__name__}.")
    return held


def _csv(raw: bytes, name: str, wanted: Collection[str]) -> dict[str, Any]:
    """The wanted columns, if they hold numbers."""
    size.check([(raw.count(b"\n"), len(raw))], name)
    try:
        rows = csv.reader(io.StringIO(raw.decode("utf-8-sig"), newline=""), strict=True)
        header = next(rows)
        held = {column: array("d") for column in header}
        for number, row in enumerate(rows):
            if len(row) != len(header):
                raise InvalidInput(f"{name}, row {number}: {len(row)} cells, but the header has {len(header)} columns.")
            for column, cell in zip(header, row, strict=True):
                if column in wanted and column in held:
                    try:
                        held[column].append(float(cell))
                    except ValueError:
                        del held[column]
    except StopIteration:
        raise InvalidInput(f"{name} is not CSV in UTF-8 with a header: it is empty.") from None
    except InvalidInput:
        raise
    except (ValueError, csv.Error) as error:
        raise InvalidInput(f"{name} is not CSV in UTF-8 with a header: {error}.") from None
    return {column: np.array(values) for column, values in held.items()}
