"""The tables of a store."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

SCHEMA = 6


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
    def parts(self) -> list[str]:
        """The names under which its rows are summed up."""
        return [self.name] if self.apart is None else [f"{self.name} {state}" for state in STATES]

    @property
    def sql(self) -> str:
        key, *others = (f"{name} {kind}" for name, kind in self.columns.items())
        # a table with a text for its key is kept by it: an index beside it could be damaged by itself
        kept = " WITHOUT ROWID" if "TEXT" in key else ""
        # before long values, so that all seals can be read without them
        return f"CREATE TABLE {self.name} ({', '.join((key, 'seal BLOB NOT NULL', *others))}){kept}"


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
# Only ever added to; `content` is JSON.
DECLARATIONS = Table(
    "declarations",
    {
        "id": "INTEGER PRIMARY KEY",
        "time": "TEXT NOT NULL",
        "n_done": "INTEGER NOT NULL",
        "n_looks": "INTEGER NOT NULL",
        "content": "TEXT NOT NULL",
        "digest": "TEXT NOT NULL",
    },
)
# One row: how many looks the log had when the run last began or ended, and the seal of the last one.
LOOKS = Table("looks", {"id": "INTEGER PRIMARY KEY", "n": "INTEGER NOT NULL", "last": "TEXT NOT NULL"})
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
TABLES = (META, DECLARATIONS, CHANNELS, ARRAYS, RANKINGS, REHEARSALS, LOOKS, MODELS)
PARTS = [part for table in TABLES for part in table.parts]
# How many rows a table or a part of it has, and the sum of their seals; each seal covers the one of the part before.
SUMS = (
    "CREATE TABLE sums (part TEXT PRIMARY KEY, n INTEGER NOT NULL, total BLOB NOT NULL, seal BLOB NOT NULL) "
    "WITHOUT ROWID"
)
# That of SQLite's ANALYZE, which some programs run on every file that they open.
_STATISTICS = "CREATE TABLE sqlite_stat1(tbl,idx,stat)"


def strange(connection: sqlite3.Connection, *, sums: bool = True) -> str | None:
    """What a store has that this tool has not made, such as a view that never ends, or lacks; None if nothing.

    `sums`: whether it must have the sums of its seals.
    """
    ours = {SUMS, *(table.sql for table in TABLES)}
    found = set() if sums else {SUMS}
    for kind, name, sql in connection.execute("SELECT type, name, sql FROM sqlite_master"):
        if sql == _STATISTICS or (kind == "index" and sql is None and str(name).startswith("sqlite_autoindex_")):
            continue
        if kind != "table" or sql not in ours:
            return f"the {kind} {name} was not made by epsgauge"
        found.add(sql)
    missing = sorted(ours - found)
    return f"no such table: {missing[0].split()[2]}" if missing else None
