"""A SQLite file whose rows have a seal each, and a sum of all seals: what was changed, lost or added elsewhere is seen.

A seal is a digest of a row. It finds accidents and edits by hand; it is no signature, as whoever knows this file can
make one.
"""

from __future__ import annotations

import hashlib
import math
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from epsgauge.runner import schema
from epsgauge.runner.plain_files import check_plain
from epsgauge.runner.schema import SEALS, Table, parts_of
from epsgauge.runner.trouble import Damaged, Empty, damaged, in_words, newer

SIZE = 16  # bytes of a seal
_LEAST, _MOST = 1_000_000, 1_000_000_000  # bytes of a value that a file of any size may have, and any at all
_SMALLEST = 8  # bytes that a row takes at least
_SECONDS = 600.0  # that any one query may take: a damaged file can send SQLite in circles
_STEPS = 1_000_000  # of SQLite's machine, after which the time is looked at
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a database


def seal_of(table: Table, row: Sequence[Any]) -> bytes:
    """The digest of a row: of the table's name and of each value with its type and length."""
    blobs = [value for value in row if type(value) is bytes]
    plain = [(len(value),) if type(value) is bytes else value for value in row]
    found = hashlib.blake2b(f"{table.name}{plain!r}".encode(errors="surrogatepass"), digest_size=SIZE)
    for blob in blobs:
        found.update(blob)
    return found.digest()


class Sealed:
    """An open file."""

    def __init__(self, file: Path, connection: sqlite3.Connection) -> None:
        self.file = file
        self.connection = connection
        self.version = 0
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

    def check_schema(self, known: int) -> None:
        """Find out the version, and refuse tables that no version made; `known` is the latest one."""
        self.version = int(self.query("PRAGMA user_version")[0][0])
        if self.version > known:
            raise newer(self.file, f"schema {self.version}", known)
        if self.version < 1:
            raise Empty(str(damaged(self.file, "it holds no run")))
        with in_words(self.file):
            strange = schema.strange(self.connection, self.version)
        if strange is not None:
            raise damaged(self.file, strange)

    # reading

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query, unchecked."""
        return list(self._stepped(sql, values))

    def rows(self, table: Table, part: str | None = None) -> Iterator[tuple[Any, ...]]:
        """Every row of a table, or of its part with this value of `apart`, by its key.

        Each is held against its seal, and when the last has come all of them against their sum: read to the end.
        """
        where, values = ("", ()) if part is None else (f"WHERE {table.apart} = ?", (part,))
        sealed, last = self.version >= SEALS, None
        n = total = 0
        with self._at_one_moment():
            for row in self._stepped(f"{self._select(table)} {where} ORDER BY {table.key}", values):
                yield self._unsealed(table, row)
                if sealed:
                    if n and row[0] <= last:  # SQLite takes the order of its pages for granted
                        raise damaged(self.file, f"row {row[0]!r} of {table.name} is out of order")
                    n, total, last = n + 1, total + int.from_bytes(row[-1]), row[0]
            parts = parts_of(table) if part is None else [f"{table.name} {part}"]
            if sealed and (n, total % 2 ** (8 * SIZE)) != self._sum(parts):
                raise self._miscounted(table, n, self._sum(parts)[0])

    def row(self, table: Table, key: Any) -> tuple[Any, ...]:
        """The row with this key, which must be there."""
        found = self.query(f"{self._select(table)} WHERE {table.key} = ?", (key,))
        if not found:
            raise damaged(self.file, f"{table.name} has no row {key!r}")
        return self._unsealed(table, found[0])

    def keys(self, table: Table, part: str) -> list[Any]:
        """The keys of a part; that there are as many as were written is checked, and no more."""
        with self._at_one_moment():
            query = f"SELECT {table.key} FROM {table.name} WHERE {table.apart} = ? ORDER BY 1"
            found = [row[0] for row in self._stepped(query, (part,))]
            if self.version >= SEALS and len(found) != (n := self._sum([f"{table.name} {part}"])[0]):
                raise self._miscounted(table, len(found), n)
        return found

    def _select(self, table: Table) -> str:
        columns = [*table.columns, "seal"] if self.version >= SEALS else table.columns
        return f"SELECT {', '.join(columns)} FROM {table.name}"

    def _unsealed(self, table: Table, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """A row without its seal, which must fit."""
        if self.version < SEALS:
            return row
        values = row[:-1]
        if seal_of(table, values) != row[-1]:
            raise damaged(self.file, f"row {row[0]!r} of {table.name} is not what was written")
        return values

    def _miscounted(self, table: Table, n: int, written: int) -> Damaged:
        return damaged(self.file, f"{table.name} has {n} rows, which are not the {written} that were written")

    def digest(self, *, but: Table) -> str | None:
        """Of all rows but those of one table, by the sums of their seals; None of a file without seals."""
        if self.version < SEALS:
            return None
        left_out = parts_of(but)
        sums = self.query("SELECT part, n, total FROM sums ORDER BY part")
        return hashlib.blake2b(repr([row for row in sums if row[0] not in left_out]).encode()).hexdigest()

    def count(self, table: Table) -> int:
        """How many rows a table has."""
        return int(self.query(f"SELECT count(*) FROM {table.name}")[0][0])

    def _sum(self, parts: list[str]) -> tuple[int, int]:
        """How many rows were written to these parts, and the sum of their seals."""
        held = {part: (n, total) for part, n, total in self.query("SELECT part, n, total FROM sums")}
        try:
            both = [(int(held[part][0]), int.from_bytes(held[part][1])) for part in parts]
        except (KeyError, TypeError, ValueError):
            raise damaged(self.file, "its sums cannot be read") from None
        return sum(n for n, _ in both), sum(total for _, total in both) % 2 ** (8 * SIZE)

    # writing

    def put(self, table: Table, row: Sequence[Any]) -> None:
        self.put_all(table, [row])

    def put_all(self, table: Table, rows: Iterable[Sequence[Any]]) -> None:
        """Add rows, or put them in the place of those with the same key, with their seals; inside a transaction."""
        place = 0 if table.apart is None else list(table.columns).index(table.apart)
        apart = table.apart or "NULL"
        insert = f"INSERT OR REPLACE INTO {table.name} VALUES ({', '.join('?' * (len(table.columns) + 1))})"
        changed = {part: [0, 0] for part in parts_of(table)}

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
            seal = seal_of(table, row)
            self.connection.execute(insert, (*row, seal))
            count(row[place], seal, 1)
        for part, (n, total) in changed.items():
            if n or total:
                before = self._sum([part])
                after = (before[1] + total) % 2 ** (8 * SIZE)
                self.connection.execute(
                    "UPDATE sums SET n = ?, total = ? WHERE part = ?", (before[0] + n, after.to_bytes(SIZE), part)
                )

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
    for ending in _BESIDE:
        check_plain(_beside(file.resolve(), ending))


def _beside(file: Path, ending: str) -> Path:
    return file.with_name(file.name + ending)


def _size(file: Path) -> int:
    """Bytes of a file and of its log."""
    size = 0
    for path in (file, _beside(file.resolve(), "-wal")):
        with suppress(OSError):
            size += path.stat().st_size
    return size
