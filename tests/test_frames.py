"""DataFrames as data: a trainer gets rows of the same kind; canaries, labels and equal records."""

from dataclasses import dataclass

import numpy as np
import pytest

import epsgauge as eg
from epsgauge.data.canaries.table import canaries_of
from epsgauge.data.points import as_points, first_of_each
from epsgauge.errors import InvalidInput
from epsgauge.games.roles import Roles
from epsgauge.runner.executors import InProcess
from epsgauge.runner.store import FILE, Store
from epsgauge.trainers.points import labelled

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 2))
COUNTS = RNG.integers(0, 9, 300)
CITY = np.array(["Oslo", "Rom"])[RNG.integers(0, 2, 300)]
Y = RNG.integers(0, 2, 300)


def made(library, **more):
    columns = {"age": X[:, 0], "income": X[:, 1], "visits": COUNTS, "city": CITY.tolist(), **more}
    return pytest.importorskip(library).DataFrame(columns)


@pytest.fixture(params=["pandas", "polars"])
def library(request):
    pytest.importorskip(request.param)
    return request.param


def test_rows_keep_their_kind_and_are_copies(library):
    frame = made(library)
    points = as_points(frame, "data")
    some = points.take(np.array([5, 3]))
    assert type(some) is type(frame)
    assert list(some.columns) == ["age", "income", "visits", "city"]
    assert np.asarray(some["age"]).tolist() == X[[5, 3], 0].tolist()
    if library == "pandas":
        some["age"] = 0.0
    assert np.asarray(points.take(np.array([5]))["age"])[0] == X[5, 0]


def test_features_and_labels_side_by_side(library):
    frame = made(library)
    labels = type(frame["visits"])(Y)
    x, y = as_points((frame, labels), "data").take(np.arange(7))
    assert (len(x), np.asarray(y).tolist()) == (7, Y[:7].tolist())


def test_equal_rows_are_known(library):
    frame = made(library)
    twice = as_points(frame, "data").take(np.r_[np.arange(20), np.arange(5)])
    keys = as_points(twice, "data").keys()
    assert first_of_each(keys).tolist() == list(range(20))


def test_canaries_are_rows_of_the_data(library):
    frame = made(library, label=Y)
    names, zeros, ones = canaries_of("auto", frame)
    assert {"opposite", "label", "outlier"} <= set(names)
    extended = as_points(frame, "data").extended(ones).extended(zeros)
    assert len(extended) == 300 + 2 * len(names)
    last = extended.take(np.arange(300, len(extended)))
    visits = np.asarray(last["visits"])
    assert visits.dtype == COUNTS.dtype  # whole numbers stay whole, and in their range
    assert visits.min() >= 0
    assert visits.max() <= 8
    assert set(np.asarray(last["label"]).tolist()) <= {0, 1}


def test_one_frame_has_labels_by_name(library):
    x, y = labelled(made(library, target=Y)[["age", "income", "target"]])
    assert (x.shape, y.tolist()) == ((300, 2), Y.tolist())
    with pytest.raises(InvalidInput, match="a DataFrame needs one column called label, labels, target, class or y"):
        labelled(made(library))


@dataclass(frozen=True)
class ByName:
    """Counts on columns by their names, as code for DataFrames does."""

    noise_multiplier: float = 1.0

    def train(self, data, *, random_state):
        assert 0 <= random_state < 2**32
        rng = np.random.RandomState(random_state)
        return np.asarray(data["age"]).sum() + self.noise_multiplier * rng.normal()

    def losses(self, model, points):
        return (np.asarray(points["age"]) - model) ** 2


def test_a_run_on_a_frame(library, tmp_path):
    plan = eg.Plan(
        name="frame",
        n_models=24,
        data=lambda: made(library),
        trainer=ByName(),
        game={"train_size": 50, "reference_size": 20, "rehearsal_models": 44},
    )
    run = eg.run(plan, out=tmp_path / "run", executor=InProcess())
    assert run.complete
    assert run.canary is not None


@dataclass(frozen=True)
class Sum:
    def train(self, data, *, seed):
        return data[0].sum(axis=0) + np.random.default_rng(seed).normal(size=4)

    def losses(self, model, points):
        return ((points[0] - model) ** 2).sum(axis=1)


def test_a_table_of_few_distinct_rows_can_be_audited(tmp_path):
    """Records of the base may be equal to each other; reference points are distinct, and none of the base is one."""
    x = RNG.integers(0, 3, (600, 4))
    distinct = len(np.unique(x, axis=0))
    game = {"train_size": 200, "reference_size": 40, "challenge": "explicit", "canaries": "opposite"}
    plan = eg.Plan(name="few", n_models=8, data=lambda: (x.astype(float), x[:, 0]), trainer=Sum(), game=game)
    run = eg.run(plan, out=tmp_path / "run", executor=InProcess())
    assert run.complete
    with Store.read(tmp_path / "run" / FILE) as store:
        roles = Roles.from_arrays(store.arrays())
    assert len(roles.base) == 199 > distinct
    assert len(np.unique(x[roles.reference], axis=0)) == 40
    assert not {tuple(row) for row in x[roles.reference].tolist()} & {tuple(row) for row in x[roles.base].tolist()}
    drawn = plan.changed(game={**game, "challenge": "average", "canaries": None})
    with pytest.raises(InvalidInput, match=rf"at least 241 distinct points .* but has {distinct}\. .* may be equal"):
        eg.run(drawn, out=tmp_path / "drawn", executor=InProcess())
