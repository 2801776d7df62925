"""Callbacks of training libraries: the watch sees every step, and the scores of canaries are written."""

import csv
import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from opacus.optimizers import DPOptimizer

import epsgauge as eg
from epsgauge.integrations.hooks import CanaryScores, attach
from epsgauge.runner.executors import InProcess
from epsgauge.trainers.watch import Watch

FOLDER = Path(__file__).parent.parent / "examples" / "callbacks"


@pytest.fixture(params=["lightning", "hugging_face"])
def example(request, monkeypatch):
    """The module of an example, where its library is installed."""
    pytest.importorskip({"lightning": "lightning", "hugging_face": "accelerate"}[request.param])
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setitem(sys.modules, f"with_{request.param}", None)
    del sys.modules[f"with_{request.param}"]
    return importlib.import_module(f"with_{request.param}")


class Counts(Watch):
    """Keeps the clipping norm and the divisor of every step."""

    def begin(self):
        super().begin()
        self.norms, self.divisors = [], []

    def _see(self, arrays, max_grad_norm, divisor, gradients):
        self.n_steps += 1
        self.norms.append(max_grad_norm)
        self.divisors.append(divisor)
        return arrays


@pytest.mark.filterwarnings("ignore")
def test_the_watch_sees_every_step(example):
    trainer, watch, data = example.MyTrainer(), Counts(), tuple(part[:200] for part in example.data())
    model = trainer.train(data, seed=1, watch=watch)
    assert watch.n_steps == trainer.privacy(200).steps
    assert set(watch.norms) == {1.0}
    assert set(watch.divisors) == {float(example.BATCH_SIZE)}
    assert trainer.losses(model, data).shape == (200,)


@pytest.mark.filterwarnings("ignore")
def test_the_example_is_played_by_an_adversary_who_sees_updates(example, tmp_path):
    plan = eg.Plan.read(FOLDER / f"{example.__name__}.toml")
    small = plan.changed(n_models=12, game=plan.game.model_copy(update={"control_models": 0}))
    run = eg.run(small, out=tmp_path / "run", executor=InProcess())
    assert (run.n_done, run.n_failed) == (12, 0)
    assert np.isfinite(run.signals()["alignment"]).all()


@pytest.mark.filterwarnings("ignore")
def test_scores_of_canaries_are_written_when_the_training_ends(example, tmp_path):
    module = importlib.import_module(f"epsgauge.integrations.{example.__name__.removeprefix('with_')}")
    callback = module.CanaryScoresCallback(["a", "b"], lambda model: [1.5, model], tmp_path / "scores.csv")
    if "lightning" in example.__name__:
        callback.on_train_end(None, 2.0)
    else:
        callback.on_train_end(None, None, None, model=2.0)
    with open(tmp_path / "scores.csv", encoding="utf-8") as file:
        assert list(csv.reader(file)) == [["id", "score"], ["a", "-1.5"], ["b", "-2.0"]]


def test_an_optimizer_without_opacus_is_said():
    plain = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)
    with pytest.raises(eg.InvalidInput, match=r"needs an optimizer of Opacus, but got SGD\. Make the training private"):
        attach(plain, Watch())


def test_the_hook_that_was_there_is_kept():
    counted, weights = [], torch.nn.Parameter(torch.zeros(2))
    inner = DPOptimizer(
        torch.optim.SGD([weights], lr=1.0), noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=10
    )
    inner.attach_step_hook(lambda optimizer: counted.append(1))
    watch = Counts()
    attach(type("Wrapped", (), {"optimizer": inner})(), watch)
    weights.grad_sample = torch.ones(3, 2)
    inner.step()
    assert (watch.n_steps, counted) == (1, [1])


def test_bad_losses_and_a_missing_folder_are_said(tmp_path):
    with pytest.raises(eg.InvalidInput, match="the folder of the scores must exist"):
        CanaryScores(["a"], lambda model: [1.0], tmp_path / "none" / "scores.csv")
    with pytest.raises(eg.InvalidInput, match=r"one number for each of 2 canaries, but gave an array of shape \(1,\)"):
        CanaryScores(["a", "b"], lambda model: [1.0], tmp_path / "scores.csv").write(None)


def test_an_audit_is_logged_to_mlflow(tmp_path, monkeypatch):
    mlflow = pytest.importorskip("mlflow", reason="mlflow is not installed")
    from epsgauge.integrations.mlflow import log_audit

    rng = np.random.default_rng(0)
    scores = eg.Scores.from_in_out(
        rng.normal(1, 1, 300), rng.normal(0, 1, 300), adjacency="add-remove", models="independent"
    )
    audit = eg.audit(scores, delta=1e-5, claimed_eps=4.0, claimed_delta=1e-5, claimed_adjacency="add-remove")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # mlflow-skinny has no database
    mlflow.set_tracking_uri((tmp_path / "mlruns").as_uri())
    with mlflow.start_run() as run:
        log_audit(audit)
    kept = mlflow.get_run(run.info.run_id).data
    assert kept.metrics["epsgauge.lower_bound"] == pytest.approx(audit.verdict.bound.value)
    assert kept.tags["epsgauge.verdict"] == audit.verdict.kind
