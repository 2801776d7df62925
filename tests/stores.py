"""Run directories changed by hand: as anyone can with sqlite3, or with seals that fit again."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from epsgauge.runner import looks
from epsgauge.runner.schema import PARTS, TABLES
from epsgauge.runner.sealed import Sealed, seal_of
from epsgauge.runner.store import FILE


def edit(file: Path, *statements: str) -> None:
    """As anybody could who has sqlite3 at hand."""
    with closing(sqlite3.connect(file)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def forge(file: Path, *statements: str) -> None:
    """As somebody who makes seals for what was changed."""
    database = Sealed.connect(file, "rw", 5)
    database.check_schema()
    sums = dict.fromkeys(PARTS, (0, 0))
    with closing(database.connection), database.transaction():
        for statement in statements:
            database.connection.execute(statement)
        for table in TABLES:
            for row in database.query(f"SELECT {', '.join(table.columns)} FROM {table.name}"):
                seal = seal_of(database.identity, table, row)
                database.connection.execute(f"UPDATE {table.name} SET seal = ? WHERE {table.key} = ?", (seal, row[0]))
                state = dict(zip(table.columns, row, strict=True)).get(table.apart)
                part = table.name if state is None else f"{table.name} {state}"
                sums[part] = (sums[part][0] + 1, (sums[part][1] + int.from_bytes(seal)) % 2 ** (8 * len(seal)))
        database._write_sums(sums)


def copied(run: Path, to: Path) -> Path:
    """A run directory without its lock."""
    to.mkdir()
    for name in (FILE, looks.FILE):
        shutil.copy(run / name, to / name)
    return to
