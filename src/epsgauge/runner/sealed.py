"""A SQLite file whose rows have a seal each, and a sum of all seals: what was changed, lost or added elsewhere is seen.

A seal is a digest of a row and of the run's identity, so that rows of another run do not fit. It finds accidents and
edits by hand; it is no signature, as whoever knows this file can make one.
"""

from __future__ import annotations

import hashlib
import json
import math
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from epsgauge.runner.plain_files import check_plain
from epsgauge.runner.schema import META, PARTS, SCHEMA, SUMS, TABLES, Table, strange
from epsgauge.runner.trouble import Damaged, Empty, damaged, in_words, lost_writes, newer, older
from epsgauge.runner.wal import has_lost, log_of

IDENTITY = "identity"  # the entry of `meta` that is in every seal
SIZE = 32  # bytes of a seal
_LEAST, _MOST = 1_000_000, 1_000_000_000  # bytes of a value that a file of any size may have, and any at all
_MODULUS = 2 ** (8 * SIZE)
_SMALLEST = 8  # bytes that a row takes at least
_SECONDS = 600.0  # that any one query may take: a damaged file can send SQLite in circles
_STEPS = 1_000_000  # of SQLite's machine, after which the time is looked at
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a database


def seal_of(identity: str, table: Table, row: Sequence[Any]) -> bytes:
    """The digest of a row: of the run, of the table's name and of each value with its type and length."""
    blobs = [value for value in row if type(value) is bytes]
    plain = [(len(value),) if type(value) is bytes else value for value in row]
    found = hashlib.blake2b(f"{identity} {table.name}{plain!r}".encode(errors="surrogatepass"), digest_size=SIZE)
    for blob in blobs:
        found.update(blob)
    return found.digest()


def seal_of_sum(identity: str, before: bytes, part: str, n: int, total: bytes) -> bytes:
    """`before` is the seal of the part before it: no sum can be left out or taken from elsewhere."""
    return hashlib.blake2b(f"{identity} {part} {n}".encode() + total + before, digest_size=SIZE).digest()


class Sealed:
    """An open file."""

    def __init__(self, file: Path, connection: sqlite3.Connection) -> None:
        self.file = file
        self.connection = connection
        self.identity = ""
        self.checked = True  # whether rows are held against their seals
        self._until = math.inf
        self._interrupted = False
        connection.set_progress_handler(self._enough, _STEPS)

    @classmethod
    def connect(cls, file: Path, mode: str, seconds: float) -> Self:
        """`mode` is that of SQLite; `seconds` is how long to wait for another process that has it."""
        _check_files(file, writes=mode == "rw")
        with in_words(file):
            uri = f"{file.resolve().as_uri()}?mode={mode}"
            connection = sqlite3.connect(uri, uri=True, timeout=seconds, isolation_level=None)
            try:
                connection.execute("PRAGMA trusted_schema = OFF")
                if mode != "rw":  # no value can be longer than the file, whatever it says of itself
                    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(_LEAST + _size(file), _MOST))
            except BaseException:
                connection.close()
                raise
        return cls(file, connection)

    @classmethod
    def reader(cls, file: Path, mode: str, seconds: float, *, checked: bool = True) -> Self:
        """Open for reading only. With `checked`, rows must fit their seals, and no write may be lost."""
        _check_files(file, writes=False)  # before its log is read
        if checked and has_lost(log_of(file)):
            raise lost_writes(file)
        found = cls.connect(file, mode, seconds)
        try:
            found.check_schema(checked=checked)
        except BaseException:
            found.connection.close()
            raise
        return found

    def begin(self, identity: str) -> None:
        """Make all tables, with sums of no rows; inside a transaction."""
        for statement in (*(table.sql for table in TABLES), SUMS, f"PRAGMA user_version = {SCHEMA}"):
            self.connection.execute(statement)
        self.identity, nothing = identity, bytes(SIZE)
        self.connection.executemany("INSERT INTO sums VALUES (?, 0, ?, x'')", [(part, nothing) for part in PARTS])
        self._write_sums(dict.fromkeys(PARTS, (0, 0)))
        self.put(META, (IDENTITY, json.dumps(identity)))

    def check_schema(self, *, checked: bool = True) -> None:
        """Refuse what this version has not made, and find out which run it is."""
        self.checked = checked
        version = int(self.query("PRAGMA user_version")[0][0])
        if version > SCHEMA:
            raise newer(self.file, f"schema {version}", SCHEMA)
        if version < 1:
            raise Empty(str(damaged(self.file, "it holds no run")))
        if version < SCHEMA:
            raise older(self.file, version, SCHEMA)
        with in_words(self.file):
            found = strange(self.connection, sums=checked)
        if found is not None:
            raise damaged(self.file, found)
        rows = self.query("SELECT value FROM meta WHERE key = ?", (IDENTITY,))
        try:
            self.identity = str(json.loads(rows[0][0]))
        except (IndexError, TypeError, ValueError):
            if checked:
                raise damaged(self.file, "it does not say which run it is") from None

    # reading

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query, unchecked."""
        return list(self._stepped(sql, values))

    def rows(self, table: Table, part: str | None = None) -> Iterator[tuple[Any, ...]]:
        """Every row of a table, or of its part with this value of `apart`, by its key.

        Each is held against its seal, and when the last has come all of them against their sum: read to the end.
        """
        where, values = ("", ()) if part is None else (f"WHERE {table.apart} = ?", (part,))
        last: Any = None
        n = total = 0
        with self._at_one_moment():
            for row in self._stepped(f"{self._select(table)} {where} ORDER BY {table.key}", values):
                yield self._without_seal(table, row)
                if self.checked:
                    if n and row[0] <= last:  # SQLite takes the order of its pages for granted
                        raise damaged(self.file, f"row {row[0]!r} of {table.name} is out of order")
                    n, total, last = n + 1, total + int.from_bytes(row[-1]), row[0]
            if self.checked:
                written = self._sum(table, part)
                if (n, total % _MODULUS) != written:
                    raise self._miscounted(table, n, written[0])

    def row(self, table: Table, key: Any) -> tuple[Any, ...]:
        """The row with this key, which must be there."""
        found = self.query(f"{self._select(table)} WHERE {table.key} = ?", (key,))
        if not found:
            raise damaged(self.file, f"{table.name} has no row {key!r}")
        return self._without_seal(table, found[0])

    def keys(self, table: Table, part: str) -> list[Any]:
        """The keys of a part; that there are as many as were written is checked, and no more."""
        with self._at_one_moment():
            query = f"SELECT {table.key} FROM {table.name} WHERE {table.apart} = ? ORDER BY 1"
            found = [row[0] for row in self._stepped(query, (part,))]
            if self.checked and len(found) != (n := self._sum(table, part)[0]):
                raise self._miscounted(table, len(found), n)
        return found

    def _select(self, table: Table) -> str:
        return f"SELECT {', '.join([*table.columns, 'seal'])} FROM {table.name}"

    def _without_seal(self, table: Table, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """The values of a row, which its seal must fit."""
        values = row[:-1]
        if self.checked and seal_of(self.identity, table, values) != row[-1]:
            raise damaged(self.file, f"row {row[0]!r} of {table.name} is not what was written")
        return values

    def _miscounted(self, table: Table, n: int, written: int) -> Damaged:
        return damaged(self.file, f"{table.name} has {n} rows, which are not the {written} that were written")

    def digest(self, *, but: Table) -> str:
        """SHA-256 of the seals of all rows but those of one table, in their order."""
        found = hashlib.sha256(self.identity.encode())
        with self._at_one_moment():
            for table in TABLES:
                if table is not but:
                    for row in self._stepped(f"SELECT {table.key}, seal FROM {table.name} ORDER BY 1", ()):
                        found.update(f"{table.name} {row!r}\n".encode(errors="surrogatepass"))
        return found.hexdigest()

    def state(self) -> str:
        """Another one as soon as anything is written: the seal of the last sum, which covers all the others."""
        self._sums()
        return str(self.query("SELECT hex(seal) FROM sums WHERE part = ?", (PARTS[-1],))[0][0])

    def _sum(self, table: Table, part: str | None) -> tuple[int, int]:
        """How many rows were written to a table or a part of it, and the sum of their seals."""
        sums = self._sums()
        both = [sums[name] for name in (table.parts if part is None else [f"{table.name} {part}"])]
        return sum(n for n, _ in both), sum(total for _, total in both) % _MODULUS

    def _sums(self) -> dict[str, tuple[int, int]]:
        """All of them, each held against its seal."""
        held = {row[0]: row[1:] for row in self.query("SELECT part, n, total, seal FROM sums")}
        if set(held) != set(PARTS) or not all(isinstance(total, bytes) for _, total, _ in held.values()):
            raise damaged(self.file, "its sums cannot be read")
        found, before = {}, b""
        for part in PARTS:
            n, total, seal = held[part]
            if seal != seal_of_sum(self.identity, before, part, n, total):
                raise damaged(self.file, f"the sum of {part} is not what was written")
            found[part], before = (int(n), int.from_bytes(total)), seal
        return found

    # writing

    def put(self, table: Table, row: Sequence[Any]) -> None:
        self.put_all(table, [row])

    def put_all(self, table: Table, rows: Iterable[Sequence[Any]]) -> None:
        """Add rows, or put them in the place of those with the same key, with their seals; inside a transaction."""
        place = 0 if table.apart is None else list(table.columns).index(table.apart)
        apart = table.apart or "NULL"
        columns = ", ".join([*table.columns, "seal"])
        insert = f"INSERT OR REPLACE INTO {table.name} ({columns}) VALUES ({', '.join('?' * (len(table.columns) + 1))})"
        changed = {part: [0, 0] for part in table.parts}

        def count(value: Any, seal: Any, by: int) -> None:
            of = changed.get(table.name if table.apart is None else f"{table.name} {value}")
            if of is None or not isinstance(seal, bytes):
                raise damaged(self.file, f"a row of {table.name} is not what was written")
            of[0] += by
            of[1] += by * int.from_bytes(seal)

        for row in rows:
            old = self.connection.execute(f"SELECT {apart}, seal FROM {table.name} WHERE {table.key} = ?", (row[0],))
            for value, seal in old.fetchall():
                count(value, seal, -1)
            seal = seal_of(self.identity, table, row)
            self.connection.execute(insert, (*row, seal))
            count(row[place], seal, 1)
        sums = self._sums()
        for part, (n, total) in changed.items():
            sums[part] = sums[part][0] + n, (sums[part][1] + total) % _MODULUS
        self._write_sums(sums)

    def _write_sums(self, sums: dict[str, tuple[int, int]]) -> None:
        before, rows = b"", []
        for part in PARTS:
            n, total = sums[part][0], sums[part][1].to_bytes(SIZE)
            before = seal_of_sum(self.identity, before, part, n, total)
            rows.append((n, total, before, part))
        self.connection.executemany("UPDATE sums SET n = ?, total = ?, seal = ? WHERE part = ?", rows)

    def append(self, table: Table, row: Sequence[Any]) -> None:
        """Add a row to a table whose key counts its rows; inside a transaction."""
        last = self.query(f"SELECT max({table.key}) FROM {table.name}")[0][0]
        self.put(table, ((last or 0) + 1, *row))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with in_words(self.file):
            self.connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self.connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk has rolled it back already
                    self.connection.execute("ROLLBACK")
                raise

    # how all of them talk to SQLite

    @contextmanager
    def _at_one_moment(self) -> Iterator[None]:
        """Rows and their sums as they stood at one moment, while another process writes."""
        if self.connection.in_transaction:
            yield
            return
        with in_words(self.file):
            self.connection.execute("BEGIN")
            try:
                yield
            finally:
                with suppress(sqlite3.Error):
                    self.connection.execute("ROLLBACK")  # nothing was written

    def _stepped(self, sql: str, values: Sequence[Any]) -> Iterator[Any]:
        self._until = time.monotonic() + _SECONDS
        left = 1000 + _size(self.file) // _SMALLEST
        with in_words(self.file):
            try:
                for row in self.connection.execute(sql, values):
                    left -= 1
                    if left < 0:
                        raise damaged(self.file, "it has more rows than there is room for")
                    yield row
            except sqlite3.OperationalError:
                if self._interrupted:
                    raise KeyboardInterrupt from None
                raise
            finally:
                self._until = math.inf

    def _enough(self) -> bool:
        """Whether SQLite is to give up. It would not hear Ctrl-C by itself."""
        try:
            return time.monotonic() > self._until
        except KeyboardInterrupt:
            self._interrupted = True
            return True


def _check_files(file: Path, *, writes: bool) -> None:
    """A pipe would never answer, and what a link leads to is not ours to write."""
    check_plain(file, linked=not writes)
    real = file.resolve()
    for ending in _BESIDE:
        check_plain(real.with_name(real.name + ending))


def _size(file: Path) -> int:
    """Bytes of a file and of its log."""
    size = 0
    for path in (file, log_of(file)):
        with suppress(OSError):
            size += path.stat().st_size
    return size
