"""What a script does before its training: seeds, generators that are not seeded, and transformers of its records."""

from __future__ import annotations

import os
import random
import secrets
from types import SimpleNamespace

import numpy as np
import pytest

from epsgauge.probing.records import records
from epsgauge.probing.sampling import _stays, _used_again, steps_needed
from epsgauge.scripts.frames import Place
from epsgauge.scripts.preparation import Fit, Fits, prepared
from epsgauge.scripts.randomness import Randomness, Seeding

sklearn = pytest.importorskip("sklearn")
torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)
X = RNG.gamma(2.0, 3.0, (120, 4))
Y = (X[:, 0] > 5).astype(int)


# Transformers


def of_scikit_learn():
    from sklearn.decomposition import PCA
    from sklearn.feature_selection import SelectKBest
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, StandardScaler

    private = {
        "scaled": (StandardScaler(), X, ()),
        "scaled to [0, 1]": (MinMaxScaler(), X, ()),
        "components": (PCA(2), X, ()),
        "selected": (SelectKBest(k=20), RNG.normal(size=(120, 40)), (Y,)),
        "in a pipeline": (make_pipeline(StandardScaler(), PCA(2)), X, ()),
        "imputed": (SimpleImputer(), np.where(RNG.random(X.shape) < 0.1, np.nan, X), ()),
    }
    public = {
        "a function": (FunctionTransformer(np.log1p), X, ()),
        "each record by itself": (Normalizer(), X, ()),
        "imputed by 0": (
            SimpleImputer(strategy="constant", fill_value=0),
            np.where(RNG.random(X.shape) < 0.1, np.nan, X),
            (),
        ),
        "scaled by nothing": (StandardScaler(with_mean=False, with_std=False), X, ()),
    }
    return private, public


def seen(estimator, rows, more, trained_on=None):
    estimator.fit(rows, *more)
    given = estimator.transform(rows) if trained_on is None else estimator.transform(trained_on)
    data = torch.utils.data.TensorDataset(torch.tensor(given, dtype=torch.float32), torch.tensor(Y[: len(given)]))
    return prepared(data, [Fit(estimator, rows, more, {}, Place("fit", 3, "train.py"))])


@pytest.mark.parametrize("name", of_scikit_learn()[0])
def test_a_transformer_fitted_to_the_records(name):
    found = seen(*of_scikit_learn()[0][name])
    assert found.fitted.endswith(" in line 3 of train.py"), found
    assert "with another record in place of number" in found.changed


@pytest.mark.parametrize("name", of_scikit_learn()[1])
def test_a_transformer_that_does_not_depend_on_them(name):
    assert not seen(*of_scikit_learn()[1][name]).fitted


def test_rows_that_it_was_fitted_to():
    from sklearn.preprocessing import StandardScaler

    assert seen(StandardScaler(), X, (), X[:80]).fitted, "fitted before the records were split"
    assert not seen(StandardScaler(), X[80:], (), X[:80]).fitted, "fitted to others, which may be public"
    assert prepared(np.zeros((30_000, 1)), []) is None, "too many"
    assert prepared(Noisy(), []) is None, "augmented"


class Noisy:
    def __len__(self):
        return 5

    def __getitem__(self, i):
        return np.random.default_rng().normal(size=3)


def test_a_part_of_records_that_were_standardised_together():
    whole = torch.utils.data.TensorDataset(torch.tensor((X - X.mean(axis=0)) / X.std(axis=0)))
    part = torch.utils.data.Subset(whole, range(80))
    assert prepared(part, []).columns == "4 numbers of 4 in each record have"


def test_fits_are_followed(monkeypatch):
    from sklearn import base
    from sklearn.preprocessing import StandardScaler

    monkeypatch.setattr(base, "_fit_context", base._fit_context)
    fits = Fits()
    fits.install()

    class Twice(StandardScaler):
        @base._fit_context(prefer_skip_nested_validation=True)
        def fit(self, X, y=None):  # noqa: N803
            return super().fit(X)

    Twice().fit(X)
    (one,) = fits
    assert one.rows is X
    assert one.place.file == "test_scripts_before.py"


# Seeds


@pytest.fixture
def randomness():
    """One that follows this process, until the test ends."""
    places = [(os, "urandom"), (random, "_urandom"), (random.Random, "seed"), (random, "seed"), (np.random, "seed")]
    places += [(torch, "manual_seed"), (torch, "seed"), (torch.random, "seed")]
    before = [(owner, name, getattr(owner, name)) for owner, name in places]
    states = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    found = Randomness("train.py --seed 123456789")
    found.install()
    yield found
    for owner, name, value in before:
        setattr(owner, name, value)
    random.setstate(states[0]), np.random.set_state(states[1]), torch.set_rng_state(states[2])  # noqa: NPY002


def drawn():
    own = random.Random()
    return (
        np.random.default_rng().normal(),
        np.random.RandomState().normal(),
        secrets.token_bytes(4),
        own.random(),
        torch.seed(),
        torch.randn(1).item(),
    )


def test_what_is_drawn_from_the_system_depends_on_the_seed(randomness):
    randomness.begin(1)
    one = drawn()
    randomness.begin(1)
    assert drawn() == one
    randomness.begin(2)
    other = drawn()
    assert all(a != b for a, b in zip(one, other, strict=True))
    assert all(a != b for a, b in zip(other, drawn(), strict=True)), "each call draws other numbers"


def test_generators_that_the_script_made_get_other_numbers_unless_they_are_seeded(randomness):
    free = [np.random.default_rng(), np.random.RandomState(), random.Random()]
    fixed = [np.random.default_rng(0), np.random.RandomState(0), random.Random(0)]
    free.append(free[0].spawn(1)[0])

    def numbers(generators):
        return [g.random() if hasattr(g, "random") else g.random_sample() for g in generators]

    randomness.hold()
    first = [np.random.default_rng(0).random(), np.random.RandomState(0).random_sample(), random.Random(0).random()]
    randomness.begin(1)
    one = numbers(free)
    assert numbers(fixed) == first
    randomness.begin(2)
    assert all(a != b for a, b in zip(one, numbers(free), strict=True))


def test_seeds_that_a_script_sets_again_and_again_stay_apart(randomness):
    randomness.begin(7)
    found = []
    for seed in (np.int64(1), np.int64(2), None, None):
        np.random.seed(seed)  # noqa: NPY002
        found.append(np.random.normal())  # noqa: NPY002
    assert len(set(found)) == 4
    np.random.seed(np.int64(1))  # noqa: NPY002
    assert np.random.normal() == found[0]  # noqa: NPY002


def test_which_seeds_are_chosen(randomness):
    torch.manual_seed(42)
    assert randomness.chosen["torch"].place.file == "test_scripts_before.py"
    assert randomness.chosen["torch"].said.startswith("torch.manual_seed(42), in line")
    np.random.seed(987654321)  # noqa: NPY002
    random.seed(123456789)
    assert list(randomness.chosen) == ["torch", "random"], "one is neither small nor in the script"
    torch.seed()
    assert list(randomness.chosen) == ["random"]
    trainer = Seeding(42, Place("Trainer", 5, "train.py")).said
    assert trainer.startswith("Trainer with seed 42, in line 5 of train.py, makes the noise the same in every training")
    assert "TrainingArguments(seed=...)" in trainer


# Records and batches


def test_records_of_unequal_length():
    names = [("a" * n, 0) for n in (3, 9, 2, 5)]
    data = [(torch.zeros(len(name)), label) for name, label in names] * 5
    found = records(data, points_of(data), np.random.default_rng(0), 20)
    assert found.lengths == (2, 1)
    same = [{"x": torch.zeros(3), "mask": torch.ones(3), "more": object()}] * 20
    assert records(same, points_of(same), np.random.default_rng(0), 20).lengths is None


def points_of(data):
    from epsgauge.data.points import as_points

    return as_points(data, "data")


@pytest.mark.parametrize("rate", [0.01, 0.05, 0.2, 0.9])
def test_batches_that_are_used_again(rate):
    steps, rng = steps_needed(rate), np.random.default_rng(1)
    pipeline = SimpleNamespace(privacy=SimpleNamespace(sample_rate=rate))

    def found(took):
        return _used_again(pipeline, SimpleNamespace(steps=took))

    assert not any(found(rng.random((3, 6, steps)) < rate) for _ in range(300))
    assert not any(found((rng.random((3, 6, steps)) < rate) & (rng.random((3, 6, 1)) < 0.5)) for _ in range(100))
    if rate < 0.1:
        twice = found(np.repeat(rng.random((3, 6, steps // 2)) < rate, 2, axis=2))
        assert twice.code == "P155"
        assert "took part in the next step" in twice.sentence
        again = found(np.tile(rng.random((3, 6, steps // 2)) < rate, (1, 1, 2)))
        assert steps // 2 > 64 or again.code == "P155"


def test_records_that_show_in_all_later_updates():
    steps = np.zeros((3, 6, 20), dtype=bool)
    steps[:, :, 5:] = True
    assert _stays(SimpleNamespace(steps=steps))
    steps[0, 0, 12] = False
    assert not _stays(SimpleNamespace(steps=steps))
    assert not _stays(SimpleNamespace(steps=np.ones_like(steps))), "all of them take part in every step"
