"""What a training's own randomness is worth: right for Gaussian noise, infinite without any, and never a promise."""

import json
import math
from dataclasses import dataclass

import numpy as np
import pytest
from command_line import ask

import epsgauge as eg
from epsgauge.mechanisms.gaussian import Gaussian
from epsgauge.probing.contents import weights

DATA = (np.arange(40.0) % 2, np.arange(40))  # values and ids: one record moves the sum by at most 1
LONG = 400  # weights


@dataclass(frozen=True)
class Sum:
    """A sum in many numbers, each with Gaussian noise of its own: together it moves by at most √LONG."""

    sigma: float = 40.0
    fresh: bool = False

    def train(self, data, *, seed, size=None):
        rng = np.random.default_rng() if self.fresh else np.random.default_rng(seed)
        return [data[0].sum() + rng.normal(0.0, self.sigma, LONG)]

    def losses(self, model, points):
        return np.zeros(len(points[0]))


def test_gaussian_noise_is_worth_what_it_is():
    found = eg.intrinsic(Sum(), DATA, n_seeds=40, n_neighbours=12, train_size=20)
    assert found.sensitivity == pytest.approx(math.sqrt(LONG), rel=1e-12)
    assert found.scatter == pytest.approx(40.0, rel=5 * math.sqrt(0.5 / (39 * LONG)))
    assert found.eps == pytest.approx(Gaussian(40.0 / math.sqrt(LONG)).eps_at(1e-5), rel=0.05)
    assert found.promise == "estimate"
    assert found.n_weights == LONG


def test_a_slow_twin():
    """The same numbers, one training at a time, from the seeds and sets that the docstring names."""
    found = eg.intrinsic(Sum(3.0), DATA, n_seeds=3, n_neighbours=5, train_size=20, adjacency="add-remove", seed=4)
    rng = np.random.default_rng(4)
    members = rng.permutation(40)[:20]
    seeds = [int(s) >> 1 for s in np.random.SeedSequence([4, 1]).generate_state(3, np.uint64)]

    def model(indices, seed):
        return Sum(3.0).train((DATA[0][indices], DATA[1][indices]), seed=seed)[0]

    own = [model(members, s) for s in seeds]
    moved = [math.dist(model(np.delete(members, int(rng.integers(20))), seeds[k % 3]), own[k % 3]) for k in range(5)]
    assert found.sensitivity == pytest.approx(max(moved), rel=1e-12)
    assert found.scatter == pytest.approx(math.sqrt(np.mean([np.var(w, ddof=1) for w in np.transpose(own)])), rel=1e-12)


def test_without_randomness_it_is_worth_nothing():
    found = eg.intrinsic(Sum(0.0), DATA, n_seeds=3, n_neighbours=8, train_size=20)
    assert math.isinf(found.eps)
    assert "gives nothing" in found.sentence
    constant = eg.intrinsic(Sum(1.0), (0 * DATA[0], DATA[1]), n_seeds=3, n_neighbours=4, train_size=20)
    assert constant.eps == 0.0


def test_noise_is_turned_off():
    pytest.importorskip("torch")
    from epsgauge.data.digits import digits
    from epsgauge.trainers.dpsgd import DpSgd

    given = {"n_seeds": 3, "n_neighbours": 3, "train_size": 60}
    still, noisy = (
        eg.intrinsic(DpSgd(model="logistic", epochs=1, batch_size=20, noise_multiplier=noise), digits(), **given)
        for noise in (0.0, 3.0)
    )
    assert still == noisy
    assert (noisy.promise, noisy.quiet, noisy.n_weights) == ("estimate", True, 650)


def test_the_command(tmp_path):
    (tmp_path / "plan.toml").write_text(
        'name = "a"\nn_models = 20\n[data]\nuse = "digits"\n[trainer]\nuse = "classifier"\n[game]\ntrain_size = 60\n'
    )
    found = json.loads(ask("intrinsic", tmp_path / "plan.toml", "--seeds", "2", "--neighbours", "2", "--json"))
    assert found["promise"] == "estimate"
    assert found["sentence"].startswith("Estimate: the training's own randomness gives nothing, ε = ∞")
    assert found["scatter"] == 0.0


def test_an_estimate_says_so_wherever_it_is_shown():
    found = eg.intrinsic(Sum(), DATA, n_seeds=3, n_neighbours=2, train_size=20)
    for said in (str(found), found.sentence, json.dumps(found.to_json())):
        assert "stimate" in said
        assert "guaranteed" not in said
    assert "An estimate, not a guarantee" in str(found)


def test_weights_of_models():
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(2, 3)
    assert sorted(weights({"net": layer, "steps": 7, "ids": np.arange(4)})) == sorted(
        [*layer.weight.detach().double().numpy().ravel(), *layer.bias.detach().double().numpy()]
    )


@pytest.mark.parametrize(
    ("trainer", "given", "sentence"),
    [
        (Sum(fresh=True), {}, "two trainings with one seed must give the same weights"),
        (lambda data, points, seed: 0, {}, "models whose weights can be compared"),
        (Sum(math.nan), {}, "numbers that are not finite"),
        (Sum(), {"train_size": 40}, "train_size must be below the 40 points"),
        (Sum(), {"adjacency": "label-only"}, 'adjacency must be "substitute" or "add-remove"'),
        (Sum(), {"delta": 0.0}, "delta above 0"),
        (Sum(), {"n_seeds": 1}, "n_seeds must be a whole number, 2 or more"),
    ],
)
def test_what_is_refused(trainer, given, sentence):
    with pytest.raises(eg.InvalidInput, match=sentence):
        eg.intrinsic(trainer, DATA, **{"n_seeds": 2, "n_neighbours": 1, "train_size": 20, **given})
