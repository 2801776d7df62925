"""The store: what is written is read back, damage and full disks become sentences, readers write nothing."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stores import edit, forge
from tiny_runs import plan, played

import epsgauge as eg
from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.games.ranking import Ranking
from epsgauge.games.settings import GameSettings
from epsgauge.games.signals import Outcome
from epsgauge.runner import lock, looks, store
from epsgauge.runner.journal import journal_for
from epsgauge.runner.lock import hold, holder
from epsgauge.runner.looks import log_look
from epsgauge.runner.store import Store
from epsgauge.runner.trouble import in_words
from epsgauge.runner.view import Run, in_force

GAME = GameSettings(train_size=10, pairs_per_model=2)


def outcome(index, error=None):
    rng = np.random.default_rng(index)
    pairs = rng.integers(0, 99, size=(2, 2))
    if error:
        return Outcome(index, 2**62 + index, np.array([0, 1]), pairs, 0.5, error=error)
    channels = {"loss": rng.normal(size=(2, 2)), "reference": np.sort(rng.normal(size=7))}
    return Outcome(index, 2**62 + index, rng.integers(0, 2, size=2), pairs, 0.25, channels)


def filled(file, *outcomes):
    with Store.create(file, {"plan": {"a": [1, 2.5, None]}}) as s:
        for o in outcomes:
            s.add(o)
    return file


def test_every_number_comes_back_bit_for_bit(tmp_path):
    given = [outcome(3), outcome(0), outcome(2, "boom\nat line 1"), outcome(1)]
    with Store.read(filled(tmp_path / "s.sqlite", *given)) as s:
        signals = s.signals(GAME)
        assert s.get("plan") == {"a": [1, 2.5, None]}
        assert s.get("nothing", 5) == 5
        assert signals.models.tolist() == s.indices("done").tolist() == [0, 1, 3]
        assert s.indices("failed").tolist() == [2]
        ((index, bits, seed, error),) = s.failures()
        assert (index, bits.tolist(), seed, error) == (2, [0, 1], 2**62 + 2, "boom\nat line 1")
        median, _ = s.timing()
        assert median == 0.25
    for row, index in enumerate([0, 1, 3]):
        expected = outcome(index)
        assert signals.bits[row].tolist() == expected.bits.tolist()
        assert signals.pairs[row].tolist() == expected.pairs.tolist()
        assert list(signals.channels) == list(expected.channels)
        for name, values in expected.channels.items():
            assert signals[name][row].shape == values.shape
            assert signals[name][row].tobytes() == values.tobytes(), name


def test_nan_and_a_second_write_of_one_model(tmp_path):
    """An add-remove game has no z0: its loss is NaN; a model that is retried replaces its failed row."""
    again = outcome(2)
    again.channels["loss"][:, 0] = np.nan
    with Store.read(filled(tmp_path / "s.sqlite", outcome(2, "boom"), again)) as s:
        assert s.indices("failed").tolist() == []
        assert np.isnan(s.signals(GAME)["loss"][..., 0]).all()
        assert np.isfinite(s.signals(GAME)["loss"][..., 1]).all()


def test_no_models_are_signals_without_rows(tmp_path):
    with Store.read(filled(tmp_path / "s.sqlite")) as s:
        signals = s.signals(GAME)
        assert len(signals) == 0
        assert signals.pairs.shape == (0, 2, 2)
        assert s.timing() == (None, None)


def test_rankings_and_arrays_come_back(tmp_path):
    rng = np.random.default_rng(0)
    good, bad = (
        Ranking(1, 5, 0.1, np.arange(4), rng.normal(size=8)),
        Ranking(0, 6, 0.2, np.arange(4), np.empty(0), "no"),
    )
    arrays = {"pool": np.arange(6).reshape(3, 2), "empty": np.empty((0, 2), np.int64)}
    with Store.create(tmp_path / "s.sqlite", {"plan": 1}) as s:
        s.add_ranking(good)
        s.add_ranking(bad)
        s.put_arrays(arrays)
    with Store.read(tmp_path / "s.sqlite") as s:
        first, second = s.rankings()
        assert (first.index, first.error, len(first.losses)) == (0, "no", 0)
        assert (second.index, second.seed, second.seconds, second.error) == (1, 5, 0.1, None)
        assert second.losses.tobytes() == good.losses.tobytes()
        assert second.members.tolist() == [0, 1, 2, 3]
        found = s.arrays()
    assert {k: (v.shape, v.tolist()) for k, v in found.items()} == {k: (v.shape, v.tolist()) for k, v in arrays.items()}


def test_a_closed_store_is_one_file_and_an_open_one_has_a_log(tmp_path):
    file = tmp_path / "s.sqlite"
    with Store.create(file, {"plan": 1}) as s:
        s.add(outcome(0))
        assert Path(f"{file}-wal").exists()
        with Store.read(file) as reader:  # while the other is open for writing
            assert reader.indices("done").tolist() == [0]
            s.add(outcome(1))
            assert reader.indices("done").tolist() == [0, 1]
    assert sorted(f.name for f in tmp_path.iterdir()) == [looks.FILE, "s.sqlite"]


def test_a_reader_cannot_write(tmp_path):
    with Store.read(filled(tmp_path / "s.sqlite")) as s, pytest.raises(EpsgaugeError, match="could not be opened"):
        s.add(outcome(0))


def test_a_store_of_somebody_else_is_a_sentence(tmp_path, monkeypatch):
    file = filled(tmp_path / "s.sqlite")
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    error = sqlite3.OperationalError("unable to open database file")
    error.sqlite_errorname = "SQLITE_CANTOPEN"
    with pytest.raises(InvalidInput, match=r"you may not read .*s.sqlite. Its owner can share it"), in_words(file):
        raise error


def test_where_the_folder_cannot_be_written_the_store_is_read_as_it_is(tmp_path, monkeypatch):
    file = filled(tmp_path / "s.sqlite", outcome(0))
    opened = []
    connect = sqlite3.connect
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **kw: (opened.append(a[0]), connect(*a, **kw))[1])
    with Store.read(file) as s:
        assert s.indices("done").tolist() == [0]
    Path(f"{file}-wal").touch()  # a log may hold what the file does not have yet
    Store.read(file).close()
    assert ["immutable" in uri for uri in opened] == [True, False]


def read_all(file):
    with Store.read(file) as s:
        return s.get("plan"), s.signals(GAME), s.arrays()


def scribble(file):
    file.write_bytes(b"something else, and long enough to be a database" * 100)


def cut_off(file):
    os.truncate(file, file.stat().st_size // 2)


def sql(statement):
    return lambda file: edit(file, statement)


def forged(statement):
    return lambda file: forge(file, statement)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (scribble, "file is not a database"),
        (cut_off, "malformed"),
        (lambda file: os.truncate(file, 0), "it holds no run"),
        (sql("DROP TABLE meta"), "no such table: meta"),
        (sql("DROP TABLE models"), "no such table: models"),
        (forged("UPDATE models SET signals = substr(signals, 2) WHERE idx = 1"), "wrong length"),
        (forged("UPDATE models SET signals = NULL WHERE idx = 1"), "wrong length"),
        (forged("UPDATE models SET signals = substr(signals, 9) WHERE idx = 1"), "wrong length"),
        (forged("UPDATE models SET pairs = substr(pairs, 9) WHERE idx = 1"), "wrong length"),
        (forged("DELETE FROM channels"), "does not say which channels"),
        (forged("UPDATE channels SET dtype = 'O'"), "what it says of its channels"),
        (forged("UPDATE channels SET shape = '{'"), "what it says of its channels"),
        (forged("UPDATE channels SET shape = '[-2, -2]'"), "what it says of its channels"),
        (forged("UPDATE channels SET shape = '[2, 3]' WHERE name = 'loss'"), "wrong length"),
        (forged("UPDATE channels SET version = 'one'"), "what it says of its channels"),
        (forged("UPDATE arrays SET shape = '[4]'"), "array pool has the wrong length"),
        (forged("UPDATE arrays SET dtype = 'O'"), "array pool has the wrong length"),
        (forged("UPDATE meta SET value = '{' WHERE key = 'plan'"), "its entry plan is not JSON"),
        (forged("DELETE FROM meta WHERE key = 'plan'"), "it holds no plan"),
        (forged("DELETE FROM meta"), "it does not say which run it is"),
        (sql("UPDATE models SET bits = x'0001' WHERE idx = 7"), "row 7 of models is not what was written"),
        (sql("UPDATE models SET idx = 99 WHERE idx = 7"), "row 99 of models is not what was written"),
        (sql("UPDATE models SET state = 'failed' WHERE idx = 7"), "has 19 rows, which are not the 20"),
        (sql("DELETE FROM models WHERE idx = 7"), "models has 19 rows, which are not the 20 that were written"),
        (
            sql(
                "INSERT INTO models SELECT 50, seal, state, seed, seconds, finished, error, bits, pairs, signals "
                "FROM models WHERE idx = 1"
            ),
            "row 50 of models is not what was written",
        ),
        (sql("UPDATE sums SET n = 21 WHERE part = 'models done'"), "the sum of models done is not what was written"),
        (sql("UPDATE sums SET total = zeroblob(32) WHERE part = 'models done'"), "the sum of models done is not"),
        (sql("UPDATE sums SET seal = zeroblob(32) WHERE part = 'models failed'"), "the sum of models failed is not"),
        (
            sql(
                "UPDATE sums SET (n, total, seal) = (SELECT n, total, seal FROM sums WHERE part = 'rankings') "
                "WHERE part = 'models done'"
            ),
            "the sum of models done is not what was written",
        ),
        (sql("INSERT INTO sums VALUES ('more', 0, zeroblob(32), zeroblob(32))"), "its sums cannot be read"),
        (sql("DELETE FROM sums WHERE part = 'models done'"), "its sums cannot be read"),
        (sql("UPDATE sums SET total = 'x'"), "its sums cannot be read"),
        (sql("DELETE FROM meta WHERE key = 'extended_after_look'"), "meta has 2 rows, which are not the 3"),
        (sql("UPDATE meta SET value = '2' WHERE key = 'plan'"), "row 'plan' of meta is not what was written"),
        (sql("UPDATE channels SET name = 'margin' WHERE name = 'loss'"), "row 0 of channels is not what was written"),
        (sql("DELETE FROM arrays"), "arrays has 0 rows, which are not the 1"),
        (sql("DROP TABLE sums"), "no such table: sums"),
        (sql("UPDATE meta SET value = '1' WHERE key = 'identity'"), "is not what was written"),
        (sql("CREATE TABLE more (a)"), "the table more was not made by epsgauge"),
        (sql("CREATE TRIGGER t AFTER INSERT ON models BEGIN DELETE FROM looks; END"), "the trigger t was not made"),
    ],
)
def test_damage_is_one_sentence_with_file_and_remedy(tmp_path, harm, words):
    file = filled(tmp_path / "s.sqlite", *(outcome(i) for i in range(20)))
    with Store.write(file) as s:
        s.put_arrays({"pool": np.arange(3)})
        s.put({"extended_after_look": True})
    harm(file)
    with pytest.raises(InvalidInput) as caught:
        read_all(file)
    sentence = str(caught.value)
    assert sentence.startswith(f"{file} is damaged (")
    assert words in sentence
    assert sentence.endswith("Restore it from a copy, or start again with a new --out.")


def test_a_store_that_is_about_to_begin_is_not_damaged(tmp_path):
    sqlite3.connect(tmp_path / store.FILE).close()
    (tmp_path / store.FILE).touch()
    with hold(tmp_path), pytest.raises(InvalidInput, match="holds no run yet: it is about to begin"):
        Run.open(tmp_path)
    with pytest.raises(InvalidInput, match="is damaged"):
        Run.open(tmp_path)


def test_a_model_with_more_than_a_row_can_hold_is_kept_as_failed(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_MOST", 100)
    with Store.create(tmp_path / "s.sqlite", {"plan": 1}) as s:
        kept = s.add(replace(outcome(1), channels={"loss": np.zeros((2, 2)), "logits": np.zeros(9)}))
        assert kept.error == (
            "the channels of a model must have at most 12 numbers in all, but these have 13: loss [2, 2], logits [9]. "
            "Let the trainer give less."
        )
        assert s.indices("failed").tolist() == [1]


@pytest.mark.parametrize(
    ("version", "words"),
    [
        (99, r"was written by a newer epsgauge \(schema 99, this one knows 6\). Upgrade epsgauge."),
        (4, "s.sqlite has schema 4, but this epsgauge only reads schema 6. Start again with a new --out."),
    ],
)
def test_another_schema_is_refused(tmp_path, version, words):
    file = filled(tmp_path / "s.sqlite")
    sql(f"PRAGMA user_version = {version}")(file)
    for opened in (Store.read, Store.write):
        with pytest.raises(InvalidInput, match=words):
            opened(file)


def test_a_full_disk_keeps_what_is_done(tmp_path, monkeypatch):
    file = filled(tmp_path / "s.sqlite")
    connect = sqlite3.connect

    def small(*args, **kw):
        connection = connect(*args, **kw)
        connection.execute("PRAGMA max_page_count = 12")
        return connection

    monkeypatch.setattr(sqlite3, "connect", small)
    kept = []
    with Store.write(file) as s, pytest.raises(EpsgaugeError, match=r"the disk is full.*make room and run it again"):
        kept.extend(s.add(outcome(i)) or i for i in range(1000))
    monkeypatch.undo()
    n_kept = len(kept)
    assert n_kept > 0
    with Store.read(file) as s:
        assert s.signals(GAME).models.tolist() == list(range(n_kept))


def test_entries_are_set_all_or_none(tmp_path):
    with Store.create(tmp_path / "s.sqlite", {"plan": 1}) as s:
        loop = []
        loop.append(loop)
        with pytest.raises(ValueError, match="Circular"):
            s.put({"plan": 2, "loop": loop})
        assert s.get("plan") == 1
        s.put({"plan": 3})
        assert s.get("plan") == 3


MOUNTS = """\
overlay / overlay rw 0 0
server:/home /home nfs4 rw 0 0
/dev/sdb1 /home/me/local\\040disk ext4 rw 0 0
me@host: /mnt/remote fuse.sshfs rw 0 0
/dev/sdc1 /mnt/stick fuseblk rw 0 0
"""


@pytest.mark.parametrize(
    ("folder", "journal"),
    [
        ("/tmp/a", "WAL"),
        ("/home/me/runs", "DELETE"),
        ("/homes/me", "WAL"),
        ("/home/me/local disk/runs", "WAL"),
        ("/mnt/remote/a", "DELETE"),
        ("/mnt/stick/a", "WAL"),
    ],
)
def test_the_journal_depends_on_the_file_system(folder, journal):
    assert journal_for(Path(folder), MOUNTS) == journal
    assert journal_for(Path(folder), "") == "WAL"  # nothing is known


def test_a_store_on_a_network_file_system_has_no_log(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "journal_for", lambda folder: "DELETE")
    file = tmp_path / "s.sqlite"
    with Store.create(file, {"plan": 1}) as s:
        s.add(outcome(0))
        assert not Path(f"{file}-wal").exists()
        with Store.read(file) as reader:
            assert reader.indices("done").tolist() == [0]


LOOK = {"kind": "audit", "n_done": 3, "n_models": 9}


def test_a_declaration_is_added_and_never_replaced(tmp_path):
    file = tmp_path / "s.sqlite"
    first, second, third = ({"audit": {"delta": delta}, "n_models": 9} for delta in (1e-5, 1e-6, 1e-7))
    with Store.create(file, {"plan": 1}, first) as s:
        s.put({}, first)  # the same again
        s.add(outcome(0))
        s.put({}, second)
        assert log_look(tmp_path, LOOK)
        s.put({}, third)
        found = s.declarations()
    assert [(d.content, d.n_done, d.n_looks) for d in found] == [(first, 0, 0), (second, 1, 0), (third, 1, 1)]
    assert in_force(found) is found[1]
    assert found[0].sentence.endswith(f"UTC, before any model was done (digest {found[0].digest[:12]}…).")
    assert "when 1 of 9 models were done and no result had been seen" in found[1].sentence
    assert found[2].sentence.startswith("Changed at ")
    assert "after results had been seen" in found[2].sentence


def test_a_declaration_that_was_edited_is_damage(tmp_path):
    file = tmp_path / "s.sqlite"
    Store.create(file, {"plan": 1}, {"audit": {"delta": 1e-5}}).close()
    change = "UPDATE declarations SET content = replace(content, '1e-05', '1e-06')"
    edit(file, change)
    with Store.read(file) as s, pytest.raises(InvalidInput, match="row 1 of declarations is not what was written"):
        s.declarations()
    forge(file, change)
    with Store.read(file) as s, pytest.raises(InvalidInput, match="declared is not what its digest is of"):
        s.declarations()


def test_the_lock_names_its_holder_and_is_free_afterwards(tmp_path):
    folder = tmp_path / "new" / "run"
    assert holder(folder) is None
    with hold(folder):
        assert holder(folder) == os.getpid()
        with pytest.raises(InvalidInput, match=f"is in use by process {os.getpid()}. Wait for it"), hold(folder):
            pass
        assert holder(folder) == os.getpid()
    assert holder(folder) is None
    with hold(folder):
        pass


WITHOUT_LOCKS = """
import os, sys
sys.modules["fcntl"] = None
for name in ("register_at_fork", "pread", "pwrite", "fork"):
    delattr(os, name)
import numpy as np
import epsgauge as eg
from epsgauge.runner.view import Run

table, folder, out = sys.argv[1:]
assert eg.audit(eg.Scores.read(table), rule="given", threshold=0.5).judged.tally.tp == 2
run = Run.open(folder)
assert not run.status()["running"]
eg.audit(run, rule="given", attack="loss", threshold=0.0)
eg.audit(run, rule="given", attack="loss", threshold=0.0)
assert len(run.looks) == 2
try:
    eg.run(run.plan, out=out)
except eg.EpsgaugeError as error:
    print(error)
"""


def test_only_running_needs_locks(tmp_path):
    """Scores and runs are audited where there is no fcntl, as on Windows."""
    run = played(plan(n_models=6, audit={"fit_models": 2}), tmp_path / "run")
    table = tmp_path / "scores.csv"
    eg.Scores.from_in_out([1.0, 2.0, 0.2], [0.0, 0.1, 3.0], adjacency="substitute", models="independent").write(table)
    words = [sys.executable, "-c", WITHOUT_LOCKS, str(table), str(run.path), str(tmp_path / "new")]
    done = subprocess.run(words, capture_output=True, encoding="utf-8")
    assert done.stderr == ""
    assert done.stdout.startswith("a run needs the file locks of Linux or macOS, which this system lacks.")


def test_out_must_be_a_folder(tmp_path):
    (tmp_path / "file").touch()
    for bad in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InvalidInput, match="out must be a folder"), hold(bad):
            pass


def test_a_forked_child_does_not_keep_the_lock(tmp_path):
    with hold(tmp_path / "run"):
        child = os.fork()
        if child == 0:
            os._exit(len(lock._held))  # what the child would keep open
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert len(lock._held) == 1
        assert holder(tmp_path / "run") == os.getpid()


def test_the_rate_of_models_that_are_done_in_groups(tmp_path):
    """Three groups of ten, two seconds apart: five models a second, and not as fast as they are written."""
    file = tmp_path / "s.sqlite"
    Store.create(file, {"plan": 1}).close()
    row = "INSERT INTO models VALUES ({}, x'', 'done', '0', 0.2, {}, NULL, x'', x'', NULL)"
    forge(file, *(row.format(10 * g + i, 100.0 + 2 * g + i / 1000) for g in range(3) for i in range(10)))
    with Store.read(file) as s:
        median, rate = s.timing()
    assert median == 0.2
    assert rate == pytest.approx(20 / 4, rel=0.01)


def test_a_newer_channel_is_refused(tmp_path):
    file = filled(tmp_path / "s.sqlite", outcome(0))
    forge(file, "UPDATE channels SET version = 2 WHERE name = 'loss'")
    with Store.read(file) as s, pytest.raises(InvalidInput, match=r"\(channel loss, version 2, this one knows 1\)"):
        s.signals(GAME)


def test_a_model_with_other_channels_is_kept_as_failed(tmp_path):
    first, other, longer = outcome(0), outcome(1), outcome(2)
    other.channels["margin"] = np.zeros(3)
    longer.channels["reference"] = np.zeros(8)
    with Store.create(tmp_path / "s.sqlite", {"plan": 1}) as s:
        assert s.add(first) is first
        for bad, given in ((other, "loss [2, 2], reference [7], margin [3]"), (longer, "loss [2, 2], reference [8]")):
            kept = s.add(bad)
            assert kept.channels is None
            assert f"the same channels, here loss [2, 2], reference [7], but this one gave {given}." in kept.error
        assert s.indices("failed").tolist() == [1, 2]
        assert s.signals(GAME).models.tolist() == [0]
