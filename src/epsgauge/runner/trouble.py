"""What goes wrong with a store, as one sentence with a remedy."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from epsgauge.errors import EpsgaugeError, InvalidInput

_SHOWN = 200  # characters of what is wrong


class Damaged(InvalidInput):
    """A store that does not hold what was written; `how` says what is wrong, without the file and the remedy."""

    how = ""
    remedy = "Restore it from a copy, or start again with a new --out."


def damaged(file: Path, how: str) -> Damaged:
    first, *_ = how.splitlines() or [""]
    error = Damaged(f"{file} is damaged ({first[:_SHOWN]}). {Damaged.remedy}")
    error.how = first[:_SHOWN]
    return error


LOST_WRITES = "its write-ahead log is damaged, and later writes are lost"


def lost_writes(file: Path) -> Damaged:
    error = Damaged(f"{file} is damaged ({LOST_WRITES}). Run it again: the lost models are trained again.")
    error.how, error.remedy = LOST_WRITES, "Run it again: the lost models are trained again."
    return error


class Empty(Damaged):
    """A store without a table: cut to nothing, or about to begin."""


class OtherVersion(InvalidInput):
    """A store that another version must read."""


def newer(file: Path, what: str, known: int | str) -> OtherVersion:
    return OtherVersion(f"{file} was written by a newer epsgauge ({what}, this one knows {known}). Upgrade epsgauge.")


def older(file: Path, version: int, known: int) -> OtherVersion:
    return OtherVersion(
        f"{file} has schema {version}, but this epsgauge only reads schema {known}. Start again with a new --out."
    )


@contextmanager
def unharmed(file: Path) -> Iterator[None]:
    """Around reading what a store holds: values that nobody could have written are damage."""
    try:
        yield
    except (Damaged, OtherVersion):
        raise
    except (InvalidInput, KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        raise damaged(file, f"{type(error).__name__}: {error}") from error


@contextmanager
def in_words(file: Path) -> Iterator[None]:
    """What SQLite says, as one sentence with a remedy."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise  # a mistake of ours
    except UnicodeDecodeError as error:  # SQLite's own message quotes damaged text
        raise damaged(file, "a text in it is not UTF-8") from error
    except sqlite3.DatabaseError as error:
        name = getattr(error, "sqlite_errorname", None) or ""
        if name == "SQLITE_FULL":
            raise EpsgaugeError(
                f"the disk is full, {file} cannot grow. What is done is kept: make room and run it again."
            ) from error
        if name == "SQLITE_INTERRUPT":
            raise damaged(file, "reading it takes too long") from error
        if name.startswith(("SQLITE_IOERR", "SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_PERM")):
            raise EpsgaugeError(
                f"{file} could not be read or written ({error}). What is done is kept: run it again."
            ) from error
        if name in ("SQLITE_READONLY_ROLLBACK", "SQLITE_READONLY_RECOVERY", "SQLITE_READONLY_CANTINIT"):
            raise EpsgaugeError(f"{file} was left in the middle of a write. Run it again once to repair it.") from error
        if name.startswith("SQLITE_CANTOPEN") and file.exists() and not os.access(file, os.R_OK):
            raise InvalidInput(f"you may not read {file}. Its owner can share it, say with chmod g+r.") from error
        if name.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
            raise InvalidInput(
                f"{file} could not be opened ({error}). Check that you may read and write it."
            ) from error
        quoted = str(error).startswith("Could not decode")  # and then all of it
        raise damaged(file, "a text in it is not UTF-8" if quoted else str(error)) from error
