"""The log of looks at results, a file beside the store: readers add a line to it, and never write the store.

The seal of a line is a digest of everything before it and of itself. The first line names the run, so that the log of
another run does not fit. A process that is killed as it writes may leave part of a line, which is no look.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsgauge.declaration import now
from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.files import replace
from epsgauge.runner.lock import file_locks
from epsgauge.runner.plain_files import check_plain, open_plain
from epsgauge.runner.trouble import damaged

FILE = "looks.jsonl"
_MOST = 100_000_000  # bytes
_SECONDS = 5.0  # how long a reader waits for another that writes
_PAUSE = 0.01

Look = dict[str, Any]
Noted = tuple[int, str]  # how many looks there are, and the last seal


@dataclass(frozen=True)
class Log:
    """The looks at a run, the oldest first, and the seals of the first line and of each look."""

    looks: list[Look]
    seals: list[str]

    @property
    def noted(self) -> Noted:
        return len(self.looks), self.seals[-1]


def begin_log(folder: Path, identity: str, looks: Iterable[Mapping[str, Any]] = ()) -> Noted:
    """A new log, in the place of any that is there."""
    raw, entries = b"", [{"run": identity}, *looks]
    for entry in entries:
        raw += _line(raw, entry)
    check_plain(folder / FILE)
    try:
        replace(folder / FILE, raw)
    except OSError as error:
        raise EpsgaugeError(
            f"{folder / FILE} cannot be written: {error.strerror}. Make room, or use another --out."
        ) from None
    return len(entries) - 1, str(json.loads(raw.splitlines()[-1])["seal"])


def read_log(folder: Path, identity: str, noted: Noted) -> Log:
    """Each line held against its seal, and all of them against `noted`, which the store keeps."""
    file, before, unread = folder / FILE, hashlib.sha256(), False
    looks, seals = list[Look](), list[str]()
    for number, line in enumerate(io.BytesIO(_read(file)), 1):
        entry, unread = _entry(line), False
        if entry is not None:
            seal = entry.pop("seal", None)
            if seal != _seal(before, entry) or bool(seals) == (entry == {"run": identity}):
                raise damaged(file, f"line {number} is not what was written")
            seals.append(seal)
            looks += [entry] if len(seals) > 1 else []
        elif line.strip():  # part of a look, for which the seal of the next line vouches, or which does not end
            unread = line.endswith(b"\n")
        before.update(line)
    if unread:
        raise damaged(file, "its last line is not what was written")
    n, last = noted
    if seals[n : n + 1] != [last]:
        raise damaged(file, "looks logged before the last run are missing")
    return Log(looks, seals)


def read_unchecked(folder: Path) -> list[Look]:
    """Whatever is there."""
    if not (folder / FILE).exists():
        return []
    entries = [_entry(line) for line in io.BytesIO(_read(folder / FILE))]
    return [entry for entry in entries if entry is not None and "run" not in entry]


def log_look(folder: Path, look: Mapping[str, Any]) -> bool:
    """Add a look, also while a run and other readers write; False if it cannot be done, which must not fail a reader.

    One line is written by one call: a reader that is killed leaves the log as it was, or with part of a line.
    """
    try:
        descriptor = open_plain(folder / FILE, os.O_RDWR | os.O_APPEND)
        with os.fdopen(descriptor, "r+b", buffering=0) as file:  # closing it frees the lock
            if not _locked(descriptor):
                return False
            raw = file.read(_MOST)
            if not raw or len(raw) == _MOST:
                return False
            start = b"" if raw.endswith(b"\n") else b"\n"
            line = start + _line(raw + start, {"time": now(), **look})
            return file.write(line) == len(line)
    except (OSError, InvalidInput):
        return False


def _locked(descriptor: int) -> bool:
    """Take the lock of the log, unless others keep it for too long; a system without such locks does without."""
    fcntl, until = file_locks(), time.monotonic() + _SECONDS
    while fcntl is not None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(_PAUSE)
    return True


def _line(before: bytes, entry: Mapping[str, Any]) -> bytes:
    return json.dumps({**entry, "seal": _seal(hashlib.sha256(before), entry)}).encode() + b"\n"


def _seal(before: Any, entry: Mapping[str, Any]) -> str:
    """`before` is the SHA-256 of everything before the line."""
    found = before.copy()
    found.update(json.dumps(entry, sort_keys=True).encode())
    return str(found.hexdigest())


def _entry(line: bytes) -> Look | None:
    """What a line holds; None if it is no JSON object, as part of one never is."""
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _read(file: Path) -> bytes:
    """Also through a link, as tools have it that keep data in a cache."""
    check_plain(file, linked=True)
    try:
        with file.open("rb") as opened:
            raw = opened.read(_MOST)
    except FileNotFoundError:
        raise damaged(file, "the file is missing") from None
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}. Check that you may read it.") from None
    if len(raw) == _MOST:
        raise damaged(file, "it is too long")
    return raw
