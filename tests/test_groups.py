"""Groups of models in a run: the same signals however a group is cut, and those of Opacus but for rounding."""

import shutil
import sqlite3
import sys

import numpy as np
import pytest
from stores import forge

import epsgauge as eg
from epsgauge.runner.executors import InProcess
from epsgauge.runner.store import FILE
from epsgauge.trainers.dpsgd import DpSgd
from epsgauge.trainers.sgd import Sgd

TRAINERS = {
    "dpsgd": {"use": "dpsgd", "model": "mlp", "epochs": 2, "batch_size": 20, "noise_multiplier": 1.0},
    "sgd": {"use": "sgd", "model": "logistic", "epochs": 2, "batch_size": 20, "momentum": 0.5},
}


def plan(trainer="dpsgd", *, n_models=7, adjacency="substitute", **more):
    return eg.Plan(
        name="group",
        n_models=n_models,
        data="digits",
        trainer={**TRAINERS[trainer], **more},
        game={"train_size": 60, "reference_size": 15, "challenge": "average", "adjacency": adjacency},
        audit={"attack": "loss", "fit_models": 2},
    )


@pytest.fixture
def groups_of_three(monkeypatch):
    """Small groups, so that a run has several; the size is stored when a run is created."""
    monkeypatch.setattr("epsgauge.trainers.stacked.group._MOST_FLAT", 3)


def signals(folder):
    rows = sqlite3.connect(folder / FILE).execute("SELECT idx, seed, bits, pairs, signals FROM models ORDER BY idx")
    return rows.fetchall()


@pytest.mark.parametrize("trainer", TRAINERS)
@pytest.mark.parametrize("adjacency", ["substitute", "add-remove"])
def test_a_run_of_groups_is_that_of_one_model_at_a_time(tmp_path, groups_of_three, trainer, adjacency):
    alone = {"dpsgd": "opacus", "sgd": "torch"}[trainer]
    together = eg.run(plan(trainer, adjacency=adjacency), out=tmp_path / "groups", executor=InProcess())
    apart = eg.run(plan(trainer, adjacency=adjacency, engine=alone), out=tmp_path / "apart", executor=InProcess())
    a, b = together.signals(), apart.signals()
    assert np.array_equal(a.bits, b.bits)
    assert np.array_equal(a.pairs, b.pairs)
    np.testing.assert_allclose(a["loss"], b["loss"], rtol=0, atol=2e-5)
    np.testing.assert_allclose(a["reference"], b["reference"], rtol=0, atol=2e-5)
    assert np.ptp(a["loss"][..., 1]) > 0.1


def test_neither_workers_nor_gaps_nor_growth_change_a_signal(tmp_path, groups_of_three, monkeypatch):
    """A group of which some models are done: the others come out as if all had been trained together."""
    eg.run(plan(), out=tmp_path / "whole", executor=InProcess())
    whole = signals(tmp_path / "whole")
    assert len(whole) == 7
    eg.run(plan(n_models=4), out=tmp_path / "grown", executor=InProcess())
    monkeypatch.setattr("epsgauge.trainers.stacked.group._MOST_FLAT", 5)  # what is stored counts
    eg.run(plan(), out=tmp_path / "grown", executor=InProcess())
    assert signals(tmp_path / "grown") == whole
    shutil.copytree(tmp_path / "whole", tmp_path / "gaps")
    forge(tmp_path / "gaps" / FILE, "DELETE FROM models WHERE idx IN (1, 2, 3, 6)")
    eg.run(plan(), out=tmp_path / "gaps", workers=2)
    assert signals(tmp_path / "gaps") == whole


MODULE = """
import torch
from torch import nn

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 10)
    def forward(self, x):
        return self.layer(x)

def plain():
    return nn.Sequential(nn.Linear(64, 10))
"""


def test_what_cannot_be_stacked_is_trained_by_opacus_or_named(tmp_path, monkeypatch):
    (tmp_path / "mine_stacked.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine_stacked", raising=False)
    points = (np.zeros((2, 64), np.float32), np.array([0, 1]))
    settings = {"noise_multiplier": 1.0, "batch_size": 20}
    assert DpSgd(model="mine_stacked:Own", **settings).group(points, size=60) is None
    assert DpSgd(model="mine_stacked:plain", **settings).group(points, size=60) is not None
    assert DpSgd(model="mine_stacked:plain", engine="opacus", **settings).group(points, size=60) is None
    with pytest.raises(eg.InvalidInput, match="Own"):
        DpSgd(model="mine_stacked:Own", engine="stacked", **settings).group(points, size=60)
    with pytest.raises(eg.InvalidInput, match="engine must be one of auto, stacked, torch, but got 'opacus'"):
        Sgd(engine="opacus")


def test_a_stack_of_one(tmp_path):
    rng = np.random.default_rng(0)
    data = (rng.normal(size=(60, 8)).astype(np.float32), rng.integers(0, 10, size=60))
    for cls, settings in ((DpSgd, {"noise_multiplier": 1.0}), (Sgd, {})):
        common = {"model": "mlp", "epochs": 2, "batch_size": 20, **settings}
        one = cls(engine="stacked", **common)
        other = cls(engine="auto", **common)
        first, second = (t.losses(t.train(data, seed=3, size=61), data) for t in (one, other))
        np.testing.assert_allclose(first, second, rtol=0, atol=2e-5)


def test_a_model_that_breaks_its_group_fails_alone(tmp_path, groups_of_three, monkeypatch):
    """The group is trained again one by one, each in its slot, and only the culprit is failed."""
    run = eg.run(plan(), out=tmp_path / "good", executor=InProcess())
    bad = eg.Run.open(tmp_path / "good").signals().models[4]
    from epsgauge.games.seeds import Branch, training_seed

    culprit = training_seed(0, Branch.audited, int(bad))
    train_many = DpSgd.train_many

    def fragile(self, datas, *, seeds, size, group):
        if culprit in seeds:
            raise MemoryError("no room")
        return train_many(self, datas, seeds=seeds, size=size, group=group)

    monkeypatch.setattr(DpSgd, "train_many", fragile)
    broken = eg.run(plan(), out=tmp_path / "bad", executor=InProcess())
    assert [(f.index, "no room" in f.error) for f in broken.failed] == [(4, True)]
    keep = run.signals().models != 4
    assert broken.signals()["loss"].tobytes() == run.signals()[keep]["loss"].tobytes()
