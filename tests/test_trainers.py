"""Trainers: DP-SGD against a slow twin, its sampling and its seeds; classifiers; bad settings."""

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from epsgauge.errors import InvalidInput, MissingExtra
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.trainers.classifier import Classifier
from epsgauge.trainers.dpsgd import DpSgd
from epsgauge.trainers.points import arrays
from epsgauge.trainers.protocol import Accountable, Quietable, Trainer, knows_size
from epsgauge.trainers.sgd import Sgd

N, FEATURES = 40, 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, FEATURES)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0.5)
DATA = (X, Y)
USER_MODULE = """
import torch
from torch import nn

seen = []

class Recorder(nn.Module):
    '''Notes which points each training batch has; a point's first feature is its number.'''
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1, 2)
    def forward(self, x):
        if self.training:
            seen.append(x[:, 0].int().tolist())
        return self.layer(0 * x)

def dropout(): return nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3))
def conv(): return nn.Sequential(nn.Conv2d(1, 2, 2), nn.Flatten(), nn.ReLU(), nn.Linear(4, 3))
def embedding(): return nn.Sequential(nn.Embedding(30, 4), nn.Flatten(), nn.Linear(24, 3))
def batchnorm(): return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
def bare_batchnorm(): return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8, affine=False), nn.Linear(8, 3))
def two_outputs(): return nn.Linear(6, 2)
def scalar(): return nn.Sequential(nn.Linear(6, 1), nn.Flatten(0))
def nothing(): return None
def needs(width): return nn.Linear(6, width)

class Unused(nn.Module):
    def __init__(self):
        super().__init__()
        self.used, self.idle = nn.Linear(6, 3), nn.Linear(6, 3)
    def forward(self, x): return self.used(x)

class Frozen(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(6, 6), nn.Linear(6, 3)
        self.body.requires_grad_(False)
    def forward(self, x): return self.head(torch.tanh(self.body(x)))

made = Frozen()
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A user's module, fresh for every test."""
    (tmp_path / "mine_models.py").write_text(USER_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine_models", raising=False)
    import mine_models

    yield mine_models
    sys.modules.pop("mine_models", None)


def state(model):
    return torch.cat([p.detach().ravel() for p in model.parameters()])


def seeds(seed):
    """Initialisation, batches and noise, as their documentation says."""
    start, batches, noise = np.random.SeedSequence(seed).spawn(3)
    torch.manual_seed(int(start.generate_state(1, np.uint64)[0]))
    return np.random.default_rng(batches), torch.Generator().manual_seed(int(noise.generate_state(1, np.uint64)[0]))


def slow_dpsgd(trainer, data, *, seed, size):
    """One point at a time: gradient, clip, add; then noise, division by the batch size, step."""
    x, y = torch.from_numpy(data[0]), torch.from_numpy(data[1])
    sigma, norm, batch = trainer.noise_multiplier, trainer.max_grad_norm, trainer.batch_size
    with torch.random.fork_rng():
        rng, generator = seeds(seed)
        if trainer.model == "mlp":
            model = nn.Sequential(nn.Linear(FEATURES, 32), nn.Tanh(), nn.Linear(32, 10))
        else:
            model = nn.Linear(FEATURES, 10)
            model.load_state_dict({"weight": torch.zeros(10, FEATURES), "bias": torch.zeros(10)})
    params = list(model.parameters())
    velocity = [torch.zeros_like(p) for p in params]
    empty = 0
    for _ in range(round(trainer.epochs * size / batch)):
        drawn = [i for i, u in enumerate(rng.random(len(x))) if u < batch / size]
        empty += not drawn
        total = [torch.zeros_like(p) for p in params]
        for i in drawn:
            gradient = torch.autograd.grad(cross_entropy(model(x[i : i + 1]), y[i : i + 1]), params)
            length = torch.sqrt(sum((g**2).sum() for g in gradient))
            factor = min(1.0, norm / (float(length) + 1e-6))  # Opacus adds 1e-6
            total = [t + factor * g for t, g in zip(total, gradient, strict=True)]
        with torch.no_grad():
            for p, t, v in zip(params, total, velocity, strict=True):
                noise = torch.normal(0.0, sigma * norm, p.shape, generator=generator) if sigma else 0.0
                v.mul_(trainer.momentum).add_((t + noise) / batch)
                p -= trainer.learning_rate * v
    return model, empty


@pytest.mark.parametrize(
    ("settings", "left_out", "some_empty"),
    [
        ({"model": "mlp", "batch_size": 20, "epochs": 2}, 0, False),
        ({"model": "logistic", "batch_size": 20, "epochs": 2, "momentum": 0.9, "max_grad_norm": 0.3}, 0, False),
        ({"model": "logistic", "batch_size": 1, "epochs": 1}, 0, True),
        ({"model": "mlp", "batch_size": 10, "epochs": 1, "noise_multiplier": 0.0}, 0, False),
        ({"model": "mlp", "batch_size": 20, "epochs": 2}, 1, False),
    ],
)
def test_dpsgd_is_its_slow_twin(settings, left_out, some_empty):
    """With a point left out and size = N, rate, steps and noise are those of N points."""
    trainer = DpSgd(**{"noise_multiplier": 0.7, **settings})
    data = (X[left_out:], Y[left_out:])
    twin, empty = slow_dpsgd(trainer, data, seed=5, size=N)
    assert (empty > 0) == some_empty
    model = trainer.train(data, seed=5, size=N)
    torch.testing.assert_close(state(model), state(twin), rtol=1e-4, atol=2e-6)
    first, _ = slow_dpsgd(replace(trainer, learning_rate=1e-30), data, seed=5, size=N)
    assert (state(first) - state(model)).abs().max() > 0.05  # it has moved, and not by rounding


def test_batches_are_poisson_samples(mine):
    n, rate, steps = 25, 4 / 25, 500
    data = (np.arange(n, dtype=np.float32)[:, None], np.zeros(n, dtype=np.int64))
    trainer = DpSgd(model="mine_models:Recorder", batch_size=4, epochs=80, noise_multiplier=1.0, learning_rate=1e-3)
    assert trainer.recipe(n).steps == steps
    trainer.train(data, seed=1)
    batches = [b for b in mine.seen if b]
    sizes = np.array([len(b) for b in batches] + [0] * (steps - len(batches)))
    assert len(batches) < steps  # (1 − 0.16)^25 = 1.3 % are empty
    assert all(len(set(b)) == len(b) for b in batches)
    assert abs(sizes.mean() - n * rate) < 5 * np.sqrt(n * rate * (1 - rate) / steps)
    assert 0.8 < sizes.var() / (n * rate * (1 - rate)) < 1.2  # a batch of fixed size has none
    each = np.bincount(np.concatenate(batches), minlength=n)
    assert (np.abs(each - steps * rate) < 5 * np.sqrt(steps * rate * (1 - rate))).all()
    # neither noise nor the number of classes changes what is drawn
    before = list(mine.seen)
    mine.seen.clear()
    DpSgd(model="mine_models:Recorder", batch_size=4, epochs=80, noise_multiplier=0.0).train(data, seed=1)
    assert mine.seen == before


@pytest.mark.parametrize("trainer", [Sgd(epochs=2, batch_size=8), DpSgd(epochs=2, batch_size=8, noise_multiplier=1.0)])
def test_a_seed_decides_everything(trainer):
    torch.manual_seed(1)
    before = torch.get_rng_state()
    one = trainer.train(DATA, seed=3)
    assert torch.equal(torch.get_rng_state(), before)  # the user's own generator is left alone
    torch.manual_seed(2)
    assert torch.equal(state(one), state(trainer.train(DATA, seed=3)))
    assert not torch.allclose(state(one), state(trainer.train(DATA, seed=4)), atol=1e-2)
    np.testing.assert_array_equal(trainer.losses(one, DATA), trainer.losses(one, DATA))


def test_initialisation_does_not_depend_on_noise():
    still = {"batch_size": 20, "epochs": 1, "learning_rate": 1e-30}
    states = [state(DpSgd(noise_multiplier=z, **still).train(DATA, seed=3)) for z in (0.0, 1.0)]
    assert torch.equal(*states)
    assert torch.equal(states[0], state(Sgd(**still).train(DATA, seed=3)))


def test_dropout_is_seeded_and_off_in_evaluation(mine):
    trainer = DpSgd(model="mine_models:dropout", batch_size=20, epochs=2, noise_multiplier=0.5)
    one = trainer.train(DATA, seed=3)
    assert torch.equal(state(one), state(trainer.train(DATA, seed=3)))
    one.train()
    np.testing.assert_array_equal(trainer.losses(one, DATA), trainer.losses(one, DATA))


@pytest.mark.parametrize("trainer", [Sgd, DpSgd])
def test_any_module_can_be_trained(mine, trainer):
    extra = {"noise_multiplier": 0.1} if trainer is DpSgd else {}
    settings = {"batch_size": 10, "epochs": 2, **extra}
    images = (X[:, :, None] * X[:, None, :])[:, None, :3, :2]
    words = RNG.integers(0, 30, size=(N, FEATURES))
    for name, x in [("conv", images), ("embedding", words), ("Frozen", X)]:
        made = trainer(model=f"mine_models:{name}", **settings)
        losses = made.losses(made.train((x, Y), seed=0), (x, Y))
        assert losses.shape == (N,)
        assert losses.dtype == np.float64
    flat = trainer(model="logistic", **settings)  # built-in models flatten, and take whole numbers
    assert np.isfinite(flat.losses(flat.train((images, Y), seed=0), (images, Y))).all()
    assert np.isfinite(flat.losses(flat.train((words, Y), seed=0), (words, Y))).all()


def test_a_frozen_part_stays(mine):
    trainer = DpSgd(model="mine_models:Frozen", batch_size=10, epochs=2, noise_multiplier=1.0)
    a = trainer.train(DATA, seed=0)
    b = DpSgd(model="mine_models:Frozen", batch_size=10, epochs=4, noise_multiplier=1.0).train(DATA, seed=0)
    assert torch.equal(a.body.weight, b.body.weight)
    assert not torch.equal(a.head.weight, b.head.weight)


def test_losses_are_cross_entropies_of_the_model():
    trainer = Sgd(epochs=30, batch_size=8)
    model = trainer.train(DATA, seed=0)
    scores = model(torch.from_numpy(X)).detach().numpy().astype(np.longdouble)
    expected = np.log(np.exp(scores - scores[np.arange(N), Y][:, None]).sum(axis=1))
    np.testing.assert_allclose(trainer.losses(model, DATA), expected.astype(np.float64), rtol=1e-12)
    assert trainer.losses(model, DATA).mean() < 0.3 < np.log(10)  # it has learnt
    assert trainer.losses(model, (X[:0], Y[:0])).shape == (0,)


@pytest.mark.parametrize(
    "trainer", [Sgd(model="logistic"), DpSgd(model="logistic", batch_size=20, noise_multiplier=1.0)]
)
def test_losses_do_not_saturate_where_a_model_is_sure(trainer):
    model = trainer.train(DATA, seed=0)
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        model[0].bias[1] = 60.0
        model[0].weight[1, 0] = 1.0
    loss = trainer.losses(model, (X, np.ones(N, np.int64)))  # 1e-26, which a cross-entropy in float64 calls 0
    margins = -loss - np.log(-np.expm1(-loss))
    np.testing.assert_allclose(margins, np.float32(60) + X[:, 0] - np.log(9), rtol=1e-6)
    assert len(np.unique(loss)) == N


def test_datasets_and_arrays_are_the_same():
    dataset = torch.utils.data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))
    some = torch.utils.data.Subset(dataset, [3, 1, 7, 20, 9])
    trainer = DpSgd(batch_size=2, epochs=1, noise_multiplier=1.0)
    index = [3, 1, 7, 20, 9]
    assert torch.equal(state(trainer.train(some, seed=0)), state(trainer.train((X[index], Y[index]), seed=0)))
    np.testing.assert_array_equal(arrays(some)[0], X[index])


def test_sgd_takes_as_many_steps_with_a_point_left_out(mine):
    """41 points in batches of 40 are two batches; so they are when one of the points is left out."""
    for n in (41, 40):
        mine.seen.clear()
        data = (np.arange(n, dtype=np.float32)[:, None], np.zeros(n, dtype=np.int64))
        Sgd(model="mine_models:Recorder", batch_size=40, epochs=3).train(data, seed=0, size=41)
        assert len(mine.seen) == 6
        assert sorted(mine.seen[0] + mine.seen[1]) == list(range(n))


def test_privacy_of_dpsgd():
    trainer = DpSgd(noise_multiplier=1.5, batch_size=100, epochs=10)
    assert trainer.privacy(1000) == DPSGD(sample_rate=0.1, noise_multiplier=1.5, steps=100)
    assert DpSgd(noise_multiplier=1.5, batch_size=300, epochs=1).privacy(1000).steps == 3
    assert trainer.without_noise().privacy(1000) is None
    target = DpSgd(target_eps=2.0, target_delta=1e-5)
    assert target.without_noise() == DpSgd(noise_multiplier=0.0)
    for made in (trainer, target):
        assert isinstance(made, Trainer)
        assert isinstance(made, Accountable)
        assert isinstance(made, Quietable)
        assert knows_size(made)


def test_a_target_is_met_by_the_word_of_two_accountants():
    import dp_accounting
    from dp_accounting.pld import PLDAccountant
    from opacus.accountants import PRVAccountant

    trainer = DpSgd(target_eps=2.0, target_delta=1e-5, batch_size=20, epochs=1)
    promise = trainer.privacy(1000)
    assert (promise.sample_rate, promise.steps) == (0.02, 50)
    event = dp_accounting.PoissonSampledDpEvent(0.02, dp_accounting.GaussianDpEvent(promise.noise_multiplier))
    pld = PLDAccountant(dp_accounting.NeighboringRelation.ADD_OR_REMOVE_ONE)
    pld.compose(dp_accounting.SelfComposedDpEvent(event, 50))
    prv = PRVAccountant()
    prv.history = [(promise.noise_multiplier, 0.02, 50)]
    assert prv.get_epsilon(1e-5) == pytest.approx(2.0, rel=0.01)
    assert prv.get_epsilon(1e-5) <= 2.0
    assert pld.get_epsilon(1e-5) == pytest.approx(2.0, rel=0.02)
    assert trainer.recipe(1000).noise_multiplier == promise.noise_multiplier


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DpSgd(), "either noise_multiplier or target_eps with target_delta, but got neither"),
        (lambda: DpSgd(noise_multiplier=1.0, target_eps=1.0, target_delta=1e-5), "but got both"),
        (lambda: DpSgd(target_eps=1.0), "go together, but got target_eps = 1.0, target_delta = None"),
        (lambda: DpSgd(noise_multiplier=1.0, target_delta=1e-5), "go together"),
        (lambda: DpSgd(noise_multiplier=-1.0), "noise_multiplier must be finite, 0 or more, but got -1.0"),
        (lambda: DpSgd(target_eps=1.0, target_delta=0.0), "target_delta must be above 0, but got 0.0"),
        (lambda: DpSgd(target_eps=0.001, target_delta=1e-5).privacy(1000), "target_eps must be at least 0.02"),
        (lambda: DpSgd(noise_multiplier=1.0, max_grad_norm=0.0), "max_grad_norm must be above 0, but got 0.0"),
        (
            lambda: DpSgd(noise_multiplier=1.0).train(DATA, seed=0),
            "at most the 40 points of a training set, but got 100",
        ),
        (
            lambda: Sgd(model="mpl"),
            'model must be one of logistic, mlp, cifar10-cnn, transformer, or your own function as "module:attr"',
        ),
        (lambda: Sgd(model="mpl"), 'Did you mean "mlp"?'),
        (lambda: Sgd(epochs=0), "epochs must be 1 or more, but got 0"),
        (lambda: Sgd(batch_size=1.5), "batch_size must be a whole number"),
        (lambda: Sgd(learning_rate=0), "learning_rate must be above 0, but got 0"),
        (lambda: Sgd(momentum=1.0), "momentum must be in [0, 1), but got 1.0"),
        (lambda: Sgd(device="gpu").train(DATA, seed=0), 'device must be "cpu", "cuda" or "mps", but got \'gpu\''),
        (lambda: Sgd(device="meta").train(DATA, seed=0), 'device must be "cpu", "cuda" or "mps", but got \'meta\''),
        (
            lambda: Sgd(n_classes=2).train(DATA, seed=0),
            "y must be below 2, the number of classes of model mlp, but got 2",
        ),
        (lambda: Sgd().train((X, Y - 1), seed=0), "y must be the classes from 0 up, but got -1"),
        (
            lambda: Sgd().train((X, Y + 0.5), seed=0),
            "y whole numbers, the classes from 0 up, but got float32 and float64",
        ),
        (
            lambda: Sgd().train((X[:3], Y), seed=0),
            "data must be arrays of equal length, but got the shapes (3, 6), (40,)",
        ),
        (lambda: Sgd().train((X, Y, Y), seed=0), "data must be two arrays"),
        (
            lambda: Sgd().train(7, seed=0),
            "data must be a tuple of arrays or a dataset with len() and indices, but got int",
        ),
        (lambda: Sgd().train([1, 2], seed=0), "an item of a dataset must be a tuple such as (x, y), but got int"),
        (lambda: Sgd().train([(X[0], 1), (X[0, :2], 1)], seed=0), "each of the same shape"),
        (lambda: Sgd().train((X[:0], Y[:0]), seed=0), "data must have at least one point"),
        (lambda: Sgd().losses(Sgd(epochs=1).train(DATA, seed=0), (X[:, :4], Y)), "must take points of shape (4,)"),
    ],
)
def test_bad_settings(call, message):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "batchnorm",
            "its layer 1 is a BatchNorm1d: BatchNorm cannot support training with differential privacy. Replace",
        ),
        ("bare_batchnorm", "its layer 1 is a BatchNorm1d"),
        ("Unused", "but idle.weight, idle.bias does not"),
        ("two_outputs", "y must be below 2, the number of classes of model mine_models:two_outputs, but got 2. Give"),
        ("scalar", "must give one row of class scores per point, but for one point it gave (1,)"),
        ("nothing", "must build a torch.nn.Module, but it gave a NoneType"),
        ("needs", "must build a model without arguments, but: needs() missing 1"),
        ("made", "must be a function that builds a new torch.nn.Module, but it is a Frozen"),
        ("Frosen", "mine_models has no 'Frosen'. Did you mean \"Frozen\"?"),
    ],
)
def test_bad_models(mine, name, message):
    with pytest.raises(InvalidInput) as caught:
        DpSgd(model=f"mine_models:{name}", batch_size=10, epochs=1, noise_multiplier=1.0).train(DATA, seed=0)
    assert message in str(caught.value)


def test_a_device_that_is_not_there(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InvalidInput, match="device must be one that this machine has, but got 'cuda:1'"):
        Sgd(device="cuda:1").train(DATA, seed=0)


@pytest.mark.parametrize(
    ("missing", "trainer", "words"),
    [
        ("torch", Sgd(epochs=1), "this needs PyTorch. Install it with: pip install '.[torch]'"),
        ("opacus", DpSgd(noise_multiplier=1.0, batch_size=10), "this needs Opacus. Install it with: pip install"),
        ("sklearn", Classifier(), "this needs scikit-learn. Install it with: pip install '.[torch]'"),
    ],
)
def test_missing_extras(monkeypatch, missing, trainer, words):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(MissingExtra) as caught:
        trainer.train(DATA, seed=0)
    assert words in str(caught.value)


# Classifiers


def test_a_classifier_gives_the_log_loss_of_each_point():
    from sklearn.metrics import log_loss

    trainer = Classifier(settings={"C": 10.0})
    x = X.astype(np.float64)
    model = trainer.train((x, Y), seed=0)
    assert model.C == 10.0
    assert trainer.losses(model, (x, Y)).mean() == pytest.approx(log_loss(Y, model.predict_proba(x)), rel=1e-9)


@pytest.mark.parametrize("solver", ["lbfgs", "liblinear"])
def test_a_classifiers_losses_do_not_saturate(solver):
    trainer = Classifier(settings={"C": 100.0, "solver": solver})
    x = np.concatenate([X[:, :2] - 10, X[:, :2] + 10]).astype(np.float64)
    y = np.repeat([0, 1], N)
    model = trainer.train((x, y), seed=0)
    loss = trainer.losses(model, (9 * x, y))  # a probability of 1 in floats
    assert (loss > 0).all()
    assert len(np.unique(loss)) == 2 * N
    margin = -np.log(np.expm1(loss))
    np.testing.assert_allclose(margin, np.where(y == 1, 1, -1) * model.decision_function(9 * x), rtol=1e-9)
    wrong = trainer.losses(model, (9 * x, 1 - y))
    assert wrong.max() == pytest.approx(-np.log(trainer.smallest_probability))
    assert trainer.losses(model, (x[:1], np.array([7])))[0] == pytest.approx(-np.log(trainer.smallest_probability))


def test_a_classifier_is_seeded():
    trainer = Classifier(estimator="sklearn.ensemble:RandomForestClassifier", settings={"n_estimators": 5})
    a, b, c = (trainer.train(DATA, seed=s) for s in (1, 1, 2))
    held = (RNG.normal(size=(50, FEATURES)), np.zeros(50, dtype=int))
    np.testing.assert_array_equal(trainer.losses(a, held), trainer.losses(b, held))
    assert (trainer.losses(a, held) != trainer.losses(c, held)).any()
    fixed = Classifier(estimator=trainer.estimator, settings={"n_estimators": 5, "random_state": 9})
    assert fixed.train(DATA, seed=1).random_state == 9


def test_certain_errors_and_labels_that_were_never_seen_have_a_finite_loss():
    trainer = Classifier(estimator="sklearn.neighbors:KNeighborsClassifier", settings={"n_neighbors": 1})
    model = trainer.train((X.reshape(N, 2, 3), Y), seed=0)
    losses = trainer.losses(model, (X[:2].reshape(2, 2, 3), np.array([Y[0], 77])))
    np.testing.assert_allclose(losses, [0.0, -np.log(1e-12)])


def test_steps_of_a_pipeline_are_seeded_and_take_texts(tmp_path, monkeypatch):
    (tmp_path / "mine_pipeline.py").write_text(
        "from sklearn.feature_extraction.text import TfidfVectorizer\n"
        "from sklearn.ensemble import RandomForestClassifier\n"
        "from sklearn.pipeline import make_pipeline\n"
        "def build(): return make_pipeline(TfidfVectorizer(), RandomForestClassifier(3))\n"
        "class Own:\n"
        "    classes_ = [0, 1]\n"
        "    def fit(self, x, y): return self\n"
        "    def predict_proba(self, x): return [[0.25, 0.75]] * len(x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    trainer = Classifier(estimator="mine_pipeline:build")
    texts = (np.array(["a good film", "a bad film", "good good", "bad bad"]), np.array(["+", "-", "+", "-"]))
    model = trainer.train(texts, seed=4)
    assert model.get_params()["randomforestclassifier__random_state"] is not None
    assert trainer.losses(model, texts).shape == (4,)
    own = Classifier(estimator="mine_pipeline:Own")
    np.testing.assert_allclose(own.losses(own.train(DATA, seed=0), (X[:2], [0, 1])), -np.log([0.25, 0.75]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Classifier(estimator="forest"), "estimator must be a class as \"module:attr\", but got 'forest'"),
        (lambda: Classifier(settings=[1]), "settings must be a table of the estimator's arguments, but got [1]"),
        (lambda: Classifier(smallest_probability=0.0), "smallest_probability must be in (0, 1), but got 0.0"),
        (lambda: Classifier(settings={"c": 1}).train(DATA, seed=0), "does not take these settings: "),
        (lambda: Classifier(settings={"C": -1}).train(DATA, seed=0), "could not be fitted: The 'C' parameter"),
        (lambda: Classifier(estimator="sklearn.svm:LinearSVC").train(DATA, seed=0), "but lacks predict_proba"),
        (lambda: Classifier(estimator="sklearn:__version__").train(DATA, seed=0), "must be a class, but it is a str"),
    ],
)
def test_bad_classifiers(call, message):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert message in str(caught.value)
