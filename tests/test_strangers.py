"""Plans of strangers: which commands import code next to them, and which module is meant by a name."""

import sys
from pathlib import Path

import pytest
from command_line import refused

from epsgauge.errors import InvalidInput
from epsgauge.references import beside, load, search_in
from epsgauge.runner.code import find_code
from epsgauge.runner.plan import Plan
from faults.strangers import COMMANDS, INSTALLED, OWN, folder_of_a_stranger, imported

SCRIPT = str(Path(sys.executable).with_name("epsgauge"))
GAME = {"train_size": 10, "reference_size": 19}
TRIED = ("run plan.toml --out run --workers 2", "audit run")  # all of them: make faults


@pytest.fixture
def own_path(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr("epsgauge.references._searched", [])
    return monkeypatch


def test_a_module_next_to_a_plan_replaces_none_that_is_installed(tmp_path):
    """Also in worker processes, and where the command is run in the plan's folder."""
    folder = folder_of_a_stranger(tmp_path / "plan")
    for words, trains in COMMANDS:
        if words in TRIED:
            found, done = imported([SCRIPT, *words.split()], folder)
            assert (found, done.returncode) == (OWN if trains else set(), 0), (words, done.stderr)


def test_python_m_imports_nothing_from_the_current_folder(tmp_path):
    folder = folder_of_a_stranger(tmp_path / "plan", INSTALLED)
    found, done = imported([sys.executable, "-m", "epsgauge", "check", "plan.toml"], folder)
    assert (found, done.returncode) == (set(), 0), done.stderr


def test_a_part_of_a_plan_that_an_installed_module_hides_is_named(tmp_path, own_path):
    (tmp_path / "statistics.py").write_text("def data():\n    return [0]\n")
    search_in(tmp_path)
    with beside(tmp_path), pytest.raises(InvalidInput) as error:
        load("statistics:data", "data.use")
    sentence = str(error.value)
    assert sentence.startswith(f"data.use = 'statistics:data': statistics is {tmp_path / 'statistics.py'}, but that")
    assert sentence.endswith("Rename statistics.py.")


@pytest.mark.parametrize("hidden", ["statistics.py", "time.py", "numpy/__init__.py"])
def test_a_module_that_a_plans_code_imports_must_not_be_hidden(tmp_path, own_path, hidden):
    """Of Python's library, built into Python, and a package."""
    name = hidden.partition(".")[0].partition("/")[0]
    (tmp_path / hidden).parent.mkdir(exist_ok=True)
    (tmp_path / hidden).write_text("")
    (tmp_path / "own_pipeline.py").write_text("from own_part import data\n")
    (tmp_path / "own_part.py").write_text(f"import {name}\n\ndef data():\n    return [0]\n")
    plan = Plan(name="a", n_models=2, data="own_pipeline:data", trainer="laplace", game=GAME, folder=tmp_path)
    with pytest.raises(InvalidInput, match=rf"own_part\.py: {name} is .* Rename {hidden.partition('/')[0]}\."):
        find_code(plan)
    (tmp_path / "own_part.py").write_text("from . import statistics\n")  # from a package, which is no other's
    find_code(plan)


def test_the_newest_plan_comes_before_older_ones_and_after_what_is_installed(tmp_path, own_path):
    before = list(sys.path)
    a, b = tmp_path / "a", tmp_path / "b"
    for folder in (a, b, a):
        search_in(folder)
    assert sys.path[-2:] == [str(a), str(b)]
    assert sys.path[: len(before)] == before
    sys.path.insert(0, str(tmp_path))
    search_in(tmp_path)  # the user put it there
    assert sys.path.count(str(tmp_path)) == 1
    assert sys.path[0] == str(tmp_path)


@pytest.mark.parametrize(
    "words",
    [
        ("mechanism", "statistics:noisy", "--d0", "0", "--d1", "1", "--eps", "1"),
        ("declare", "d.json", "--adjacency", "substitute", "--verdict-method", "statistics:Method"),
    ],
)
def test_a_function_of_the_current_folder_that_is_hidden_is_named(tmp_path, own_path, words):
    (tmp_path / "statistics.py").write_text("noisy = None\n")
    own_path.chdir(tmp_path)
    assert "Rename statistics.py." in refused(*words)
