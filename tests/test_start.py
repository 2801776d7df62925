"""Where networks start: at random, at one point, at saved or pretrained weights; in all engines."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from epsgauge.errors import InvalidInput
from epsgauge.runner.executors import InProcess
from epsgauge.runner.plan import Plan
from epsgauge.runner.run import run
from epsgauge.runner.view import Run
from epsgauge.trainers import network
from epsgauge.trainers.dpsgd import DpSgd
from epsgauge.trainers.protocol import Group
from epsgauge.trainers.sgd import Sgd

RECORDED = Path(__file__).parent / "recorded"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 6)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)
DATA = (X[:20], Y[:20])
MODULE = """
import numpy as np
calls = []
X, Y = np.load({path!r}).values()
def points():
    calls.append(1)
    return X[20:], Y[20:]
def overlapping(): return X[19:], Y[19:]
def none(): return X[:0], Y[:0]
def broken(): return 1 / 0
number = 5
"""
# Steps so small that a model stays where it started.
STILL = {"epochs": 1, "batch_size": 10, "learning_rate": 1e-12, "n_classes": 2}
PRETRAINED = {"init": "pretrained", "init_data": "start_points:points", "init_epochs": 8, "init_batch_size": 10}
ENGINES = [
    *((DpSgd, {"noise_multiplier": 1.0, "engine": engine}) for engine in ("opacus", "stacked")),
    *((Sgd, {"engine": engine}) for engine in ("torch", "stacked")),
]


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A user's module that gives points."""
    np.savez(tmp_path / "points.npz", x=X, y=Y)
    (tmp_path / "start_points.py").write_text(MODULE.format(path=str(tmp_path / "points.npz")))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "start_points", raising=False)
    import start_points

    yield start_points
    sys.modules.pop("start_points", None)
    network._pretrained.cache_clear()


def state(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def saved(model, path):
    np.savez(path, **{name: weights.numpy() for name, weights in model.state_dict().items()})
    return str(path)


@pytest.mark.parametrize(("kind", "settings"), ENGINES)
def test_models_start_where_they_are_told(kind, settings, module, tmp_path):
    def two(**init):
        trainer = kind(**STILL, **settings, **init)
        return [state(trainer.train(DATA, seed=seed)) for seed in (1, 2)]

    one, other = two()
    assert not torch.allclose(one, other)
    fixed, again = two(init="fixed")
    torch.testing.assert_close(fixed, again, rtol=0, atol=1e-9)
    before, later = two(**PRETRAINED)
    torch.testing.assert_close(before, later, rtol=0, atol=1e-9)
    assert not torch.allclose(fixed, before)
    model = kind(**STILL, **settings, **PRETRAINED).train(DATA, seed=1)
    read, also = two(init=saved(model, tmp_path / "start.npz"))
    torch.testing.assert_close(read, before, rtol=0, atol=1e-9)
    torch.testing.assert_close(also, before, rtol=0, atol=1e-9)


def test_a_group_starts_where_a_model_alone_does(module):
    trainer = DpSgd(**{**STILL, "learning_rate": 0.5}, noise_multiplier=1.0, **PRETRAINED)
    group = Group(size=3, width=20)
    together = trainer.train_many([DATA, None, DATA], seeds=[1, 0, 2], size=20, group=group)
    for model, seed in ((together[0], 1), (together[2], 2)):
        torch.testing.assert_close(state(model), state(trainer.train(DATA, seed=seed)), rtol=0, atol=1e-5)


def test_pretraining_is_done_once_and_says_the_same_again(module):
    trainer = DpSgd(**STILL, noise_multiplier=1.0, **PRETRAINED)
    first = [state(trainer.train(DATA, seed=seed)) for seed in (1, 2)]
    trainer.without_noise().train(DATA, seed=1)
    assert len(module.calls) == 1
    network._pretrained.cache_clear()
    torch.manual_seed(99)
    assert torch.equal(state(trainer.train(DATA, seed=1)), first[0])
    assert len(module.calls) == 2
    fits = [DpSgd(**STILL, noise_multiplier=1.0, init=init).train(DATA, seed=1) for init in ("random", "fixed")]
    learnt = trainer.losses(trainer.train(DATA, seed=1), DATA).mean()
    assert learnt < min(trainer.losses(model, DATA).mean() for model in fits) - 0.2


def test_the_start_changes_nothing_else():
    settings = {"epochs": 2, "batch_size": 10, "noise_multiplier": 1.0, "model": "logistic", "n_classes": 2}
    plain, fixed = (DpSgd(**settings, init=init).train(DATA, seed=4) for init in ("random", "fixed"))
    assert torch.equal(state(plain), state(fixed))  # logistic regression always starts at 0


@pytest.mark.parametrize(
    ("init", "sentence"),
    [
        ({"init": "frozen"}, "init must be one of random, fixed, pretrained, or a file of weights that ends in .npz"),
        ({"init": "model.pt"}, "but got 'model.pt'. Save a state dict with np.savez("),
        ({"init": "nowhere.npz"}, "init, the file of weights, must be there, but nowhere.npz is not."),
        ({"init": "text.npz"}, "init must be a file of arrays as np.savez writes it, without pickles, but text.npz is"),
        ({"init": "pickle.npz"}, "without pickles, but pickle.npz is not."),
        ({"init": "wide.npz"}, "but 0.weight has shape (32, 7) in wide.npz and (32, 6) in the model. Save the state"),
        ({"init": "less.npz"}, "but 2.bias has shape none in less.npz and (2,) in the model."),
        ({"init": "pretrained"}, "init_data go together, but got init = 'pretrained', init_data = None."),
        ({"init_data": "start_points:points"}, "but got init = 'random', init_data = 'start_points:points'."),
        ({**PRETRAINED, "init_data": "cifar"}, "a function that gives points as \"module:attr\", but got 'cifar'."),
        ({**PRETRAINED, "init_data": "start_points:number"}, "must be a function that gives points, but it is a int."),
        ({**PRETRAINED, "init_data": "start_points:none"}, "must give at least one point, but gave none."),
        ({**PRETRAINED, "init_data": "start_points:broken"}, "init_data start_points:broken failed with ZeroDivision"),
        ({**PRETRAINED, "init_data": "start_points:overlapping"}, "points that the game trains on, but it has 1 of"),
        ({**PRETRAINED, "init_epochs": 0}, "init_epochs must be 1 or more, but got 0"),
        ({**PRETRAINED, "init_learning_rate": -1.0}, "init_learning_rate must be"),
    ],
)
def test_a_wrong_start_is_one_sentence(init, sentence, module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("text.npz").write_text("not an archive")
    np.savez("pickle.npz", weights=np.array([{}], dtype=object))
    good = DpSgd(**STILL, noise_multiplier=1.0).train((np.c_[X, X[:, :1]][:20], Y[:20]), seed=0)
    saved(good, "wide.npz")
    small = DpSgd(**STILL, noise_multiplier=1.0).train(DATA, seed=0).state_dict()
    np.savez("less.npz", **{name: w.numpy() for name, w in small.items() if name != "2.bias"})
    with pytest.raises(InvalidInput) as caught:
        DpSgd(**STILL, noise_multiplier=1.0, **init).train(DATA, seed=0)
    assert sentence in str(caught.value)


# What was begun before


def test_a_plan_without_a_start_is_the_plan_that_it_was():
    """What a fingerprint is made of, as it was before trainers had a start."""

    def of(trainer):
        plan = Plan(name="a", n_models=4, data="digits", trainer=trainer, game={"train_size": 100})
        return plan.fingerprinted()["trainer"]

    table = {"use": "dpsgd", "noise_multiplier": 1.0}
    assert of(table) == table
    assert of({**table, "init": "fixed"}) == {**table, "init": "fixed"}
    names = "model encoder epochs batch_size learning_rate momentum optimiser physical_batch n_classes device engine"
    own = ["noise_multiplier", "target_eps", "target_delta", "max_grad_norm"]
    assert list(of(DpSgd(noise_multiplier=1.0))) == ["use", *names.split(), *own]
    assert of(DpSgd(noise_multiplier=1.0, init="fixed")) == {**of(DpSgd(noise_multiplier=1.0)), "init": "fixed"}


def test_a_run_that_was_begun_before_is_resumed(tmp_path):
    shutil.copytree(RECORDED / "digits", tmp_path / "a")
    old = Run.open(tmp_path / "a")
    n = old.plan.n_models
    found = run(old.plan.changed(n_models=n + 1), out=tmp_path / "a", executor=InProcess())
    assert (found.n_done, found.n_failed) == (n + 1, 0)
    assert list(found.signals().channels) == ["loss", "reference"]
