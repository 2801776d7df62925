"""What the studies of the heuristic say is what their files say."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import epsgauge as eg

STUDY = Path(__file__).parent.parent / "studies" / "heuristic"
LEAKY = STUDY.parent / "leaky"
RESULTS = sorted((STUDY / "results").glob("*.json"))


def test_the_page_has_the_tables_of_the_results():
    done = subprocess.run([sys.executable, str(STUDY / "table.py"), "--check"], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", RESULTS, ids=lambda file: file.stem)
def test_every_result_has_its_plans_and_scores(file):
    result = json.loads(file.read_text(encoding="utf-8"))
    for row in result["rows"]:
        name = f"{result['setting']}-m{row['m']}"
        plan = eg.Plan.from_tables(json.loads((STUDY / "plans" / f"{name}.json").read_text(encoding="utf-8")))
        scores = eg.Scores.read(STUDY / "scores" / f"{name}.npz")
        assert (plan.name, plan.game.pairs_per_model) == (name, row["m"])
        assert len(scores) == plan.n_samples
        assert sum(row["tally"].values()) == 1000
        judged = scores[scores.model >= (plan.n_models - row["n_models"])]
        assert len(judged) == row["estimates"] * 1000


def test_models_of_two_plans_are_independent_and_their_points_the_same():
    plans = [json.loads(file.read_text(encoding="utf-8")) for file in sorted((STUDY / "plans").glob("*.json"))]
    families = {}
    for plan in plans:
        families.setdefault(plan["name"].split("-")[0], []).append(plan)
    for some in families.values():
        assert len({plan["seed"] for plan in some}) == len(some)
        assert {plan["game"]["points_seed"] for plan in some} == {0}
        assert len({(plan["game"]["train_size"], plan["game"]["pool_size"]) for plan in some}) == 1


@pytest.fixture
def leaky(monkeypatch):
    """The modules of the study where the pipeline leaks: its settings, its counts and what runs them."""
    monkeypatch.syspath_prepend(str(LEAKY))
    names = ("settings", "counts", "study")
    yield SimpleNamespace(**{name: importlib.import_module(name) for name in names})
    for name in names:
        del sys.modules[name]


def test_the_page_has_the_tables_of_the_leaky_results():
    done = subprocess.run([sys.executable, str(LEAKY / "table.py"), "--check"], capture_output=True, encoding="utf-8")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", sorted((LEAKY / "results").glob("*.json")), ids=lambda file: file.stem)
def test_leaky_rows_are_those_of_the_counts_and_have_every_m(leaky, file):
    result = json.loads(file.read_text(encoding="utf-8"))
    setting = next(setting for setting in leaky.settings.SETTINGS if setting.name == file.stem)
    again = leaky.study.rows(setting, LEAKY / "counts" / f"{setting.name}.npz")
    assert result["rows"].keys() == again.keys()
    for name, rows in again.items():
        assert [(row["m"], row["models"]) for row in rows] == list(setting.judged.items())
        for row, kept in zip(rows, result["rows"][name], strict=True):
            assert row == pytest.approx(kept, rel=1e-6, abs=1e-9)


def test_leaky_plans_are_those_of_the_settings_and_differ_in_their_seeds(leaky):
    plans = [setting.plan(m) for setting in leaky.settings.SETTINGS for m in setting.judged]
    kept = {file.stem: json.loads(file.read_text(encoding="utf-8")) for file in (LEAKY / "plans").glob("*.json")}
    assert kept == {plan.name: json.loads(json.dumps(plan.tables())) for plan in plans}
    assert len({plan.seed for plan in plans}) == len(plans)


@pytest.mark.parametrize(("alike", "effect"), [(1, 1.0), (10, 10.0)])
def test_the_design_effect_is_one_for_independent_guesses_and_m_for_equal_ones(leaky, alike, effect):
    rng = np.random.default_rng(0)
    models, m = 4000, 10
    bit = rng.integers(0, 2, (models, m // alike)).repeat(alike, axis=1)
    score = (rng.random((models, m // alike)).repeat(alike, axis=1) < np.where(bit == 1, 0.7, 0.4)) - 0.5
    index = np.arange(models).repeat(m)
    scores = eg.Scores(
        model=index, pair=np.tile(np.arange(m), models), bit=bit.ravel(), score=score.ravel(), adjacency="substitute"
    )
    counts = leaky.counts.Counts.of(scores, 0.0, m)
    assert counts.cells.sum() == models * m
    assert counts.advantage == pytest.approx(0.3, abs=4 * counts.standard_error)
    assert counts.design_effect == pytest.approx(effect, rel=0.1)
