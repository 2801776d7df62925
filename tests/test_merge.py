"""`--models A:B` and `merge`: parts of a plan become the run that one machine would have made."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import killing
import pytest
from command_line import ask, refused
from stores import forge
from tiny_runs import plan, plan_text, small_plan

from epsgauge.auditing.audit import audit
from epsgauge.errors import InvalidInput
from epsgauge.runner.executors import InProcess
from epsgauge.runner.merge import merge
from epsgauge.runner.run import run
from epsgauge.runner.store import FILE
from epsgauge.runner.verify import verify
from epsgauge.runner.view import Run


def part(a_plan, out, first, end):
    return run(a_plan, out=out, executor=InProcess(), models=range(first, end))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Two halves of a run and the whole."""
    folder = tmp_path_factory.mktemp("made")
    a_plan = small_plan()
    part(a_plan, folder / "a", 0, 25)
    part(a_plan, folder / "b", 25, 40)
    run(a_plan, out=folder / "whole", executor=InProcess())
    return folder


@pytest.fixture
def parts(made, tmp_path):
    return [Path(shutil.copytree(made / name, tmp_path / name)) for name in ("a", "b")]


def table(folder, name, columns):
    connection = sqlite3.connect(folder / FILE)
    rows = connection.execute(f"SELECT {columns} FROM {name} ORDER BY 1").fetchall()
    connection.close()
    return rows


def test_the_merged_run_is_the_whole_one(made, parts, tmp_path):
    merged = merge(parts, out=tmp_path / "c")
    assert (merged.complete, merged.unplanned, merged.notes) == (True, None, [])
    assert killing.rows(tmp_path / "c") == killing.rows(made / "whole")
    for name, columns in {
        "arrays": "name, dtype, shape, data",
        "channels": "place, name, version, dtype, shape",
        "rehearsals": "idx, state, seed, error, bits, pairs, signals",
    }.items():
        assert table(tmp_path / "c", name, columns) == table(made / "whole", name, columns)
    assert [d.digest for d in merged.declarations] == [d.digest for d in Run.open(made / "whole").declarations]
    assert len(merged.provenance["sessions"]) == 1  # and the one that it begins with
    found = verify(tmp_path / "c", plan=small_plan(), executor=InProcess())
    assert found.intact, found
    both = [audit(Run.open(tmp_path / "c")), audit(Run.open(made / "whole"))]
    assert both[0].to_json()["verdict"] == both[1].to_json()["verdict"]
    assert (tmp_path / "c" / FILE).stat().st_mode & 0o777 == 0o600


def test_a_part_is_no_finished_run_and_the_whole_can_go_on(parts, tmp_path):
    assert "not finished" in Run.open(parts[0]).unplanned
    part(small_plan(), tmp_path / "d", 30, 35)
    merged = merge([parts[0], tmp_path / "d"], out=tmp_path / "c")
    assert (merged.n_done, merged.complete) == (30, False)
    assert run(small_plan(), out=tmp_path / "c", executor=InProcess()).complete


def test_looks_at_parts_are_looks_at_the_whole(parts, tmp_path):
    audit(Run.open(parts[0]))
    Run.open(parts[1]).signals()
    merged = merge(parts, out=tmp_path / "c")
    assert sorted(look["kind"] for look in merged.looks) == ["audit", "signals"]
    assert [look["as_planned"] for look in merged.looks] == [False, False]
    assert merged.declaration.beforehand


def test_parts_may_overlap_where_they_agree(made, parts, tmp_path):
    part(small_plan(), parts[1], 20, 30)
    merge(parts, out=tmp_path / "c")
    assert killing.rows(tmp_path / "c") == killing.rows(made / "whole")


def test_parts_that_disagree_are_refused(parts, tmp_path):
    part(small_plan(), parts[1], 20, 25)
    forge(parts[1] / FILE, "UPDATE models SET signals = zeroblob(length(signals)) WHERE idx = 22")
    with pytest.raises(InvalidInput, match=r"a and .*b disagree about model 22, although they have one plan"):
        merge(parts, out=tmp_path / "c")
    assert not (tmp_path / "c").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_a_damaged_part_is_refused(parts, tmp_path):
    connection = sqlite3.connect(parts[1] / FILE)
    connection.execute("UPDATE models SET seed = seed + 1 WHERE idx = 30")
    connection.commit()
    connection.close()
    with pytest.raises(InvalidInput, match="row 30 of models is not what was written"):
        merge(parts, out=tmp_path / "c")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (plan(n_models=40, audit={"fit_models": 10}, seed=1), r"hold different plans \(seed was 0, now 1\)"),
        (plan(n_models=41, audit={"fit_models": 10}), "n_models was 40, now 41"),
        (plan(n_models=40, audit={"fit_models": 11}), r"declared different settings of \[audit\]"),
    ],
)
def test_other_plans_and_declarations_are_refused(parts, tmp_path, other, words):
    part(other, tmp_path / "other", 25, 40)
    with pytest.raises(InvalidInput, match=words):
        merge([parts[0], tmp_path / "other"], out=tmp_path / "c")


def test_what_was_declared_after_a_look_does_not_count(parts, tmp_path):
    audit(Run.open(parts[0]))
    part(plan(n_models=40, audit={"fit_models": 20}), parts[0], 0, 26)
    merged = merge(parts, out=tmp_path / "c")
    assert [(d.beforehand, d.audit.fit_models) for d in merged.declarations] == [(True, 10), (False, 20)]
    assert merged.declared.fit_models == 10


def test_one_part_and_a_folder_that_is_there_are_refused(parts, tmp_path):
    with pytest.raises(InvalidInput, match="two run directories or more, but got 1"):
        merge(parts[:1], out=tmp_path / "c")
    with pytest.raises(InvalidInput, match=r"out must be new, but .* is there already"):
        merge(parts, out=parts[0])


@pytest.mark.parametrize("models", [range(5, 5), range(41), range(0, 40, 2), (0, 5)])
def test_models_must_be_a_range_of_the_plans(tmp_path, models):
    with pytest.raises(InvalidInput, match=r"models must be a range of the plan's models, within range\(0, 40\)"):
        run(small_plan(), out=tmp_path, executor=InProcess(), models=models)


def test_the_command_line(tmp_path):
    (tmp_path / "plan.toml").write_text(plan_text(n_models=70))
    words = ("run", tmp_path / "plan.toml", "--workers", 1)
    ask(*words, "--out", tmp_path / "a", "--models", ":30")
    ask(*words, "--out", tmp_path / "b", "--models", "30:70")
    assert "70 of 70" in ask("merge", tmp_path / "a", tmp_path / "b", "-o", tmp_path / "c")
    assert "intact" in ask("verify", tmp_path / "c")
    assert Run.open(tmp_path / "c").complete
    for wrong, said in {"3": "two whole numbers", "5:80": "within 0:70", "-1:5": "two whole numbers"}.items():
        assert said in refused(*words, "--out", tmp_path / "d", f"--models={wrong}")
    both = refused(*words, "--out", tmp_path / "d", "--dask", "tcp://127.0.0.1:1")
    assert "only one of --dask, --ray and --workers can be given, but got --dask and --workers" in both


PAUSES = """
import sys, time
from epsgauge.runner import merge as merging
real = merging._united
def united(*args):
    print("writing", flush=True)
    time.sleep(600)
    return real(*args)
merging._united = united
merging.merge(sys.argv[1:3], out=sys.argv[3])
"""


def test_what_a_killed_merge_leaves_is_removed_by_the_next_one(parts, tmp_path):
    """And nothing of one that still writes."""
    out = tmp_path / "c"
    with subprocess.Popen([sys.executable, "-c", PAUSES, *parts, out], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout.readline() == "writing\n"
            left = tmp_path / f".c.merging-{child.pid}"
            assert (left / FILE).exists()
            merge(parts, out=tmp_path / "other")
            assert (left / FILE).exists()
        finally:
            child.kill()
    assert left.exists()
    assert not out.exists()
    own = tmp_path / ".own.merging-1"  # without the number of a process: not known to be ours
    own.mkdir()
    (own / "run.lock").touch()
    assert merge(parts, out=out).complete
    assert sorted(path.name for path in tmp_path.glob(".*")) == [own.name]
