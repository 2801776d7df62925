"""The store: what is written is read back, damage and full disks become sentences, readers write nothing."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from stores import edit, forge, make_earlier

import epsgauge as eg
from epsgauge.auditing.audit import audit_run
from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.games.ranking import Ranking
from epsgauge.games.settings import GameSettings
from epsgauge.games.signals import Outcome
from epsgauge.runner import lock, looks, store
from epsgauge.runner.executors import InProcess
from epsgauge.runner.journal import journal_for
from epsgauge.runner.lock import hold, holder
from epsgauge.runner.plan import Plan
from epsgauge.runner.run import run
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
    assert [f.name for f in tmp_path.iterdir()] == ["s.sqlite"]


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
        (forged("UPDATE meta SET value = '{'"), "its entry plan is not JSON"),
        (forged("DELETE FROM meta"), "it holds no plan"),
        (sql("UPDATE models SET bits = x'0001' WHERE idx = 7"), "row 7 of models is not what was written"),
        (sql("UPDATE models SET idx = 99 WHERE idx = 7"), "row 99 of models is not what was written"),
        (sql("UPDATE models SET state = 'failed' WHERE idx = 7"), "has 19 rows, which are not the 20"),
        (sql("DELETE FROM models WHERE idx = 7"), "models has 19 rows, which are not the 20 that were written"),
        (
            sql(
                "INSERT INTO models SELECT 50, state, seed, seconds, finished, error, bits, pairs, signals, seal "
                "FROM models WHERE idx = 1"
            ),
            "row 50 of models is not what was written",
        ),
        (sql("UPDATE sums SET n = 21 WHERE part = 'models done'"), "are not the 21 that were written"),
        (sql("UPDATE sums SET total = zeroblob(16) WHERE part = 'models done'"), "are not the 20 that were written"),
        (sql("DELETE FROM sums WHERE part = 'models done'"), "its sums cannot be read"),
        (sql("UPDATE sums SET total = 'x'"), "its sums cannot be read"),
        (sql("DELETE FROM meta WHERE key = 'extended_after_look'"), "meta has 1 rows, which are not the 2"),
        (sql("UPDATE meta SET value = '2' WHERE key = 'plan'"), "row 'plan' of meta is not what was written"),
        (sql("UPDATE channels SET name = 'margin' WHERE name = 'loss'"), "row 0 of channels is not what was written"),
        (sql("DELETE FROM arrays"), "arrays has 0 rows, which are not the 1"),
        (sql("PRAGMA user_version = 4"), "the table sums was not made by epsgauge"),
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


def test_a_newer_schema_is_refused(tmp_path):
    file = filled(tmp_path / "s.sqlite")
    sql("PRAGMA user_version = 6")(file)
    with pytest.raises(InvalidInput, match=r"newer epsgauge \(schema 6, this one knows 5\). Upgrade epsgauge."):
        Store.read(file)


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


@pytest.mark.parametrize("journal", ["WAL", "DELETE"])
def test_looks_are_kept_in_the_store_while_a_run_writes(tmp_path, monkeypatch, journal):
    monkeypatch.setattr(store, "journal_for", lambda folder: journal)
    file = tmp_path / "s.sqlite"
    with Store.create(file, {"plan": 1}) as s:
        s.add(outcome(0))
        assert Store.log_look(file, LOOK)
        s.add(outcome(1))
        assert Store.log_look(file, {**LOOK, "kind": "live", "as_planned": False, "own": [{"name": "mine:It"}]})
    with Store.read(file) as s:
        assert [{key: value for key, value in look.items() if key != "time"} for look in s.looks()] == [
            LOOK,
            {**LOOK, "kind": "live", "as_planned": False, "own": [{"name": "mine:It"}]},
        ]
        assert s.indices("done").tolist() == [0, 1]
    assert [f.name for f in tmp_path.iterdir()] == ["s.sqlite"]


def test_a_look_that_cannot_be_logged_is_no_error(tmp_path, monkeypatch):
    file = filled(tmp_path / "s.sqlite", outcome(0))
    assert not Store.log_look(tmp_path / "missing" / "s.sqlite", LOOK)
    monkeypatch.setattr(store, "_LOOK_SECONDS", 0.01)  # another one holds the store and does not let go
    with closing(sqlite3.connect(file, isolation_level=None)) as busy:
        busy.execute("BEGIN EXCLUSIVE")
        assert not Store.log_look(file, LOOK)
    with Store.read(file) as s:
        assert s.looks() == []


def test_a_declaration_is_added_and_never_replaced(tmp_path):
    file = tmp_path / "s.sqlite"
    first, second, third = ({"audit": {"delta": delta}, "n_models": 9} for delta in (1e-5, 1e-6, 1e-7))
    with Store.create(file, {"plan": 1}, first) as s:
        s.put({}, first)  # the same again
        s.add(outcome(0))
        s.put({}, second)
        assert Store.log_look(file, LOOK)
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
from epsgauge.runner.view import Run, in_force

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


def test_only_running_needs_locks(earlier, tmp_path):
    """Scores and runs are audited where there is no fcntl, as on Windows."""
    table = tmp_path / "scores.csv"
    eg.Scores.from_in_out([1.0, 2.0, 0.2], [0.0, 0.1, 3.0], adjacency="substitute").write(table)
    words = [sys.executable, "-c", WITHOUT_LOCKS, str(table), str(earlier.parent), str(tmp_path / "new")]
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
    row = "INSERT INTO models VALUES ({}, 'done', '0', 0.2, {}, NULL, x'', x'', NULL, x'')"
    forge(file, *(row.format(10 * g + i, 100.0 + 2 * g + i / 1000) for g in range(3) for i in range(10)))
    with Store.read(file) as s:
        median, rate = s.timing()
    assert median == 0.2
    assert rate == pytest.approx(20 / 4, rel=0.01)


# stores of schema 1, which had a column for each kind of loss

EARLIER = Path(__file__).parent / "data" / "schema1" / store.FILE  # four models done, the fifth failed, six planned
EARLIER_GAME = {"train_size": 20, "pairs_per_model": 2, "reference_size": 5}


def columns_of(file):
    """What schema 1 holds of its models that are done, by its own columns."""
    connection = sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)
    rows = connection.execute("SELECT loss0, loss1, reference FROM models WHERE state = 'done' ORDER BY idx").fetchall()
    connection.close()
    return [np.array([np.frombuffer(blob, "<f8") for blob in column]) for column in zip(*rows, strict=True)]


@pytest.fixture
def earlier(tmp_path):
    return Path(shutil.copytree(EARLIER.parent, tmp_path / "run")) / store.FILE


def test_a_store_of_schema_1_is_read_as_it_is(earlier):
    before = earlier.read_bytes()
    loss0, loss1, reference = columns_of(earlier)
    with Store.read(earlier) as s:
        signals = s.signals(GameSettings(**EARLIER_GAME))
        assert signals.models.tolist() == s.indices("done").tolist() == [0, 1, 2, 3]
        assert [row[0] for row in s.failures()] == [4]
        assert s.timing()[0] == 0.25
    assert list(signals.channels) == ["loss", "reference"]
    assert signals["loss"].tobytes() == np.stack([loss0, loss1], axis=-1).tobytes()
    assert signals["reference"].tobytes() == reference.tobytes()
    assert earlier.read_bytes() == before
    assert [f.name for f in earlier.parent.iterdir()] == [store.FILE]


def test_a_store_of_schema_1_is_read_where_nobody_can_write(earlier, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with Store.read(earlier) as s:
        assert s.signals(GameSettings(**EARLIER_GAME))["reference"].tobytes() == columns_of(earlier)[2].tobytes()


def test_a_run_of_schema_1_goes_on(earlier, tmp_path):
    planned = Plan(
        name="earlier", seed=3, n_models=6, data={"use": "zeros", "size": 60}, trainer={"use": "laplace", "eps": 1.0},
        game=EARLIER_GAME,
    )  # fmt: skip
    old = Run.open(earlier.parent).signals()
    done = run(planned, out=earlier.parent, executor=InProcess(), retry_failed=True)
    fresh = run(planned, out=tmp_path / "fresh", executor=InProcess()).signals()
    signals = done.signals()
    assert done.complete
    for name in ("loss", "reference"):
        assert signals[signals.models < 4][name].tobytes() == old[name].tobytes()
        assert signals[signals.models >= 4][name].tobytes() == fresh[fresh.models >= 4][name].tobytes()
    assert done.provenance["fingerprint"] == Run.open(tmp_path / "fresh").provenance["fingerprint"]


def test_a_store_that_cannot_be_brought_to_this_schema_stays_as_it_is(earlier):
    before = columns_of(earlier)
    sql("UPDATE models SET loss1 = substr(loss1, 9) WHERE idx = 2")(earlier)
    for opened in (Store.write, lambda file: Store.read(file).signals(GameSettings(**EARLIER_GAME))):
        with pytest.raises(InvalidInput, match="the signals of a model have the wrong length"):
            opened(earlier)
    connection = sqlite3.connect(earlier)
    assert connection.execute("PRAGMA user_version").fetchone() == (1,)
    assert connection.execute("SELECT loss0 FROM models WHERE idx = 3").fetchone() == (before[0][3].tobytes(),)
    connection.close()


KILLED_AT_A_STEP = """
import os, signal, sqlite3, sys
from pathlib import Path
from epsgauge.runner.store import Store

step, statements = int(sys.argv[2]), 0

def trace(statement):
    global statements
    statements += statement.startswith(("ALTER", "CREATE", "INSERT", "DROP", "PRAGMA user_version =", "COMMIT"))
    if statements == step:
        os.kill(os.getpid(), signal.SIGKILL)

connect = sqlite3.connect
def traced(*args, **kw):
    connection = connect(*args, **kw)
    connection.set_trace_callback(trace)
    return connection
sqlite3.connect = traced
Store.write(Path(sys.argv[1])).close()
print(statements)
"""


def test_a_kill_during_the_change_of_schema_loses_nothing(tmp_path):
    loss0, loss1, _ = columns_of(EARLIER)
    for step in (1, 2, 5, 14, 15, 30, 50, 500):
        file = Path(shutil.copytree(EARLIER.parent, tmp_path / str(step))) / store.FILE
        done = subprocess.run([sys.executable, "-c", KILLED_AT_A_STEP, str(file), str(step)], capture_output=True)
        with Store.read(file) as s:
            signals = s.signals(GameSettings(**EARLIER_GAME))
        assert signals["loss"].tobytes() == np.stack([loss0, loss1], axis=-1).tobytes(), step
        assert (done.returncode == 0) == (step == 500)
    assert int(done.stdout) > 50  # it was killed before some of so many statements


def test_a_run_of_schema_2_is_read_and_goes_on(tmp_path):
    """Its one declaration was an entry, and its looks were in a file."""
    file = tmp_path / store.FILE
    audit = {"delta": 1e-6}
    with Store.create(file, {"plan": 1, "declared": audit, "declared_code": {"mine:It": "12"}}) as s:
        s.add(outcome(0))
    make_earlier(file, 2)
    (tmp_path / looks.FILE).write_text(json.dumps({"time": "2026-01-01", **LOOK}))
    for opened in (Store.read, Store.write, Store.read):
        with opened(file) as s:
            (declared,) = s.declarations()
            assert (declared.content, declared.time) == ({"audit": audit, "code": {"mine:It": "12"}}, None)
            assert [look["kind"] for look in s.looks()] == ["audit"]
            assert s.signals(GAME).models.tolist() == [0]


def test_a_run_of_schema_3_is_read_and_goes_on(tmp_path):
    """It had no models set apart, and none are trained for it later."""
    planned = Plan(name="a", n_models=6, data="zeros", trainer={"use": "laplace", "eps": 1.0}, game=EARLIER_GAME)
    fresh = run(planned, out=tmp_path / "a", executor=InProcess())
    make_earlier(fresh.path / store.FILE, 3)
    edit(fresh.path / store.FILE, "DELETE FROM meta WHERE key = 'rehearses'")
    assert audit_run(Run.open(fresh.path)).verdict.control is None
    grown = run(planned.changed(n_models=8), out=fresh.path, executor=InProcess())
    assert grown.n_done == 8
    with Store.read(grown.path / store.FILE) as s:
        assert s.rehearsed() == {}


def test_a_run_of_schema_4_is_read_as_it_is_and_gets_seals_when_it_goes_on(tmp_path):
    planned = Plan(name="a", n_models=6, data="zeros", trainer={"use": "laplace", "eps": 1.0}, game=EARLIER_GAME)
    fresh = run(planned, out=tmp_path / "a", executor=InProcess())
    before = fresh.signals()
    make_earlier(fresh.path / store.FILE, 4)
    assert Run.open(fresh.path).signals()["loss"].tobytes() == before["loss"].tobytes()
    grown = run(planned.changed(n_models=8), out=fresh.path, executor=InProcess())
    assert grown.signals()["loss"][:6].tobytes() == before["loss"].tobytes()
    assert len(grown.looks) == 3
    edit(fresh.path / store.FILE, "UPDATE models SET bits = x'0101'")
    with pytest.raises(InvalidInput, match="row 0 of models is not what was written"):
        Run.open(fresh.path).signals()


def test_looks_at_an_earlier_store_are_kept_inside_it_and_go_on_with_it(earlier):
    """One that an earlier version logged beside the store, a torn one, and one of this version."""
    torn = b'{"time": "2026-01-0'
    (earlier.parent / looks.FILE).write_bytes(json.dumps({"time": "2026-01-01", **LOOK}).encode() + b"\n" + torn)
    before = Run.open(earlier.parent)
    assert before.declaration.sentence.startswith("Declared before results were seen; the store does not say when")
    assert before.log_look("export")
    with closing(sqlite3.connect(earlier)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)  # an earlier version may go on with it
    assert [look["kind"] for look in before.looks] == ["audit", "export"]
    Store.write(earlier).close()
    (earlier.parent / looks.FILE).unlink()
    after = Run.open(earlier.parent)
    assert sorted(look["kind"] for look in after.looks) == ["audit", "export"]
    assert (after.declared, after.declaration) == (before.declared, before.declaration)


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
