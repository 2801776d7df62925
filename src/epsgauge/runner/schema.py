"""The tables of a store, and how those of an earlier schema become them."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

SCHEMA = 5
DECLARES = 3  # the first schema with tables of declarations and looks
SEALS = 5  # the first one whose rows have a seal


@dataclass(frozen=True)
class Table:
    """A table whose rows have a seal. The first column is its key; rows with another value of `apart` have a sum of
    their own.
    """

    name: str
    columns: dict[str, str]  # name -> what SQLite is told of it
    apart: str | None = None

    @property
    def key(self) -> str:
        return next(iter(self.columns))

    @property
    def sql(self) -> str:
        columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
        # a table with a text for its key is kept by it: an index beside it could be damaged by itself
        kept = " WITHOUT ROWID" if "TEXT" in self.columns[self.key] else ""
        return f"CREATE TABLE {self.name} ({columns}, seal BLOB NOT NULL){kept}"


# Blobs hold little-endian numbers: bits as uint8, indices as int64, channels and losses as float64. `signals` has a
# model's channels one after the other, as the table `channels` lists them.
_MODEL = {
    "idx": "INTEGER PRIMARY KEY",
    "state": "TEXT NOT NULL CHECK (state IN ('done', 'failed'))",
    "seed": "INTEGER NOT NULL",
    "seconds": "REAL NOT NULL",
    "finished": "REAL NOT NULL",
    "error": "TEXT",
    "bits": "BLOB NOT NULL",
    "pairs": "BLOB NOT NULL",
    "signals": "BLOB",
}
STATES = ("done", "failed")
META = Table("meta", {"key": "TEXT PRIMARY KEY", "value": "TEXT NOT NULL"})
MODELS = Table("models", _MODEL, "state")
# Models set apart; their numbers say what each of them is (games/rehearsal.py).
REHEARSALS = Table("rehearsals", _MODEL, "state")
CHANNELS = Table(
    "channels",
    {
        "place": "INTEGER PRIMARY KEY",
        "name": "TEXT NOT NULL",
        "version": "INTEGER NOT NULL",
        "dtype": "TEXT NOT NULL",
        "shape": "TEXT NOT NULL",
    },
)
# Both are only ever added to. `own` and `content` are JSON; `as_planned` says whether all models were over and their
# number had been fixed before. It, time and n_done are NULL where an earlier schema kept none.
DECLARATIONS = Table(
    "declarations",
    {
        "id": "INTEGER PRIMARY KEY",
        "time": "TEXT",
        "n_done": "INTEGER",
        "n_looks": "INTEGER NOT NULL",
        "content": "TEXT NOT NULL",
        "digest": "TEXT NOT NULL",
    },
)
LOOKS = Table(
    "looks",
    {
        "id": "INTEGER PRIMARY KEY",
        "time": "TEXT NOT NULL",
        "kind": "TEXT NOT NULL",
        "n_done": "INTEGER NOT NULL",
        "n_models": "INTEGER NOT NULL",
        "as_planned": "INTEGER",
        "own": "TEXT",
    },
)
RANKINGS = Table(
    "rankings",
    {
        "idx": "INTEGER PRIMARY KEY",
        "seed": "INTEGER NOT NULL",
        "seconds": "REAL NOT NULL",
        "error": "TEXT",
        "members": "BLOB NOT NULL",
        "losses": "BLOB NOT NULL",
    },
)
ARRAYS = Table(
    "arrays",
    {"name": "TEXT PRIMARY KEY", "dtype": "TEXT NOT NULL", "shape": "TEXT NOT NULL", "data": "BLOB NOT NULL"},
)
TABLES = (META, MODELS, REHEARSALS, CHANNELS, DECLARATIONS, LOOKS, RANKINGS, ARRAYS)
# How many rows a table or a part of it has, and the sum of their seals.
SUMS = "CREATE TABLE sums (part TEXT PRIMARY KEY, n INTEGER NOT NULL, total BLOB NOT NULL) WITHOUT ROWID"

# Schema 1 had three columns of losses in `models`, and no table of channels. Schema 2 had one declaration, in `meta`,
# and no looks but those that a reader of a later version logged. Schema 3 had no rehearsals, schema 4 no seals. What
# schema 1 held, as later ones have it:
_MODELS_OF_1 = """SELECT idx, state, seed, seconds, finished, error, bits, pairs,
    woven(loss0, loss1, reference) AS signals FROM {models}"""
_CHANNELS_OF_1 = """WITH first AS (SELECT * FROM {models} WHERE state = 'done' ORDER BY idx LIMIT 1)
    SELECT 0 AS place, 'loss' AS name, 1 AS version, '<f8' AS dtype, '[' || (length(loss1) / 8) || ', 2]' AS shape
        FROM first
    UNION ALL SELECT 1, 'reference', 1, '<f8', '[' || (length(reference) / 8) || ']' FROM first"""
# That of SQLite's ANALYZE, which some programs run on every file that they open.
_STATISTICS = "CREATE TABLE sqlite_stat1(tbl,idx,stat)"
# What an earlier schema may hold: the reader of a table of rows needs nothing that is computed.
_PLAIN = re.compile(r"CREATE TABLE [^;]*")
_COMPUTED = re.compile(r"\b(AS|GENERATED|VIRTUAL)\b", re.IGNORECASE)


def strange(connection: sqlite3.Connection, version: int) -> str | None:
    """What a store has that no version of this tool has made, such as a view that never ends; None if nothing."""
    ours = {SUMS, *(table.sql for table in TABLES)}
    names = {table.name for table in TABLES}
    found = set()
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master"):
        if sql == _STATISTICS or (kind == "index" and sql is None and str(name).startswith("sqlite_autoindex_")):
            continue
        if version >= SEALS:
            known = kind == "table" and sql in ours
        else:
            known = kind == "table" and name in names and bool(_PLAIN.fullmatch(sql)) and not _COMPUTED.search(sql)
        if not known:
            return f"the {kind} {name} was not made by epsgauge"
        found.add(sql)
    missing = sorted(ours - found) if version >= SEALS else []
    return f"no such table: {missing[0].split()[2]}" if missing else None


def show_as_current(connection: sqlite3.Connection, version: int) -> None:
    """Let a store of an earlier schema be read as one of this schema; nothing of it is changed."""
    connection.execute("PRAGMA temp_store = MEMORY")
    if version == 1:
        connection.create_function("woven", 3, _woven, deterministic=True)
        # a temporary view hides the table of the same name
        connection.execute(f"CREATE TEMP VIEW models AS {_MODELS_OF_1.format(models='main.models')}")
        connection.execute(f"CREATE TEMP VIEW channels AS {_CHANNELS_OF_1.format(models='main.models')}")
    for table in (REHEARSALS, LOOKS):
        if table.name not in _names(connection):
            connection.execute(table.sql.replace("TABLE", "TEMP TABLE", 1))


def add_look_to_earlier(connection: sqlite3.Connection, row: Sequence[Any]) -> None:
    """The schema stays what it is: an earlier one does without this table, and may be in use by an earlier version."""
    columns = [name for name in LOOKS.columns if name != "id"]
    kinds = ", ".join(f"{name} {kind}" for name, kind in LOOKS.columns.items())
    connection.execute(f"CREATE TABLE IF NOT EXISTS main.looks ({kinds})")
    marks = ", ".join("?" * len(columns))
    connection.execute(f"INSERT INTO main.looks ({', '.join(columns)}) VALUES ({marks})", row)


def migrate(
    connection: sqlite3.Connection, version: int, put_all: Callable[[Table, Iterable[Sequence[Any]]], None]
) -> None:
    """Make a store of an earlier schema one of this schema, inside the caller's transaction."""
    connection.create_function("woven", 3, _woven, deterministic=True)
    held = _names(connection)
    for name in held:
        connection.execute(f"ALTER TABLE {name} RENAME TO {name}_before")
    create(connection)
    for table in TABLES:
        if version == 1 and table in (MODELS, CHANNELS):
            query = (_MODELS_OF_1 if table is MODELS else _CHANNELS_OF_1).format(models="models_before")
        elif table.name in held:
            query = f"SELECT {', '.join(table.columns)} FROM {table.name}_before"
        else:
            continue
        put_all(table, connection.execute(query))
    for name in held:
        connection.execute(f"DROP TABLE {name}_before")


def create(connection: sqlite3.Connection) -> None:
    """The tables of this schema, with sums of no rows."""
    for statement in (*(table.sql for table in TABLES), SUMS, f"PRAGMA user_version = {SCHEMA}"):
        connection.execute(statement)
    parts = [part for table in TABLES for part in parts_of(table)]
    connection.executemany("INSERT INTO sums VALUES (?, 0, ?)", [(part, bytes(16)) for part in parts])


def parts_of(table: Table) -> list[str]:
    """The names under which the rows of a table are summed up."""
    return [table.name] if table.apart is None else [f"{table.name} {state}" for state in STATES]


def _names(connection: sqlite3.Connection) -> list[str]:
    return [row[0] for row in connection.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'")]


def _woven(zero: Any, one: Any, reference: Any) -> bytes | None:
    """Both losses of each pair side by side, then the reference losses; None where a part of them is missing."""
    if not all(isinstance(blob, bytes) and len(blob) % 8 == 0 for blob in (zero, one, reference)):
        return None
    if len(zero) != len(one):
        return None
    losses = np.empty((len(one) // 8, 2), dtype="<f8")
    losses[:, 0], losses[:, 1] = np.frombuffer(zero, "<f8"), np.frombuffer(one, "<f8")
    return losses.tobytes() + bytes(reference)
