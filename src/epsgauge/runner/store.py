"""The store of a run: one SQLite file with a row for each model, written by the process that runs and read by all."""

from __future__ import annotations

import json
import os
import sqlite3
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from epsgauge.declaration import Declaration, digest_of, now
from epsgauge.games.ranking import Ranking
from epsgauge.games.settings import GameSettings
from epsgauge.games.signals import Outcome, Signals
from epsgauge.runner import schema
from epsgauge.runner.channels import VERSION, Layout
from epsgauge.runner.journal import journal_for
from epsgauge.runner.lock import holder
from epsgauge.runner.looks import read_looks
from epsgauge.runner.schema import DECLARES, SCHEMA
from epsgauge.runner.trouble import damaged, in_words, newer
from epsgauge.stats.arrays import Floats, Ints

FILE = "store.sqlite"
_ARRAY_TYPES = ("<i8", "<f8", "|u1")
_MOMENT = 0.25  # seconds in which models of a group are written
_BUSY_SECONDS = 30  # how long to wait for a reader on a network file system
_ADD_LOOK = "INSERT INTO looks (time, kind, n_done, n_models, as_planned, own) VALUES (?, ?, ?, ?, ?, ?)"
_LOOK_SECONDS = 5  # how long a reader waits to log a look; a run holds the store for milliseconds


class Store:
    """An open store; a context manager that closes it."""

    def __init__(self, file: Path, connection: sqlite3.Connection, *, writes: bool) -> None:
        self.file = file
        self._connection = connection
        self._writes = writes
        self._layout: Layout | None = None
        self._schema = SCHEMA

    @classmethod
    def create(cls, file: Path, meta: Mapping[str, Any], declares: Mapping[str, Any] | None = None) -> Self:
        """A new store; its tables, `meta` and what the plan declares appear in one transaction: never half of them."""
        store = cls._opened(file, f"{file.resolve().as_uri()}?mode=rwc", writes=True)
        try:
            with store._transaction() as execute:
                for statement in schema.TABLES:
                    execute(statement)
                store._put(meta)
                store._declare(declares)
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def is_begun(cls, file: Path) -> bool:
        """Whether `file` has anything in it; a process that was killed as it began leaves an empty database."""
        if not file.exists():
            return False
        store = cls._opened(file, f"{file.resolve().as_uri()}?mode=rw", writes=False)
        try:
            return bool(store._rows("SELECT count(*) FROM sqlite_master")[0][0])
        finally:
            store.close()

    @classmethod
    def write(cls, file: Path) -> Self:
        """Open for the process that runs; a store of an earlier schema is brought to this one, all or nothing."""
        return cls._checked(cls._opened(file, f"{file.resolve().as_uri()}?mode=rw", writes=True))

    @classmethod
    def read(cls, file: Path) -> Self:
        """Open for looking only, also while another process writes."""
        uri = f"{file.resolve().as_uri()}?mode=ro"
        alone = not Path(f"{file}-wal").exists() and holder(file.parent) is None
        if alone and not os.access(file.parent, os.W_OK):
            uri += "&immutable=1"  # nobody writes here, and SQLite could not make the files that it shares with writers
        return cls._checked(cls._opened(file, uri, writes=False))

    @classmethod
    def _opened(cls, file: Path, uri: str, *, writes: bool) -> Self:
        with in_words(file):
            connection = sqlite3.connect(uri, uri=True, timeout=_BUSY_SECONDS, isolation_level=None)
            try:
                if writes:
                    journal = journal_for(file.parent)
                    connection.execute(f"PRAGMA journal_mode = {journal}")
                    # After a loss of power a write-ahead log may lack the last models, which are then played again;
                    # the other journal needs FULL to be sure of an undamaged file.
                    connection.execute(f"PRAGMA synchronous = {'NORMAL' if journal == 'WAL' else 'FULL'}")
            except BaseException:
                connection.close()
                raise
        return cls(file, connection, writes=writes)

    @classmethod
    def _checked(cls, store: Self) -> Self:
        try:
            version = int(store._rows("PRAGMA user_version")[0][0])
            if version > SCHEMA:
                raise newer(store.file, f"schema {version}", SCHEMA)
            if version < 1:
                raise damaged(store.file, "it holds no run")
            store._rows("SELECT value FROM meta WHERE key = 'plan'")
            store._schema = version
            if version < SCHEMA and store._writes:
                store._migrate()
            elif version < SCHEMA:
                with in_words(store.file):
                    schema.show_as_current(store._connection, version)
        except BaseException:
            store.close()
            raise
        return store

    def _migrate(self) -> None:
        with self._transaction() as execute:
            declared = self.declarations()
            schema.migrate(self._connection, self._schema)
            if self._rows("SELECT count(*) FROM models WHERE state = 'done' AND signals IS NULL")[0][0]:
                raise damaged(self.file, "the signals of a model have the wrong length")
            if self._schema < DECLARES:
                for each in declared:
                    self._add_declaration(each)
                for look in read_looks(self.file.parent):
                    execute(_ADD_LOOK, _row_of(look))
        self._schema = SCHEMA

    def close(self) -> None:
        """A store that is not written to is one plain file without a log beside it, wherever that can be had."""
        if self._writes:
            with suppress(sqlite3.Error):  # somebody reads, or the disk is full: it is as safe with its log
                self._connection.execute("PRAGMA busy_timeout = 0")
                self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # meta

    def get(self, key: str, default: Any = None) -> Any:
        rows = self._rows("SELECT value FROM meta WHERE key = ?", (key,))
        if not rows:
            return default
        try:
            return json.loads(rows[0][0])
        except (TypeError, ValueError):
            raise damaged(self.file, f"its entry {key} is not JSON") from None

    def put(self, entries: Mapping[str, Any], declares: Mapping[str, Any] | None = None) -> None:
        """Set some entries, and add what a plan declares, all or none."""
        with self._transaction():
            self._put(entries)
            self._declare(declares)

    def _put(self, entries: Mapping[str, Any]) -> None:
        rows = [(key, json.dumps(value, default=str)) for key, value in entries.items()]
        self._connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)

    # declarations and looks

    def declarations(self) -> tuple[Declaration, ...]:
        """All of them, the oldest first."""
        if self._schema < DECLARES:  # which had one, and did not say when
            content = {"audit": self.get("declared"), "code": self.get("declared_code") or {}}
            return (Declaration(content, digest_of(content), None),)
        rows = self._rows("SELECT time, n_done, n_looks, content, digest FROM declarations ORDER BY id")
        found = []
        for time_, n_done, n_looks, text, digest in rows:
            try:
                content = json.loads(text)
            except (TypeError, ValueError):
                raise damaged(self.file, "what its plan declared cannot be read") from None
            if digest_of(content) != digest:
                raise damaged(self.file, "what its plan declared is not what its digest is of")
            found.append(Declaration(content, digest, time_, None, n_done, n_looks))
        return tuple(found)

    def _declare(self, content: Mapping[str, Any] | None) -> None:
        """Add a declaration unless it is the last one again; none is ever replaced."""
        if content is None:
            return
        digest, before = digest_of(content), self.declarations()
        if not before or before[-1].digest != digest:
            n_done = int(self._rows("SELECT count(*) FROM models WHERE state = 'done'")[0][0])
            self._add_declaration(Declaration(content, digest, now(), None, n_done, len(self.looks())))

    def _add_declaration(self, d: Declaration) -> None:
        row = (d.time, d.n_done, d.n_looks, json.dumps(d.content), d.digest)
        query = "INSERT INTO declarations (time, n_done, n_looks, content, digest) VALUES (?, ?, ?, ?, ?)"
        self._connection.execute(query, row)

    def looks(self) -> list[dict[str, Any]]:
        """Every look at results that was logged, the oldest first."""
        rows = self._rows("SELECT time, kind, n_done, n_models, as_planned, own FROM looks ORDER BY id")
        return [*(read_looks(self.file.parent) if self._schema < DECLARES else ()), *map(_look_of, rows)]

    @staticmethod
    def log_look(file: Path, look: Mapping[str, Any]) -> bool:
        """Add a look, also while a run writes; False where that cannot be done, which is no reason to fail a reader.

        The schema stays what it is: an earlier one does without this table, and may be in use by an earlier version.
        """
        try:
            uri = f"{file.resolve().as_uri()}?mode=rw"
            with closing(sqlite3.connect(uri, uri=True, timeout=_LOOK_SECONDS, isolation_level=None)) as connection:
                connection.execute("BEGIN IMMEDIATE")
                connection.execute(schema.LOOKS)
                connection.execute(_ADD_LOOK, _row_of({"time": now(), **look}))
                connection.execute("COMMIT")
        except (OSError, sqlite3.Error):
            return False
        return True

    # models

    def add(self, outcome: Outcome, *, rehearsal: bool = False) -> Outcome:
        """Keep one model, which is on the disk when this returns, and say what was kept.

        The first model decides which channels there are; one that gives others is kept as failed. Those of a rehearsal
        are kept apart.
        """
        to = "rehearsals" if rehearsal else "models"
        if outcome.channels is None:
            return self._add(to, outcome, None)
        layout, given = self.layout(), Layout.of(outcome.channels)
        if layout is None:
            with self._transaction():
                self._connection.executemany("INSERT INTO channels VALUES (?, ?, ?, ?, ?)", given.rows())
                return self._add(to, outcome, given.packed(outcome.channels))
        if given.shapes != layout.shapes:
            error = (
                f"every model of a run must give the same channels, here {layout}, but this one gave {given}. Mend the "
                "trainer, or use a new --out."
            )
            return self._add(to, replace(outcome, channels=None, error=error), None)
        return self._add(to, outcome, layout.packed(outcome.channels))

    def _add(self, to: str, outcome: Outcome, signals: bytes | None) -> Outcome:
        o, state = outcome, "failed" if signals is None else "done"
        row = (o.index, state, o.seed, o.seconds, time.time(), o.error, _blob(o.bits, "|u1"), _blob(o.pairs, "<i8"))
        with in_words(self.file):
            self._connection.execute(f"INSERT OR REPLACE INTO {to} VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, signals))
        return outcome

    def rehearsed(self) -> dict[int, str | None]:
        """The models of the rehearsal by their numbers, each with its error."""
        return dict(self._rows("SELECT idx, error FROM rehearsals"))

    def layout(self) -> Layout | None:
        """Which channels the models have; None until one is done."""
        if self._layout is None:
            rows = self._rows("SELECT name, version, dtype, shape FROM channels ORDER BY place")
            for name, version, _, _ in rows:
                if isinstance(version, int) and version > VERSION:
                    raise newer(self.file, f"channel {name}, version {version}", VERSION)
            try:
                layout = Layout.from_rows(rows)
            except (TypeError, ValueError):
                raise damaged(self.file, "what it says of its channels cannot be read") from None
            self._layout = layout if rows else None
        return self._layout

    def indices(self, state: str) -> Ints:
        """The models that are done, or those that have failed, in ascending order."""
        rows = self._rows("SELECT idx FROM models WHERE state = ? ORDER BY idx", (state,))
        return np.array([row[0] for row in rows], dtype=np.int64)

    def failures(self) -> list[tuple[int, Ints, int, str]]:
        """Index, bits, seed and error of each failed model."""
        rows = self._rows("SELECT idx, bits, seed, error FROM models WHERE state = 'failed' ORDER BY idx")
        return [(i, self._array([bits], "|u1").astype(np.int64), seed, str(error)) for i, bits, seed, error in rows]

    def timing(self, last: int = 1000) -> tuple[float | None, float | None]:
        """Median seconds of a model that is done, and models per second over the last ones to finish."""
        seconds = [row[0] for row in self._rows("SELECT seconds FROM models WHERE state = 'done'")]
        median = statistics.median(seconds) if seconds else None  # the first model of a worker waits for its imports
        rows = self._rows("SELECT finished FROM models ORDER BY finished DESC LIMIT ?", (last,))
        times = [row[0] for row in rows]
        # models of a group are done at once: those of the oldest moment only mark the beginning
        begin = max((t for t in times if t <= times[-1] + _MOMENT), default=0.0)
        later = [t for t in times if t > begin]
        return median, len(later) / (later[0] - begin) if later else None

    def signals(self, game: GameSettings, *, rehearsal: bool = False) -> Signals:
        """What was seen of all models that are done, or of those of the rehearsal."""
        models = "rehearsals" if rehearsal else "models"
        rows = self._rows(f"SELECT idx, bits, pairs, signals FROM {models} WHERE state = 'done' ORDER BY idx")
        n, m, layout = len(rows), game.pairs_per_model, self.layout()
        index, bits, pairs, blobs = zip(*rows, strict=True) if rows else ((), (), (), ())
        del rows
        if n and layout is None:
            raise damaged(self.file, "it does not say which channels it has")
        try:
            channels = {} if layout is None else layout.unpacked(blobs)
        except ValueError as error:
            raise damaged(self.file, str(error)) from None
        return Signals(
            np.array(index, dtype=np.int64),
            self._array(bits, "|u1", m).astype(np.int64).reshape(n, m),
            self._array(pairs, "<i8", 2 * m).reshape(n, m, 2),
            channels,
            game.adjacency,
            game.sees,
        )

    # rankings and arrays

    def add_ranking(self, ranking: Ranking) -> None:
        r = ranking
        row = (r.index, r.seed, r.seconds, r.error, _blob(r.members, "<i8"), _blob(r.losses, "<f8"))
        with in_words(self.file):
            self._connection.execute("INSERT OR REPLACE INTO rankings VALUES (?, ?, ?, ?, ?, ?)", row)

    def rankings(self) -> list[Ranking]:
        rows = self._rows("SELECT idx, seed, seconds, members, losses, error FROM rankings ORDER BY idx")
        return [
            Ranking(i, seed, seconds, self._array([members], "<i8"), self._array([losses], "<f8"), error)
            for i, seed, seconds, members, losses, error in rows
        ]

    def put_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep some arrays of whole numbers, all or none."""
        with self._transaction() as execute:
            for name, array in arrays.items():
                row = (name, "<i8", json.dumps(array.shape), _blob(array, "<i8"))
                execute("INSERT OR REPLACE INTO arrays VALUES (?, ?, ?, ?)", row)

    def arrays(self) -> dict[str, Ints]:
        found = {}
        for name, dtype, shape, data in self._rows("SELECT name, dtype, shape, data FROM arrays"):
            try:
                if dtype not in _ARRAY_TYPES:
                    raise ValueError
                found[name] = self._array([data], dtype).reshape(json.loads(shape)).astype(np.int64, copy=False)
            except (TypeError, ValueError):
                raise damaged(self.file, f"its array {name} has the wrong length") from None
        return found

    # how all of them talk to SQLite

    def _rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with in_words(self.file):
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with in_words(self.file):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection.execute
                self._connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled it back already
                    self._connection.execute("ROLLBACK")
                raise

    def _array(self, blobs: Sequence[Any], dtype: str, length: int | None = None) -> NDArray[Any]:
        """The numbers of some blobs, one after the other; `length` is how many each must have."""
        size = np.dtype(dtype).itemsize
        for blob in blobs:
            if not isinstance(blob, bytes) or len(blob) % size or (length is not None and len(blob) != size * length):
                raise damaged(self.file, "the signals of a model have the wrong length")
        return np.frombuffer(bytearray().join(blobs), dtype=dtype).astype(np.dtype(dtype).newbyteorder("="), copy=False)


def _row_of(look: Mapping[str, Any]) -> tuple[Any, ...]:
    """One that another version wrote may lack something."""
    own = look.get("own")
    texts, counts = (str(look.get(key, "")) for key in ("time", "kind")), (look.get(k) for k in ("n_done", "n_models"))
    planned = look.get("as_planned")
    numbers = (*(n if isinstance(n, int) else 0 for n in counts), None if planned is None else int(bool(planned)))
    return (*texts, *numbers, json.dumps(own) if own else None)


def _look_of(row: tuple[Any, ...]) -> dict[str, Any]:
    """As it was logged: without what was not known."""
    look = dict(zip(("time", "kind", "n_done", "n_models"), row, strict=False))
    planned, own = row[4:]
    look |= {} if planned is None else {"as_planned": bool(planned)}
    return look | ({"own": json.loads(own)} if own else {})


def _blob(array: Floats | Ints, dtype: str) -> bytes:
    return np.ascontiguousarray(array, dtype=dtype).tobytes()
