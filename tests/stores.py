"""Stores changed by hand: with seals that fit again, or made into those of an earlier schema."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from epsgauge.runner.schema import STATES, TABLES
from epsgauge.runner.sealed import SIZE, seal_of


def edit(file: Path, *statements: str) -> None:
    """As anybody could who has sqlite3 at hand."""
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def forge(file: Path, *statements: str) -> None:
    """As somebody who makes seals for what was changed."""
    edit(file, *statements)
    with closing(sqlite3.connect(file)) as connection, connection:
        for table in TABLES:
            key, *_ = table.columns
            sums = dict.fromkeys(STATES if table.apart else [None], (0, 0))
            for row in connection.execute(f"SELECT {', '.join(table.columns)} FROM {table.name}").fetchall():
                seal = seal_of(table, row)
                connection.execute(f"UPDATE {table.name} SET seal = ? WHERE {key} = ?", (seal, row[0]))
                part = dict(zip(table.columns, row, strict=True))[table.apart] if table.apart else None
                sums[part] = (sums[part][0] + 1, (sums[part][1] + int.from_bytes(seal)) % 2 ** (8 * SIZE))
            for part, (n, total) in sums.items():
                name = f"{table.name} {part}" if table.apart else table.name
                connection.execute("UPDATE sums SET n = ?, total = ? WHERE part = ?", (n, total.to_bytes(SIZE), name))


def make_earlier(file: Path, version: int) -> None:
    """The same content in a schema from 2 on that had no seals."""
    absent = {2: ("declarations", "looks", "rehearsals"), 3: ("rehearsals",)}.get(version, ())
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DROP TABLE sums")
        for table in TABLES:
            columns = ", ".join(table.columns)
            kinds = ", ".join(f"{name} {kind}" for name, kind in table.columns.items())
            connection.execute(f"ALTER TABLE {table.name} RENAME TO sealed_{table.name}")
            if table.name not in absent:
                connection.execute(f"CREATE TABLE {table.name} ({kinds})")
                connection.execute(f"INSERT INTO {table.name} SELECT {columns} FROM sealed_{table.name}")
            connection.execute(f"DROP TABLE sealed_{table.name}")
        connection.execute(f"PRAGMA user_version = {version}")
