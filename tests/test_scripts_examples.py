"""Scripts of examples/scripts and the bugs of tests/scripts: they run by themselves, right and broken."""

import ast
import os
import re
import subprocess
import sys

import pytest
from scripts.bugs import BUGS, SCRIPTS, broken, right

RIGHT_AND_BROKEN = [(script, bug) for script, bugs in BUGS.items() for bug in (None, *bugs)]


def test_every_script_has_two_bugs():
    assert {path.stem for path in SCRIPTS.glob("*.py")} == set(BUGS)
    assert all(len(bugs) >= 2 for bugs in BUGS.values())


@pytest.mark.parametrize("script", BUGS)
def test_scripts_know_nothing_of_epsgauge(script):
    assert "epsgauge" not in right(script)
    assert 40 <= len(right(script).splitlines()) <= 120


@pytest.mark.parametrize(("script", "bug"), [case for case in RIGHT_AND_BROKEN if case[1]])
def test_a_bug_applies_and_compiles(script, bug):
    text = broken(script, bug)
    assert text != right(script)
    ast.parse(text)


def test_an_edit_that_does_not_fit_is_refused(monkeypatch):
    monkeypatch.setitem(BUGS["ghost"], "absent", [("no such text", "")])
    with pytest.raises(ValueError, match="occurs 0 times"):
        broken("ghost", "absent")


@pytest.mark.long
@pytest.mark.parametrize(("script", "bug"), RIGHT_AND_BROKEN)
def test_a_script_runs_and_prints_epsilon(script, bug, tmp_path):
    path = tmp_path / "train.py"
    path.write_text(broken(script, bug) if bug else right(script), encoding="utf-8")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(path), "--epochs", "1"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"ε = \d+\.\d", done.stdout), done.stdout
