"""The log of looks: readers write nothing else, a killed one locks nobody out, and what was logged stays logged."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
from contextlib import closing

import pytest
from tiny_runs import plan, played

import epsgauge as eg
from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.runner import lock, looks
from epsgauge.runner.looks import begin_log, log_look, read_log
from epsgauge.runner.store import FILE, Store
from epsgauge.runner.view import Run

LOOK = {"kind": "audit", "n_done": 3, "n_models": 9, "as_planned": False}
SIX = {"n_models": 6, "audit": {"rule": "given", "threshold": 0.0}}


def made(folder, *kinds):
    noted = begin_log(folder, "a run")
    for kind in kinds:
        assert log_look(folder, {**LOOK, "kind": kind})
    return noted


def kinds(folder, noted):
    return [look["kind"] for look in read_log(folder, "a run", noted).looks]


def test_what_is_logged_is_read(tmp_path):
    noted = begin_log(tmp_path, "a run")
    given = [LOOK, {**LOOK, "kind": "live", "own": [{"name": "mine:It", "é": None}]}]
    for look in given:
        assert log_look(tmp_path, look)
    log = read_log(tmp_path, "a run", noted)
    assert [{key: value for key, value in look.items() if key != "time"} for look in log.looks] == given
    assert (noted, log.noted) == ((0, log.seals[0]), (2, log.seals[2]))
    noted = begin_log(tmp_path, "b", log.looks)
    assert noted[0] == 2
    assert read_log(tmp_path, "b", noted).looks == log.looks


@pytest.mark.parametrize("end", [b'{"time": "2026-01-0', b"\n", b'\n{"time"', b"{", b'{"a": "\xc3'])
def test_part_of_a_line_is_no_look_and_locks_nobody_out(tmp_path, end):
    noted = made(tmp_path, "audit")
    with (tmp_path / looks.FILE).open("ab") as file:
        file.write(end)
    assert kinds(tmp_path, noted) == ["audit"]
    assert log_look(tmp_path, {**LOOK, "kind": "view"})
    assert log_look(tmp_path, {**LOOK, "kind": "export"})
    assert kinds(tmp_path, noted) == ["audit", "view", "export"]


def test_a_line_without_its_end_is_a_look(tmp_path):
    noted, log = made(tmp_path, "audit"), tmp_path / looks.FILE
    os.truncate(log, log.stat().st_size - 1)
    assert kinds(tmp_path, noted) == ["audit"]
    assert log_look(tmp_path, {**LOOK, "kind": "view"})
    assert kinds(tmp_path, noted) == ["audit", "view"]


def test_every_byte_before_the_last_look_is_sealed(tmp_path):
    """One that is turned in any whole line, one that is left out, and lines that change places."""
    noted, log = made(tmp_path, "audit", "view", "export"), tmp_path / looks.FILE
    raw = log.read_bytes()
    spaces = {i for i in range(raw.rindex(b"\n", 0, -1), len(raw)) if raw[i] == 32}  # of the last line
    for at in range(len(raw) - 1):
        for changed in (raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :], raw[:at] + raw[at + 1 :]):
            log.write_bytes(changed)
            if at in spaces and len(changed) < len(raw):
                assert kinds(tmp_path, noted) == ["audit", "view", "export"]
                continue
            with pytest.raises(InvalidInput, match="is damaged"):
                read_log(tmp_path, "a run", noted)
    first, *lines = raw.splitlines(keepends=True)
    for kept in (
        [],
        [first, lines[0], lines[2]],
        [first, lines[1], lines[0], lines[2]],
        [first, *lines, lines[2]],
        lines,
    ):
        log.write_bytes(b"".join(kept))
        with pytest.raises(InvalidInput, match="is damaged"):
            read_log(tmp_path, "a run", noted)


def test_a_log_is_that_of_its_run_and_whole_up_to_what_was_noted(tmp_path):
    noted, log = made(tmp_path, "audit"), tmp_path / looks.FILE
    with pytest.raises(InvalidInput, match=r"looks.jsonl is damaged \(line 1 is not what was written\). Restore it"):
        read_log(tmp_path, "another run", noted)
    noted, before = read_log(tmp_path, "a run", noted).noted, log.read_bytes()
    assert log_look(tmp_path, LOOK)
    assert len(read_log(tmp_path, "a run", noted).looks) == 2
    log.write_bytes(before.splitlines(keepends=True)[0])
    with pytest.raises(InvalidInput, match="looks logged before the last run are missing"):
        read_log(tmp_path, "a run", noted)
    log.unlink()
    with pytest.raises(InvalidInput, match=r"looks.jsonl is damaged \(the file is missing\)"):
        read_log(tmp_path, "a run", noted)


def test_a_look_that_cannot_be_logged_is_no_error(tmp_path, monkeypatch):
    assert not log_look(tmp_path, LOOK)  # there is no log
    noted = made(tmp_path)
    monkeypatch.setattr(looks, "_SECONDS", 0.01)  # another one holds the log and does not let go
    with (tmp_path / looks.FILE).open("rb") as held:
        lock.file_locks().flock(held, lock.file_locks().LOCK_EX)
        assert not log_look(tmp_path, LOOK)
    assert kinds(tmp_path, noted) == []
    monkeypatch.setattr(looks, "_MOST", 10)
    assert not log_look(tmp_path, LOOK)
    with pytest.raises(InvalidInput, match="it is too long"):
        read_log(tmp_path, "a run", noted)


def test_a_log_that_cannot_be_begun_is_one_sentence(tmp_path):
    with pytest.raises(EpsgaugeError, match=r"looks.jsonl cannot be written: No such file or directory. Make room"):
        begin_log(tmp_path / "none", "a run")


WRITES = """
import sys
from pathlib import Path
from epsgauge.runner.looks import log_look
for i in range(20):
    assert log_look(Path(sys.argv[1]), {"kind": sys.argv[2], "n_done": i, "n_models": 9})
"""


def test_readers_at_once_lose_no_look(tmp_path):
    noted = made(tmp_path)
    writers = [subprocess.Popen([sys.executable, "-c", WRITES, str(tmp_path), name]) for name in "abc"]
    assert [writer.wait() for writer in writers] == [0, 0, 0]
    found = read_log(tmp_path, "a run", noted).looks
    for name in "abc":
        assert [look["n_done"] for look in found if look["kind"] == name] == list(range(20))
    assert len(found) == 60


KILLED = """
import os, signal, sys
from pathlib import Path
from epsgauge.runner import looks

step, calls = int(sys.argv[2]), 0

def trace(frame, event, argument):
    global calls
    if event in ("line", "c_call") and frame.f_code.co_filename == looks.__file__:
        calls += 1
        if calls == step:
            os.kill(os.getpid(), signal.SIGKILL)
    return trace

sys.settrace(trace)
looks.log_look(Path(sys.argv[1]), {"kind": "audit", "n_done": 1, "n_models": 9})
"""


@pytest.mark.parametrize("step", [1, 4, 8, 12, 16, 10_000])
def test_a_reader_killed_at_any_line_locks_nobody_out(tmp_path, step):
    noted = made(tmp_path, "view")
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), str(step)])
    assert done.returncode == (0 if step == 10_000 else -signal.SIGKILL)
    assert log_look(tmp_path, {**LOOK, "kind": "export"})
    assert kinds(tmp_path, noted) in (["view", "export"], ["view", "audit", "export"])


# in a run directory


@pytest.fixture
def run(tmp_path):
    return played(plan(**SIX), tmp_path / "run")


def test_readers_leave_the_store_as_it_is(run):
    before = (run.path / FILE).read_bytes()
    eg.audit(run)
    run.signals()
    run.status()
    assert eg.verify(run.path).intact
    assert (run.path / FILE).read_bytes() == before
    assert [look["kind"] for look in Run.open(run.path).looks] == ["audit", "signals"]
    assert stat.S_IMODE((run.path / looks.FILE).stat().st_mode) & 0o600 == 0o600


def test_looks_are_logged_while_a_run_writes(run):
    with closing(Store.write(run.path / FILE)) as store:
        store.put({"notes": ["a"]})
        assert Run.open(run.path).log_look("view")
        store.put({"notes": ["b"]})
        assert [look["kind"] for look in store.looks()] == ["view"]
    assert [look["kind"] for look in Run.open(run.path).looks] == ["view"]


def test_looks_before_the_run_went_on_cannot_be_removed(run):
    log = run.path / looks.FILE
    none = log.read_bytes()
    eg.audit(run)
    played(plan(**SIX), run.path)
    one = log.read_bytes()
    eg.audit(run)
    assert len(Run.open(run.path).looks) == 2
    log.write_bytes(one)  # what came after it can be: nothing else has heard of it
    assert len(Run.open(run.path).looks) == 1
    log.write_bytes(none)
    for read in (lambda: eg.audit(Run.open(run.path)), lambda: played(plan(**SIX), run.path)):
        with pytest.raises(InvalidInput, match="looks logged before the last run are missing"):
            read()
    assert [check.name for check in eg.verify(run.path).checks if not check.intact] == ["looks"]


def test_looks_that_come_while_a_run_goes_on_are_noted_at_its_end(run):
    with Store.write(run.path / FILE):
        assert Run.open(run.path).log_look("view")
    (run.path / looks.FILE).write_bytes((run.path / looks.FILE).read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(InvalidInput, match="looks logged before the last run are missing"):
        assert Run.open(run.path).looks


def test_the_log_of_another_run_does_not_fit(run, tmp_path):
    """Not even that of a run with the same plan."""
    other = played(plan(**SIX), tmp_path / "other")
    shutil.copy(other.path / looks.FILE, run.path / looks.FILE)
    with pytest.raises(InvalidInput, match="line 1 is not what was written"):
        eg.audit(run)


def test_a_killed_beginning_leaves_a_log_that_the_next_run_replaces(tmp_path):
    begin_log(tmp_path, "that was killed")
    assert played(plan(**SIX), tmp_path).looks == []
