"""`epsgauge verify`, and run directories that come from somewhere else: changed, hostile, or of a later version."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import stat
from contextlib import closing

import pytest
from command_line import ask, told
from stores import copied, edit, forge
from tiny_runs import plan, plan_text, played

import epsgauge as eg
from epsgauge.errors import InvalidInput
from epsgauge.games.rehearsal import STRIDE
from epsgauge.runner import lock, looks
from epsgauge.runner.executors import InProcess
from epsgauge.runner.store import FILE
from faults.count import within
from faults.stores import a_run


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    return a_run(tmp_path_factory.mktemp("a") / "run")


@pytest.fixture
def run(original, tmp_path):
    return copied(original, tmp_path / "run")


def test_a_run_as_it_was_written_is_intact(run):
    found = eg.verify(run)
    assert found.intact
    assert [check.name for check in found.checks] == ["file", "seals", "looks", "plan", "models", "set apart"]
    assert all(" 0 " not in check.sentence for check in found.checks)
    out = ask("verify", run)
    assert "of all 40 models" in " ".join(out.split())
    assert "intact" in out
    assert json.loads(ask("verify", run, "--json"))["intact"] is True
    assert len(eg.Run.open(run).looks) == 2  # it is no look


BIT = "CASE bits WHEN x'00' THEN x'01' ELSE x'00' END"
FORGED = {
    "a bit": (f"UPDATE models SET bits = {BIT} WHERE idx = 5", "Bits of model 5: not what the plan's seed gives."),
    "a pair": ("UPDATE models SET pairs = zeroblob(16) WHERE idx = 5", "Pairs of model 5: not what"),
    "a seed": ("UPDATE models SET seed = seed - 1 WHERE idx = 5", "Seed of model 5: not what the plan's seed gives."),
    "a rehearsal": (
        "UPDATE rehearsals SET seed = 7 WHERE idx = 0",
        "Seed of model 0: not what",
    ),
    "the bits of a rehearsal": (
        f"UPDATE rehearsals SET bits = {BIT} WHERE idx = 1",
        "Bits of model 1: not what",
    ),
    "the canary of a rehearsal": (
        f"UPDATE rehearsals SET pairs = (SELECT pairs FROM rehearsals WHERE idx = 0) WHERE idx = {4 * STRIDE}",
        f"Pairs of model {4 * STRIDE}: not what the plan's seed gives.",
    ),
    "a canary that is none": (
        f"UPDATE rehearsals SET idx = {200 * STRIDE} WHERE idx = 0",
        f"There is a model {200 * STRIDE} set apart, which the plan does not have.",
    ),
    "the signals of the canary that was taken": (
        "UPDATE rehearsals SET signals = (SELECT signals FROM rehearsals WHERE state = 'done' LIMIT 1)"
        f" WHERE idx / {2 * STRIDE} = {{taken}} AND state = 'done'",
        "Model ",  # another canary would have been tried further, and has too few models
    ),
    "which canary was taken": (
        """UPDATE meta SET value = replace(value, '"number": {taken}', '"number": {other}') WHERE key = 'canary'""",
        "The canary is ",
    ),
    "how well canaries did": (
        "UPDATE meta SET value = json_set(value, '$.best.\"{name}\"', 99.0) WHERE key = 'canary'",
        "How well canaries did is not what the signals of the models set apart give.",
    ),
    "by how many models it was chosen": (
        "UPDATE meta SET value = json_set(value, '$.choice.n_models', 4000) WHERE key = 'canary'",
        "Model ",
    ),
    "one more": ("UPDATE models SET idx = 40 WHERE idx = 5", "There is a model 40, which the plan does not have."),
    "the plan": (
        """UPDATE meta SET value = replace(value, '"seed": 0', '"seed": 1') WHERE key = 'plan'""",
        "The plan is not the one that the run began with",
    ),
    "what was declared": (
        "UPDATE declarations SET digest = 'x' WHERE id = 1",
        "What its plan declared is not what its digest is of.",
    ),
}


@pytest.mark.parametrize("what", FORGED)
def test_what_the_seed_decides_cannot_be_forged_row_by_row(run, what):
    change, words = FORGED[what]
    canary = eg.Run.open(run).canary
    taken = {"{taken}": canary["number"], "{other}": 1 - bool(canary["number"]), "{name}": canary["name"]}
    for key, value in taken.items():
        change = change.replace(key, str(value))
    forge(run / FILE, change)
    found = eg.verify(run)
    assert not found.intact
    assert any(not check.intact and check.sentence.startswith(words) for check in found.checks)
    assert "damaged. Restore it from a copy" in ask("verify", run, code=1)


def test_an_edit_is_damage_to_audit_and_verify_alike(run):
    edit(run / FILE, "UPDATE models SET bits = x'01' WHERE idx < 30")
    assert "is not what was written). Restore it from a copy" in told("audit", run).stderr
    out = " ".join(ask("verify", run, code=1).split())
    assert "of models is not what was written" in out
    assert json.loads(ask("verify", run, "--json", code=1))["intact"] is False


def test_a_file_that_cannot_be_opened_is_not_intact_and_no_run_is_an_error(run, tmp_path):
    (run / FILE).write_bytes(b"something else" * 1000)
    assert "File is not a database." in " ".join(ask("verify", run, code=1).split())
    assert told("verify", tmp_path / "none").returncode == 2


# models that are trained again


def test_a_forged_signal_does_not_survive_a_replay(tmp_path):
    planned = plan(n_models=6, audit={"fit_models": 2})
    folder = played(planned, tmp_path / "run").path
    found = eg.verify(folder, plan=planned, replay=8, executor=InProcess())
    assert found.intact
    apart = ", ".join(str(STRIDE + i) for i in range(8))
    assert found.checks[-1].sentence == (
        f"Trained again, models 0, 1, 2, 3, 4, 5 and, of those set apart, {apart} come out the same, bit for bit."
    )
    forge(folder / FILE, "UPDATE models SET signals = zeroblob(length(signals)) WHERE idx = 3")
    assert eg.verify(folder).intact  # seals and seeds fit
    found = eg.verify(folder, plan=planned, replay=6, executor=InProcess())
    assert re.match(
        r"Model 3 was trained again and came out different, by up to .* 1 of 12 models differ",
        found.checks[-1].sentence,
    )
    assert not found.intact


def test_a_forged_control_does_not_survive_a_replay(tmp_path):
    """Which canary is taken does not depend on all models without noise."""
    planned = plan(n_models=6, audit={"fit_models": 2})
    folder = played(planned, tmp_path / "run").path
    forge(folder / FILE, f"UPDATE rehearsals SET signals = zeroblob(length(signals)) WHERE idx = {STRIDE + 7}")
    assert eg.verify(folder).intact
    found = eg.verify(folder, plan=planned, replay=8, executor=InProcess())
    assert found.checks[-1].sentence.startswith(f"Model {STRIDE + 7} set apart was trained again and came out")


def test_a_replay_with_another_plan_is_refused(tmp_path):
    planned = plan(n_models=6, audit={"fit_models": 2})
    folder = played(planned, tmp_path / "run").path
    with pytest.raises(InvalidInput, match="holds another plan"):
        eg.verify(folder, plan=planned.changed(seed=5), executor=InProcess())
    with pytest.raises(InvalidInput, match="replay must be a whole number, 1 or more, but got 0"):
        eg.verify(folder, plan=planned, replay=0)


def test_a_replay_by_the_command_line(tmp_path):
    (tmp_path / "plan.toml").write_text(plan_text(n_models=70))
    ask("run", tmp_path / "plan.toml", "-o", tmp_path / "run", "--blind")
    out = " ".join(ask("verify", tmp_path / "run", "--plan", tmp_path / "plan.toml", "--replay", 2).split())
    assert "come out the same, bit for bit" in out
    assert "Models that were not trained again could still be forged" in out


# what somebody else may have put into a run directory


@pytest.mark.parametrize("statement", ["ANALYZE", "VACUUM", "REINDEX", "PRAGMA optimize", "PRAGMA journal_mode = WAL"])
def test_what_sqlite_does_by_itself_is_no_damage(run, statement):
    before = eg.Run.open(run).signals()["loss"].tobytes()
    with closing(sqlite3.connect(run / FILE, isolation_level=None)) as connection:
        connection.execute(statement)
    assert eg.verify(run).intact
    assert eg.Run.open(run).signals()["loss"].tobytes() == before


ENDLESS = (
    "CREATE VIEW meta AS WITH RECURSIVE more(key) AS (SELECT 'plan' UNION ALL SELECT key FROM more) "
    "SELECT key, '{}' AS value, x'' AS seal FROM more"
)


def test_a_view_that_never_ends_is_refused(run):
    edit(run / FILE, "DROP TABLE meta", ENDLESS)
    for command in ("status", "audit", "export"):
        said = told(command, run, *(["-o", run / "a.csv"] if command == "export" else []))
        assert said.returncode == 2
        assert "the view meta was not made by epsgauge" in said.stderr


@pytest.mark.parametrize("unsealed", [False, True])
def test_columns_that_are_computed_are_refused(run, unsealed):
    edit(
        run / FILE, "DROP TABLE looks", "CREATE TABLE looks (id INTEGER PRIMARY KEY, time TEXT AS (zeroblob(1000000)))"
    )
    with pytest.raises(InvalidInput, match="the table looks was not made by epsgauge"):
        eg.Run.open(run, unsealed=unsealed)


def test_more_rows_than_a_file_can_hold_are_damage(run, monkeypatch):
    """Pages of a b-tree that lead back to themselves have no end."""
    monkeypatch.setattr("epsgauge.runner.sealed._SMALLEST", 10**9)
    rows = ", ".join(f"('{i}', x'', '1')" for i in range(2000))
    edit(run / FILE, f"INSERT INTO meta VALUES {rows}")
    with pytest.raises(InvalidInput, match="it has more rows than there is room for"):
        eg.Run.open(run, unsealed=True)


def test_a_query_ends_at_its_deadline(run, monkeypatch):
    monkeypatch.setattr("epsgauge.runner.sealed._SECONDS", -1.0)
    monkeypatch.setattr("epsgauge.runner.sealed._STEPS", 1)
    with pytest.raises(InvalidInput, match="reading it takes too long"):
        eg.Run.open(run)


@pytest.mark.parametrize("kind", ["pipe", "link", "folder"])
@pytest.mark.parametrize(
    ("name", "use"),
    [
        (lock.FILE, lambda run: lock.hold(run).__enter__()),
        (looks.FILE, lambda run: eg.Run.open(run).looks),
        (f"{FILE}-wal", eg.Run.open),
        (f"{FILE}-journal", eg.Run.open),
    ],
)
def test_nothing_waits_for_a_pipe_or_goes_through_a_link(run, tmp_path, name, use, kind):
    victim = tmp_path / "victim"
    victim.write_bytes(b"of somebody else")
    (run / name).unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(run / name)
    elif kind == "link":
        (run / name).symlink_to(victim)
    else:
        (run / name).mkdir()
    with within(30):
        words = "must be a plain file, not a link, pipe or folder."
        if (name, kind) == (looks.FILE, "link"):  # which is read as the store is, and never written
            words = "is damaged"
            assert not eg.Run.open(run).log_look("audit")
        with pytest.raises(InvalidInput, match=f"{name} {words}"):
            use(run)
        assert lock.holder(run) is None
    assert victim.read_bytes() == b"of somebody else"


def test_a_store_that_is_a_link_is_read_and_never_written(run, tmp_path):
    """As tools that keep data in a cache have it."""
    linked = tmp_path / "linked"
    linked.mkdir()
    before = (run / FILE).read_bytes()
    for name in (FILE, looks.FILE):
        (linked / name).symlink_to(run / name)
    found = eg.audit(eg.Run.open(linked))
    assert any("could not be logged" in warning for warning in found.warnings)
    assert (run / FILE).read_bytes() == before


def test_signals_are_for_the_eyes_of_their_owner(original):
    assert stat.S_IMODE((original / FILE).stat().st_mode) == 0o600


def test_a_plan_with_a_key_of_a_later_version_is_not_damage(run):
    forge(
        run / FILE,
        """UPDATE meta SET value = replace(value, '"seed": 0', '"seed": 0, "later": 1') WHERE key = 'plan'""",
    )
    with pytest.raises(
        InvalidInput, match=r"was written by a newer epsgauge \(version 0.1.0; its plan cannot be read: later"
    ):
        eg.Run.open(run)
