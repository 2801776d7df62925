"""The benchmark of how near audits come to the accountant's ε: its settings, and its ideal adversary."""

import importlib
import math
import re
from pathlib import Path

import pytest

import epsgauge as eg
from epsgauge.attacks.rehearsed import effect
from epsgauge.mechanisms.accounting import accountant_eps
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.runner.executors import InProcess

ROOT = Path(__file__).parent.parent


@pytest.fixture
def tightness(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    return importlib.import_module("tightness")


@pytest.fixture
def tiny(tightness, monkeypatch, tmp_path):
    """The settings with trainings of milliseconds."""
    for name in ("WHITE_BOX", "DEMO"):
        text = getattr(tightness, name).read_text(encoding="utf-8")
        for key, value in {"train_size": 30, "batch_size": 15, "epochs": 1, "reference_size": 10}.items():
            text, found = re.subn(rf"^{key} = \d+", f"{key} = {value}", text, flags=re.MULTILINE)
            assert found
        (tmp_path / f"{name}.toml").write_text(text)
        monkeypatch.setattr(tightness, name, tmp_path / f"{name}.toml")
    monkeypatch.setattr(tightness, "HIDDEN_TRAIN", 20)
    monkeypatch.setattr(tightness, "HIDDEN_STEPS", 3)
    return tightness


@pytest.mark.parametrize(
    ("name", "methods"),
    [
        ("records", ["curve", "weighted"]),
        pytest.param("white-box", ["curve", "weighted"], marks=pytest.mark.long),
        pytest.param("hidden-state", ["gaussian"] * 3, marks=pytest.mark.long),
        pytest.param("black-box", ["curve", "weighted"] * 3, marks=pytest.mark.long),
    ],
)
def test_a_setting_has_a_row_for_each_bound(tiny, name, methods):
    rows = list(tiny.SETTINGS[name](tiny.Work(runs=1, n_models=40, executor=InProcess())))
    assert [row.method for row in rows] == methods
    if name == "hidden-state":
        assert [row.accountant for row in rows] == pytest.approx([1, 4, 8])
    for row in rows:
        assert len(row.ideal) == 1
        assert all(math.isfinite(one.bound) for one in (row.reached, *row.ideal))
        assert str(row).count("|") == tiny.HEAD.split("\n")[0].count("|")


def test_the_linear_model_of_the_hidden_state_has_68_parameters(tightness):
    x, y = tightness.small_digits()
    assert (x.shape[1] + 1) * len(set(y.tolist())) == 68
    assert tightness.hidden_plan(2.0, n_models=9).trainer.build().privacy(tightness.HIDDEN_TRAIN) == DPSGD(
        1.0, 2.0, 250
    )


@pytest.mark.parametrize(("adjacency", "distance"), [("substitute", 2), ("add-remove", 1)])
def test_where_every_step_has_every_point_the_ideal_adversary_sees_one_gaussian(tightness, adjacency, distance):
    scores = tightness.ideal_scores(DPSGD(1.0, 4.0, 4), adjacency, 20_000, 0)
    assert effect(scores.score, scores.bit) == pytest.approx(distance * math.sqrt(4) / 4, abs=0.04)


def test_the_claim_of_the_white_box_example():
    example = eg.Plan.read(ROOT / "examples" / "digits-white-box.toml")
    privacy = example.trainer.build().privacy(example.game.train_size)
    assert round(accountant_eps(privacy, delta=1e-5, adjacency=example.game.adjacency), 1) == 10.5
    assert (example.audit.verdict_method, example.audit.verdict_level) == ("curve", 0.95)
