"""The tables of a store, and how those of an earlier schema become them."""

from __future__ import annotations

import sqlite3
from typing import Any

import numpy as np

SCHEMA = 4
DECLARES = 3  # the first schema with tables of declarations and looks
# Blobs hold little-endian numbers: bits as uint8, indices as int64, channels and losses as float64. `signals` has a
# model's channels one after the other, as the table `channels` lists them.
_COLUMNS = """(
    idx INTEGER PRIMARY KEY, state TEXT NOT NULL CHECK (state IN ('done', 'failed')), seed INTEGER NOT NULL,
    seconds REAL NOT NULL, finished REAL NOT NULL, error TEXT, bits BLOB NOT NULL, pairs BLOB NOT NULL, signals BLOB
)"""
_MODELS = f"CREATE TABLE models {_COLUMNS}"
# Models set apart; their numbers say what each of them is (games/rehearsal.py).
_REHEARSALS = f"CREATE TABLE rehearsals {_COLUMNS}"
_CHANNELS = """CREATE TABLE channels (
    place INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, version INTEGER NOT NULL, dtype TEXT NOT NULL,
    shape TEXT NOT NULL
)"""
# Both are only ever added to. `own` and `content` are JSON; `as_planned` says whether all models were over and their
# number had been fixed before. It, time and n_done are NULL where an earlier schema kept none.
_DECLARATIONS = """CREATE TABLE declarations (
    id INTEGER PRIMARY KEY, time TEXT, n_done INTEGER, n_looks INTEGER NOT NULL, content TEXT NOT NULL,
    digest TEXT NOT NULL
)"""
LOOKS = """CREATE TABLE IF NOT EXISTS looks (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, kind TEXT NOT NULL, n_done INTEGER NOT NULL, n_models INTEGER NOT NULL,
    as_planned INTEGER, own TEXT
)"""
TABLES = (
    "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    _MODELS,
    _REHEARSALS,
    _CHANNELS,
    _DECLARATIONS,
    LOOKS,
    """CREATE TABLE rankings (
    idx INTEGER PRIMARY KEY, seed INTEGER NOT NULL, seconds REAL NOT NULL, error TEXT, members BLOB NOT NULL,
    losses BLOB NOT NULL
)""",
    "CREATE TABLE arrays (name TEXT PRIMARY KEY, dtype TEXT NOT NULL, shape TEXT NOT NULL, data BLOB NOT NULL)",
    f"PRAGMA user_version = {SCHEMA}",
)

# Schema 1 had three columns of losses in `models`, and no table of channels. Schema 2 had one declaration, in `meta`,
# and no looks but those that a reader of a later version logged. Schema 3 had no rehearsals. What schema 1 held, as
# later ones have it:
_MODELS_OF_1 = """SELECT idx, state, seed, seconds, finished, error, bits, pairs,
    woven(loss0, loss1, reference) AS signals FROM {models}"""
_CHANNELS_OF_1 = """WITH first AS (SELECT * FROM {models} WHERE state = 'done' ORDER BY idx LIMIT 1)
    SELECT 0 AS place, 'loss' AS name, 1 AS version, '<f8' AS dtype, '[' || (length(loss1) / 8) || ', 2]' AS shape
        FROM first
    UNION ALL SELECT 1, 'reference', 1, '<f8', '[' || (length(reference) / 8) || ']' FROM first"""


def show_as_current(connection: sqlite3.Connection, version: int) -> None:
    """Let a store of an earlier schema be read as one of this schema; nothing of it is changed."""
    connection.execute("PRAGMA temp_store = MEMORY")
    if version == 1:
        connection.create_function("woven", 3, _woven, deterministic=True)
        # a temporary view hides the table of the same name
        connection.execute(f"CREATE TEMP VIEW models AS {_MODELS_OF_1.format(models='main.models')}")
        connection.execute(f"CREATE TEMP VIEW channels AS {_CHANNELS_OF_1.format(models='main.models')}")
    connection.execute(_REHEARSALS.replace("TABLE", "TEMP TABLE", 1))
    if not connection.execute("SELECT count(*) FROM main.sqlite_master WHERE name = 'looks'").fetchone()[0]:
        connection.execute(LOOKS.replace("TABLE", "TEMP TABLE", 1))


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Make a store of an earlier schema one of this schema, inside the caller's transaction."""
    if version == 1:
        connection.create_function("woven", 3, _woven, deterministic=True)
        for statement in (
            "ALTER TABLE models RENAME TO models_of_1",
            _MODELS,
            f"INSERT INTO models {_MODELS_OF_1.format(models='models_of_1')}",
            _CHANNELS,
            f"INSERT INTO channels {_CHANNELS_OF_1.format(models='models_of_1')}",
            "DROP TABLE models_of_1",
        ):
            connection.execute(statement)
    if version < DECLARES:
        connection.execute(_DECLARATIONS)
        connection.execute(LOOKS)
    connection.execute(_REHEARSALS)
    connection.execute(f"PRAGMA user_version = {SCHEMA}")


def _woven(zero: Any, one: Any, reference: Any) -> bytes | None:
    """Both losses of each pair side by side, then the reference losses; None where a part of them is missing."""
    if not all(isinstance(blob, bytes) and len(blob) % 8 == 0 for blob in (zero, one, reference)):
        return None
    if len(zero) != len(one):
        return None
    losses = np.empty((len(one) // 8, 2), dtype="<f8")
    losses[:, 0], losses[:, 1] = np.frombuffer(zero, "<f8"), np.frombuffer(one, "<f8")
    return losses.tobytes() + bytes(reference)
