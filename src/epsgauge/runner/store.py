"""The store of a run: one SQLite file with a row for each model, written by the process that runs and read by all."""

from __future__ import annotations

import json
import os
import secrets
import sqlite3
import statistics
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from epsgauge.declaration import Declaration, digest_of, now
from epsgauge.errors import EpsgaugeError
from epsgauge.games.ranking import Ranking
from epsgauge.games.settings import GameSettings
from epsgauge.games.signals import Outcome, Signals
from epsgauge.runner.channels import VERSION, Layout
from epsgauge.runner.journal import journal_for
from epsgauge.runner.lock import holder
from epsgauge.runner.looks import Log, Look, Noted, begin_log, read_log, read_unchecked
from epsgauge.runner.machines import Machines
from epsgauge.runner.schema import (
    ARRAYS,
    CHANNELS,
    DECLARATIONS,
    LOOKS,
    META,
    MODELS,
    RANKINGS,
    REHEARSALS,
    TABLES,
    Table,
)
from epsgauge.runner.sealed import Sealed
from epsgauge.runner.trouble import damaged, in_words, newer
from epsgauge.stats.arrays import Floats, Ints

FILE = "store.sqlite"
_ARRAY_TYPES = ("<i8", "<f8", "|u1")
_MOMENT = 0.25  # seconds in which models of a group are written
_MOST = 800_000_000  # bytes of a model's signals; SQLite takes 10^9 for a row
_BUSY_SECONDS = 30  # how long to wait for a reader on a network file system


class Store:
    """An open store; a context manager that closes it."""

    def __init__(self, database: Sealed, *, writes: bool) -> None:
        self.file = database.file
        self._database = database
        self._writes = writes
        self._layout: Layout | None = None
        self._entries: dict[str, Any] | None = None
        self._machines = Machines(self.get)
        self._ready = False  # for writing

    @classmethod
    def create(cls, file: Path, meta: Mapping[str, Any], declares: Mapping[str, Any] | None = None) -> Self:
        """A new store; its tables, `meta` and what the plan declares appear in one transaction: never half of them."""
        with suppress(FileExistsError):  # one that is empty, of a process that was killed as it began
            os.close(os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))  # signals are for their owner's eyes
        store = cls._opened(file)
        try:
            store._prepare()
            with store._database.transaction():
                begin_run(store._database, meta.get("fingerprint"))
                store._put(meta)
                store._declare(declares)
            store._ready = True
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def is_begun(cls, file: Path) -> bool:
        """Whether `file` has anything in it; a process that was killed as it began leaves an empty database."""
        if not os.path.lexists(file):
            return False
        store = cls._opened(file)
        try:
            return bool(store._database.query("SELECT count(*) FROM sqlite_master")[0][0])
        finally:
            store._database.connection.close()

    @classmethod
    def write(cls, file: Path) -> Self:
        """Open for the process that runs. It notes how many looks there were, now and when it closes the store."""
        store = cls._opened(file)
        try:
            store._database.check_schema()
            store._prepare()
            store._check_entries()
            store._note_looks()
            store._ready = True
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def read(cls, file: Path, *, checked: bool = True) -> Self:
        """Open for looking only, also while another process writes; without `checked`, whatever seals say."""
        mode = "ro"
        alone = not Path(f"{file}-wal").exists() and holder(file.parent) is None
        if alone and not os.access(file.parent, os.W_OK):
            mode += (
                "&immutable=1"  # nobody writes here, and SQLite could not make the files that it shares with writers
            )
        store = cls(Sealed.reader(file, mode, _BUSY_SECONDS, checked=checked), writes=False)
        try:
            store._check_entries()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def _opened(cls, file: Path) -> Self:
        return cls(Sealed.connect(file, "rw", _BUSY_SECONDS), writes=True)

    def _prepare(self) -> None:
        """Make ready for many writes."""
        with in_words(self.file):
            journal, execute = journal_for(self.file.parent), self._database.connection.execute
            execute(f"PRAGMA journal_mode = {journal}")
            # After a loss of power a write-ahead log may lack the last models, which are then played again; the other
            # journal needs FULL to be sure of an undamaged file.
            execute(f"PRAGMA synchronous = {'NORMAL' if journal == 'WAL' else 'FULL'}")

    def close(self) -> None:
        """A store that is not written to is one plain file without a log beside it, wherever that can be had."""
        connection = self._database.connection
        if self._ready:
            with suppress(EpsgaugeError):  # the looks that could not be noted are in their log
                self._note_looks()
        if self._writes:
            with suppress(sqlite3.Error):  # somebody reads, or the disk is full: it is as safe with its log
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute("PRAGMA journal_mode = DELETE")
        connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # meta

    def get(self, key: str, default: Any = None) -> Any:
        """An entry as it stood when the store was opened, or as this process set it since."""
        if self._entries is None:
            self._check_entries()
        text = (self._entries or {}).get(key)
        if text is None:
            return default
        try:
            return json.loads(text)
        except (TypeError, ValueError):
            raise damaged(self.file, f"its entry {key} is not JSON") from None

    def _check_entries(self) -> None:
        """Read all entries: that one is missing is seen only so."""
        self._entries = dict(self._database.rows(META))
        if "plan" not in self._entries:
            raise damaged(self.file, "it holds no plan")

    def put(self, entries: Mapping[str, Any], declares: Mapping[str, Any] | None = None) -> None:
        """Set some entries, and add what a plan declares, all or none."""
        with self._database.transaction():
            self._put(entries)
            self._declare(declares)

    def _put(self, entries: Mapping[str, Any]) -> None:
        if not entries:
            return
        rows = {key: json.dumps(value, default=str) for key, value in entries.items()}
        self._database.put_all(META, rows.items())
        self._entries = None

    # declarations and looks

    def declarations(self) -> tuple[Declaration, ...]:
        """All of them, the oldest first."""
        found = []
        for _, time_, n_done, n_looks, text, digest in self._database.rows(DECLARATIONS):
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
            n_done, n_looks = len(self.indices("done")), len(self.looks())
            self._database.append(DECLARATIONS, (now(), n_done, n_looks, json.dumps(content), digest))

    def looks(self) -> list[Look]:
        """Every look at results that was logged, the oldest first."""
        return self._log().looks if self._database.checked else read_unchecked(self.file.parent)

    def _log(self) -> Log:
        noted = self._noted()  # before the log is read, which may grow meanwhile
        return read_log(self.file.parent, self._database.identity, noted)

    def _noted(self) -> Noted:
        rows = list(self._database.rows(LOOKS))
        if len(rows) != 1:
            raise damaged(self.file, "it does not say how many looks there were")
        return rows[0][1:]

    def _note_looks(self) -> None:
        """From here on none of them can be removed unnoticed."""
        log = self._log()
        if log.noted != self._noted():
            with self._database.transaction():
                self._database.put(LOOKS, (1, *log.noted))

    # models

    def add(self, outcome: Outcome, *, rehearsal: bool = False) -> Outcome:
        """Keep one model, which is on the disk when this returns, and say what was kept.

        The first model decides which channels there are; one that gives others is kept as failed. Those of a rehearsal
        are kept apart.
        """
        to, channels = REHEARSALS if rehearsal else MODELS, outcome.channels
        if channels is None:
            return self._add(to, outcome, None)
        layout, given = self.layout(), Layout.of(channels)
        if given.size > _MOST:
            error = (
                f"the channels of a model must have at most {_MOST // 8:,} numbers in all, but these have "
                f"{given.size // 8:,}: {given}. Let the trainer give less."
            )
            return self._add(to, replace(outcome, channels=None, error=error), None)
        if layout is None:
            return self._add(to, outcome, given.packed(channels), given)
        if given.shapes != layout.shapes:
            error = (
                f"every model of a run must give the same channels, here {layout}, but this one gave {given}. Mend the "
                "trainer, or use a new --out."
            )
            return self._add(to, replace(outcome, channels=None, error=error), None)
        return self._add(to, outcome, layout.packed(channels))

    def _add(self, to: Table, outcome: Outcome, signals: bytes | None, layout: Layout | None = None) -> Outcome:
        o, state = outcome, "failed" if signals is None else "done"
        blobs = (_blob(o.bits, "|u1"), _blob(o.pairs, "<i8"), signals)
        with self._database.transaction():
            if layout is not None:
                self._database.put_all(CHANNELS, layout.rows())
            if to is MODELS:
                self._put(self._machines.entries(o.index, o.machine))
            self._database.put(to, (o.index, state, o.seed, float(o.seconds), time.time(), o.error, *blobs))
        return outcome

    def rehearsed(self) -> dict[int, str | None]:
        """The models of the rehearsal by their numbers, each with its error."""
        return {row[0]: row[5] for row in self._database.rows(REHEARSALS)}

    def layout(self) -> Layout | None:
        """Which channels the models have; None until one is done."""
        if self._layout is None:
            rows = [row[1:] for row in self._database.rows(CHANNELS)]
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
        return np.array(self._database.keys(MODELS, state), dtype=np.int64)

    def failures(self) -> list[tuple[int, Ints, int, str]]:
        """Index, bits, seed and error of each failed model."""
        rows = self._database.rows(MODELS, "failed")
        return [
            (i, self._array(bits, "|u1").astype(np.int64), s, str(error)) for i, _, s, _, _, error, bits, *_ in rows
        ]

    def timing(self, last: int = 1000) -> tuple[float | None, float | None]:
        """Median seconds of a model that is done, and models per second over the last ones to finish."""
        numbers = (
            "typeof(seconds) = 'real' AND typeof(finished) = 'real'"  # they are shown, and no result rests on them
        )
        query = self._database.query
        seconds = [row[0] for row in query(f"SELECT seconds FROM models WHERE state = 'done' AND {numbers}")]
        median = statistics.median(seconds) if seconds else None  # the first model of a worker waits for its imports
        latest = f"SELECT finished FROM models WHERE {numbers} ORDER BY finished DESC LIMIT ?"
        times = [row[0] for row in query(latest, (last,))]
        # models of a group are done at once: those of the oldest moment only mark the beginning
        begin = max((t for t in times if t <= times[-1] + _MOMENT), default=0.0)
        later = [t for t in times if t > begin]
        return median, len(later) / (later[0] - begin) if later else None

    def signals(self, game: GameSettings, *, rehearsal: bool = False) -> Signals:
        """What was seen of all models that are done, or of those of the rehearsal."""
        return self._signals(game, self._database.rows(REHEARSALS if rehearsal else MODELS, "done"))

    def signals_of(self, game: GameSettings, index: int, *, rehearsal: bool = False) -> Signals:
        """What was seen of one model, which is done."""
        return self._signals(game, [self._database.row(REHEARSALS if rehearsal else MODELS, index)])

    def _signals(self, game: GameSettings, rows: Iterable[tuple[Any, ...]]) -> Signals:
        m, layout = game.pairs_per_model, self.layout()
        sizes = (m, 16 * m, 0 if layout is None else layout.size)
        index, bits, pairs, signals = list[int](), bytearray(), bytearray(), bytearray()
        for row in rows:
            if layout is None:
                raise damaged(self.file, "it does not say which channels it has")
            index.append(row[0])
            for held, blob, size in zip((bits, pairs, signals), row[-3:], sizes, strict=True):
                if not isinstance(blob, bytes) or len(blob) != size:
                    raise damaged(self.file, "the signals of a model have the wrong length")
                held += blob
        n, channels = len(index), {} if layout is None else layout.unpacked(signals)
        return Signals(
            np.array(index, dtype=np.int64),
            self._array(bits, "|u1").astype(np.int64).reshape(n, m),
            self._array(pairs, "<i8").reshape(n, m, 2),
            channels,
            game.adjacency,
            game.sees,
        )

    def dealt(self, game: GameSettings, *, rehearsal: bool = False) -> Iterator[tuple[int, int, Ints, Ints]]:
        """Index, seed, bits and pairs of every model, done or failed."""
        for i, _, seed, _, _, _, bits, pairs, _ in self._database.rows(REHEARSALS if rehearsal else MODELS):
            pairs = self._array(pairs, "<i8")
            if len(pairs) != 2 * game.pairs_per_model:
                raise damaged(self.file, f"the pairs of model {i} have the wrong length")
            yield i, seed, self._array(bits, "|u1").astype(np.int64), pairs.reshape(-1, 2)

    # rankings and arrays

    def add_ranking(self, ranking: Ranking) -> None:
        r = ranking
        row = (r.index, r.seed, float(r.seconds), r.error, _blob(r.members, "<i8"), _blob(r.losses, "<f8"))
        with self._database.transaction():
            self._database.put(RANKINGS, row)

    def rankings(self) -> list[Ranking]:
        return [
            Ranking(i, seed, seconds, self._array(members, "<i8"), self._array(losses, "<f8"), error)
            for i, seed, seconds, error, members, losses in self._database.rows(RANKINGS)
        ]

    def put_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Keep some arrays of whole numbers, all or none."""
        rows = [(name, "<i8", json.dumps(array.shape), _blob(array, "<i8")) for name, array in arrays.items()]
        with self._database.transaction():
            self._database.put_all(ARRAYS, rows)

    def arrays(self) -> dict[str, Ints]:
        found = {}
        for name, dtype, shape, data in self._database.rows(ARRAYS):
            try:
                if dtype not in _ARRAY_TYPES:
                    raise ValueError
                found[name] = self._array(data, dtype).reshape(json.loads(shape)).astype(np.int64, copy=False)
            except (TypeError, ValueError):
                raise damaged(self.file, f"its array {name} has the wrong length") from None
        return found

    # as a whole

    @property
    def sealed(self) -> bool:
        """Whether its rows are held against their seals."""
        return self._database.checked

    @property
    def fingerprint(self) -> str:
        """The one that every seal contains."""
        return self._database.identity.partition(" ")[0]

    def digest(self) -> str | None:
        """SHA-256 of the run: of all rows but what is noted of looks, so that reading never changes it."""
        return self._database.digest(but=LOOKS) if self.sealed else None

    def state(self) -> str:
        """Another one as soon as anything is written to the store."""
        return self._database.state()

    def faults(self) -> list[str]:
        """What SQLite finds wrong with the file."""
        found = [str(row[0]) for row in self._database.query("PRAGMA integrity_check")]
        return [] if found == ["ok"] else found

    def n_rows(self) -> int:
        """How many rows there are, all of which are what was written."""
        return sum(1 for table in TABLES for _ in self._database.rows(table))

    def _array(self, blob: Any, dtype: str) -> NDArray[Any]:
        """The numbers of a blob, which can be written to."""
        kind = np.dtype(dtype)
        if not isinstance(blob, bytes | bytearray) or len(blob) % kind.itemsize:
            raise damaged(self.file, "the signals of a model have the wrong length")
        return np.frombuffer(bytearray(blob) if isinstance(blob, bytes) else blob, dtype=kind).astype(
            kind.newbyteorder("="), copy=False
        )


def begin_run(database: Sealed, fingerprint: object, looks: Iterable[Mapping[str, Any]] = ()) -> None:
    """Make the tables of a new run, and its log of looks; inside a transaction.

    Every seal contains the run's identity: its fingerprint, and a token, as a run of the same plan may have other code.
    """
    identity = f"{fingerprint} {secrets.token_hex(16)}"
    noted = begin_log(database.file.parent, identity, looks)
    database.begin(identity)
    database.put(LOOKS, (1, *noted))


def _blob(array: Floats | Ints, dtype: str) -> bytes:
    return np.ascontiguousarray(array, dtype=dtype).tobytes()
