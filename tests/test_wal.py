"""A write-ahead log with a turned bit: SQLite drops every later commit without a word, and epsgauge says so."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct

import numpy as np
import pytest
from command_line import ask
from tiny_runs import plan, played

import epsgauge as eg
from epsgauge.errors import InvalidInput
from epsgauge.runner import looks, wal
from epsgauge.runner.progress import Watch
from epsgauge.runner.run import LOST
from epsgauge.runner.store import FILE
from epsgauge.runner.trouble import Damaged, in_words
from epsgauge.runner.wal import has_lost

N, PAGE = 40, 4096
FRAME = 24 + PAGE


@pytest.fixture
def log(tmp_path):
    """A database of which every row is in its log alone, each in a commit of its own, as a killed process leaves it."""
    connection = sqlite3.connect(tmp_path / "open", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (i INTEGER PRIMARY KEY, b BLOB)")
    rng = np.random.default_rng(0)
    for i in range(N):
        connection.execute("INSERT INTO t VALUES (?, ?)", (i, rng.bytes(3000)))
    for name in ("open", "open-wal"):
        shutil.copy(tmp_path / name, tmp_path / name.replace("open", "copy"))
    connection.close()
    return tmp_path / "copy-wal"


def rows(log):
    connection = sqlite3.connect(log.with_name("copy"))
    try:
        return connection.execute("SELECT count(*) FROM t").fetchone()[0]
    except sqlite3.OperationalError:  # not even the table
        return 0
    finally:
        connection.close()


def checksum(raw, words, state):
    """As SQLite's documentation has it, a word after the other."""
    x = np.frombuffer(raw, words).tolist()
    for i in range(0, len(x), 2):
        first = (state[0] + x[i] + state[1]) % 2**32
        state = first, (state[1] + x[i + 1] + first) % 2**32
    return state


@pytest.mark.parametrize("words", ["<u4", ">u4"])
@pytest.mark.parametrize("size", [24, 8 + 512, 8 + 4096])
def test_checksums_are_those_of_a_slow_twin(words, size):
    rng = np.random.default_rng(size)
    raw, before = rng.bytes(3 * size), [(0, 0), (2**32 - 1, 7), (12345, 2**31)]
    sums = b"".join(
        struct.pack(">2I", *checksum(raw[i * size : (i + 1) * size], words, state)) for i, state in enumerate(before)
    )
    assert wal._fits(raw, np.array(before, np.uint64), sums, words).tolist() == [True] * 3
    wrong = sums[:8] + bytes([sums[8] ^ 1]) + sums[9:]
    assert wal._fits(raw, np.array(before, np.uint64), wrong, words).tolist() == [True, False, True]


def test_what_is_whole_or_cut_short_is_no_damage(log, tmp_path):
    raw = log.read_bytes()
    assert not has_lost(log)
    assert not has_lost(tmp_path / "none")
    for size in (0, 5, 32, 40, 32 + FRAME, 32 + FRAME + 24, len(raw) - FRAME, len(raw) - 100, len(raw) - 1):
        log.write_bytes(raw[:size])
        assert not has_lost(log), size
    log.write_bytes(raw)
    assert rows(log) == N


def test_a_turned_bit_is_damage_wherever_commits_are_lost(log):
    """It never costs more than the last one unnoticed, which is as if the process had been killed a moment before."""
    raw, rng, noticed = log.read_bytes(), np.random.default_rng(1), 0
    base = log.with_name("copy").read_bytes()
    for at in (*range(0, 32, 3), *range(32, 32 + 24), *rng.integers(32, len(raw), 60).tolist()):
        changed = bytearray(raw)
        changed[at] ^= 1 << int(rng.integers(8))
        log.with_name("copy").write_bytes(base)
        log.write_bytes(changed)
        found = has_lost(log)
        kept = rows(log)
        assert found or kept >= N - 1, at
        assert not (found and kept == N), at
        noticed += found
    assert noticed > 80


def test_frames_of_before_the_log_was_reset_are_no_damage(tmp_path):
    connection = sqlite3.connect(tmp_path / "a", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (b BLOB)")
    for _ in range(20):
        connection.execute("INSERT INTO t VALUES (?)", (os.urandom(3000),))
    connection.execute("PRAGMA wal_checkpoint(RESTART)")
    connection.execute("INSERT INTO t VALUES (1)")
    assert (tmp_path / "a-wal").stat().st_size > 20 * PAGE
    assert not has_lost(tmp_path / "a-wal")
    connection.close()


def test_what_was_rolled_back_is_no_damage(tmp_path):
    """Pages that did not fit in memory are in the log before their commit, and later ones are written over them."""
    connection = sqlite3.connect(tmp_path / "a", isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA cache_size = 5")
    connection.execute("CREATE TABLE t (b BLOB)")
    size = (tmp_path / "a-wal").stat().st_size
    connection.execute("BEGIN")
    for _ in range(50):
        connection.execute("INSERT INTO t VALUES (?)", (os.urandom(3000),))
    connection.execute("ROLLBACK")
    connection.execute("INSERT INTO t VALUES (1)")
    assert (tmp_path / "a-wal").stat().st_size > size + 30 * PAGE
    assert not has_lost(tmp_path / "a-wal")
    connection.close()


# of a run


class Copies(Watch):
    """Copies a run directory after its 30th model, as if its process had been killed there."""

    def __init__(self, folder, copy):
        self.folder, self.copy = folder, copy

    def finished_one(self, outcome, progress):
        if progress.n_done == 30:
            self.copy.mkdir()
            for name in (FILE, f"{FILE}-wal", looks.FILE):
                shutil.copy(self.folder / name, self.copy / name)


@pytest.fixture
def planned():
    return plan(n_models=40, audit={"rule": "given", "threshold": 0.0})


@pytest.fixture
def whole(planned, tmp_path):
    return played(planned, tmp_path / "whole", Copies(tmp_path / "whole", tmp_path / "killed"))


def turn(file, at):
    raw = bytearray(file.read_bytes())
    raw[at] ^= 4
    file.write_bytes(raw)


SAID = r"is damaged \(its write-ahead log is damaged, and later writes are lost\). Run it again: the lost "


def test_readers_say_that_models_are_lost_and_the_run_trains_them_again(planned, whole, tmp_path):
    folder = tmp_path / "killed"
    assert eg.Run.open(folder).n_done == 30
    log = folder / f"{FILE}-wal"
    turn(log, 32 + log.stat().st_size // FRAME * 2 // 3 * FRAME + 24 + 100)
    with pytest.raises(InvalidInput, match=SAID):
        eg.Run.open(folder)
    found = eg.verify(folder)
    assert [check.name for check in found.checks] == ["file"]
    assert found.remedy == "Run it again: the lost models are trained again."
    assert "damaged. Run it again: the lost models" in " ".join(ask("verify", folder, code=1).split())
    assert 0 < eg.Run.open(folder, unsealed=True).n_done < 30
    back = played(planned, folder)
    assert back.notes == [LOST]
    assert back.signals()["loss"].tobytes() == whole.signals()["loss"].tobytes()
    assert eg.verify(folder).intact


def test_a_run_that_lost_its_beginning_begins_again(planned, whole, tmp_path):
    folder = tmp_path / "killed"
    turn(folder / f"{FILE}-wal", 32 + 24 + 100)
    back = played(planned, folder)
    assert (back.n_done, back.notes) == (40, [LOST])
    assert back.signals()["loss"].tobytes() == whole.signals()["loss"].tobytes()


def test_a_message_of_sqlite_that_is_not_utf8_is_damage(tmp_path):
    """A bit turned in the schema: SQLite quotes it, and Python cannot decode the quotation."""
    with pytest.raises(Damaged, match=r"damaged \(a text in it is not UTF-8\)"), in_words(tmp_path / "store.sqlite"):
        b"\xce(".decode("utf-8")
