"""Channels of one's own, from the trainer through the store to an attack."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from epsgauge.attacks.attack import Attack
from epsgauge.attacks.table import ATTACKS, attack_of
from epsgauge.auditing.audit import audit
from epsgauge.errors import InvalidInput
from epsgauge.games.seeds import Branch, training_seed
from epsgauge.runner.executors import InProcess
from epsgauge.runner.plan import Plan
from epsgauge.runner.progress import Enough, Watch
from epsgauge.runner.run import run
from epsgauge.runner.trial import attempt
from epsgauge.runner.view import Run
from epsgauge.trainers.protocol import checked_channels

PIPELINES = Path(__file__).parent / "pipelines"


def plan(use="margins:Margins", *, n_models=8, game=None, **settings):
    return Plan(
        name="margins",
        n_models=n_models,
        data={"use": "fast:data"},
        trainer={"use": use, **settings},
        game={"train_size": 20, "pairs_per_model": 2, "reference_size": 10, **(game or {})},
        folder=PIPELINES,
    )


def here(a_plan, out, **kw):
    return run(a_plan, out=out, executor=InProcess(), **kw)


class Own(Attack):
    name = "own"
    meaning = "the margin of z1 over that of z0"
    needs = ("margin",)

    def score(self, signals):
        return signals["margin"][..., 1] - signals["margin"][..., 0]


class StopAfter(Watch):
    def __init__(self, n):
        self.n = n

    def finished_one(self, outcome, progress):
        if progress.n_here == self.n:
            raise Enough


@pytest.mark.parametrize("use", ["margins:Margins", "margins:observe"])
def test_what_a_trainer_gives_comes_back_and_can_be_attacked(tmp_path, use):
    with pytest.raises(Enough):
        here(plan(use), tmp_path / "a", watch=StopAfter(3))
    assert Run.open(tmp_path / "a").signals()["margin"].shape == (3, 2, 2)
    here(plan(use), tmp_path / "a")
    run(plan(use), out=tmp_path / "workers", workers=2)
    signals, other = (Run.open(tmp_path / name).signals() for name in ("a", "workers"))
    assert {name: values.shape for name, values in signals.channels.items()} == {
        "loss": (8, 2, 2),
        "reference": (8, 10),
        "margin": (8, 2, 2),
        "queries": (8, 2, 2, 3),
        "weights": (8, 3),
    }
    for name, values in signals.channels.items():
        assert values.tobytes() == other[name].tobytes()
    assert np.array_equal(signals["margin"], 10.0 - signals["loss"])
    assert np.array_equal(signals["queries"], signals["loss"][..., None] + [0.0, 1.0, 2.0])
    assert len(np.unique(signals["weights"])) == 24
    plain = here(plan("fast:Mean"), tmp_path / "plain").signals()
    assert list(plain.channels) == ["loss", "reference"]
    assert plain["loss"].tobytes() == signals["loss"].tobytes()
    scores = attack_of(Own).scores(signals)
    difference = ATTACKS["difference"].scores(signals)
    np.testing.assert_allclose(scores.score, difference.score, rtol=0, atol=1e-12)
    assert audit(scores, rule="given", threshold=0.0).judged.tally == (
        audit(difference, rule="given", threshold=0.0).judged.tally
    )
    with pytest.raises(InvalidInput, match="the attack own needs the channel 'margin', but this run has only loss"):
        Own().scores(plain)


def test_there_is_no_z0_in_an_add_remove_game(tmp_path):
    signals = here(plan(game={"adjacency": "add-remove"}), tmp_path).signals()
    for name in ("loss", "margin", "queries"):
        assert np.isnan(signals[name][:, :, 0]).all()
        assert np.isfinite(signals[name][:, :, 1]).all()
    with pytest.raises(InvalidInput, match="the attack own must give finite scores, but 16 of 16 are not"):
        Own().scores(signals)


def test_a_trial_and_a_ranking_read_the_losses_alone(tmp_path):
    assert attempt(plan())[0].member_loss == attempt(plan("fast:Mean"))[0].member_loss
    worst = {"challenge": "worst", "pool_size": 6, "ranking_models": 32, "train_size": 12}
    assert here(plan(n_models=2, game=worst), tmp_path).complete


def test_models_of_one_run_give_the_same_channels(tmp_path):
    odd = [training_seed(0, Branch.audited, index) for index in (2, 5)]
    found = here(plan(odd=odd), tmp_path)
    assert (found.n_done, found.failed_models.tolist()) == (6, [2, 5])
    assert found.signals()["weights"].shape == (6, 3)
    assert "every model of a run must give the same channels" in found.failed[0].error
    assert "weights [3], but this one gave" in found.failed[0].error


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"margin": [1.0, 2.0]}, 'channels must have "loss", one float for each point, but got margin.'),
        ({}, 'channels must have "loss", one float for each point, but got none.'),
        (
            {"loss": [1.0, 2.0], "reference": [1.0]},
            'and not "reference" or "population", which hold the losses on reference points',
        ),
        ({"loss": [1.0, 2.0], "a b": [1.0]}, "must be letters, digits and _, and not"),
        ({"loss": [1.0, 2.0], 3: [1.0]}, "but got 3."),
        ({"loss": [1.0]}, "losses must be one float for each of the 2 points, but got shape (1,)."),
        ({"loss": [1.0, 2.0], "margin": ["x"]}, "channel margin must be an array of floats, but got list."),
        (
            {"loss": [1.0, 2.0], "margin": [np.nan, 2.0]},
            "channel margin must be finite, but 1 of its 2 numbers are not.",
        ),
    ],
)
def test_channels_that_are_refused(given, sentence):
    with pytest.raises(InvalidInput) as caught:
        checked_channels(given, 2)
    assert sentence in str(caught.value)


def test_numbers_of_any_kind_are_channels():
    torch = pytest.importorskip("torch")
    found = checked_channels({"loss": torch.tensor([1.0, 2.0], requires_grad=True), "count": 3}, 2)
    assert found["loss"].tolist() == [1.0, 2.0]
    assert (found["count"].shape, found["count"].dtype) == ((), np.float64)
    one = torch.tensor(3.0, requires_grad=True)
    assert checked_channels([one, one * 2], 2)["loss"].tolist() == [3.0, 6.0]
    assert checked_channels(torch.tensor([1.0, 2.0], dtype=torch.bfloat16), 2)["loss"].tolist() == [1.0, 2.0]
    assert checked_channels(np.ma.array([1.0, 2.0]), 2)["loss"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("raw", [np.array([1 + 2j, 3]), [np.complex64(1), 2.0], {"loss": [1.0, 2.0], "extra": 1j}])
def test_complex_numbers_do_not_lose_a_part(raw):
    with pytest.raises(InvalidInput, match=r"but got complex numbers. Give their real part, or the parts as two chann"):
        checked_channels(raw, 2)


def test_numbers_that_are_masked_are_refused():
    with pytest.raises(InvalidInput, match=r"must be whole arrays, but 1 numbers of one are masked"):
        checked_channels(np.ma.array([1.0, 2.0], mask=[True, False]), 2)
