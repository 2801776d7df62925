"""Probes of loops that were not edited: the clipping norm is measured, and neither losses nor a switch is needed."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math

import numpy as np
import pytest
from command_line import refused, told

import epsgauge as eg
from epsgauge.errors import InvalidInput
from epsgauge.probing.ball import radius
from zoo import network as bugs
from zoo import small


def result_of(probe, name):
    return next(f for f in probe.findings if f.name == name)


def names(probe):
    return [f.name for f in probe.refuted]


class Restated:
    """A pipeline of the zoo that says something else, or nothing, of its clipping norm."""

    def __init__(self, inner, *, switch=True, **stated):
        self._inner, self._stated, self.privacy = inner, stated, inner.privacy
        if switch:
            self.without_noise = lambda: Restated(dataclasses.replace(inner, noise_multiplier=0.0), **stated)

    def train(self, data, *, seed, size=None, watch=None):
        def shown(step, update, **_):
            return watch(step, update, **self._stated)

        sized = {"size": size} if "size" in inspect.signature(self._inner.train).parameters else {}
        return self._inner.train(data, seed=seed, watch=None if watch is None else shown, **sized)


def probed(trainer, **more):
    return eg.probe(trainer, bugs.data(), **{"train_size": 500, **more})


def test_the_smallest_ball():
    assert radius([np.zeros(3)]) == 0
    assert radius([np.zeros(2), np.array([2.0, 0.0])]) == pytest.approx(1)
    assert radius(list(np.eye(3))) == pytest.approx(math.sqrt(2 / 3), rel=1e-6)
    assert radius([np.array([np.inf])]) == math.inf
    rng = np.random.default_rng(0)
    points = rng.normal(size=(20, 500))
    points /= np.linalg.norm(points, axis=1)[:, None]
    assert radius(list(points)) <= 1  # of a ball that holds them
    assert radius([*points, -points[0]]) == pytest.approx(1, rel=1e-3)
    assert radius(list(points + 5.0)) == pytest.approx(radius(list(points)), rel=1e-6)


# The clipping norm is not stated


@pytest.mark.parametrize("adjacency", ["add-remove", "substitute"])
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in ("noise with the clipping norm", "projected sum") else pytest.mark.long)
        for name in bugs.TWINS
    ],
)
def test_no_twin_is_refuted_without_a_clipping_norm(name, adjacency):
    for switch in (True, False):
        found = probed(Restated(bugs.TWINS[name](), switch=switch), adjacency=adjacency)
        assert not found.refuted, str(found)


def test_how_far_a_record_moves_an_update_is_measured():
    found = probed(Restated(bugs.NoiseWithClip()))
    assert "moves an update by 4, as a clipping norm of 4 does, or one of 200 and a divisor of 50." in str(
        result_of(found, "scale").sentence
    )
    assert "at most 2.0" in result_of(found, "noise").sentence
    assert not [f for f in found.findings if f.result == "not tested"]
    assert "The scale is as far as any record" in result_of(found, "sensitivity").sentence
    assert [f.name for f in probed(Restated(bugs.Correct()), only=["noise"]).findings] == ["scale", "noise"]


# Bugs that move records farther are found by their noise, which is less in comparison.
FOUND_BY = {
    "no noise": "noise",
    "noise without the clipping norm": "noise",
    "no clipping": "noise",
    "batch clipped": "clipping",
    "divided before clipping": "noise",
    "layers clipped": "noise",
    "batches of fixed size": "Poisson batches",
    "same noise in all steps": "fresh noise",
    "rate of one worker": "sampling rate",
    "best step": "bypass",
}


FIRST = {by: name for name, by in reversed(FOUND_BY.items())}  # of the bugs that each finding refutes


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in FIRST.values() else pytest.mark.long) for name in FOUND_BY]
)
def test_bugs_are_found_without_a_clipping_norm_and_without_a_switch(name):
    found = probed(Restated(bugs.BUGS[name](), switch=False))
    assert FOUND_BY[name] in names(found), str(found)


def test_a_record_that_cannot_be_measured_is_one_sentence():
    class Unseeded(bugs.Correct):
        def train(self, data, *, seed, size=None, watch=None):
            return super().train(data, seed=int(np.random.default_rng().integers(2**31)), size=size, watch=watch)

    class ByContent(bugs.Correct):
        def in_batch(self, x):
            np.random.normal(size=int((x.mean(axis=1) < 0.3).sum()))  # noqa: NPY002
            return x

    for trainer, words in ((Unseeded(), "two trainings with one seed differ"), (ByContent(), "other random numbers")):
        with pytest.raises(InvalidInput, match=f"cannot be measured, as {words}.* max_grad_norm"):
            probed(Restated(trainer))


# A clipping norm that is stated wrongly


def test_a_wrong_norm_or_divisor_is_named():
    """Both noise and records are off by it. Less noise than that is found as well, and its ε is no larger than true."""
    for stated in ({"max_grad_norm": 50.0}, {"max_grad_norm": 1.0, "divisor": 0.02}, {"max_grad_norm": 0.1}):
        found = probed(Restated(bugs.Correct(), **stated))
        assert names(found) == ["scale"], str(found)
        assert found.refuted[0].code == "P140"
        assert found.found_eps is None
        larger = "smaller" if stated["max_grad_norm"] >= 1 else "larger"
        assert f"The noise is {larger}, too." in found.refuted[0].sentence
    found = probed(Restated(bugs.NoiseWithoutClip(), max_grad_norm=40.0))
    assert names(found) == ["noise"]
    assert "moves an update by 4; the stated clipping norm and divisor allow 40" in result_of(found, "scale").sentence
    right = probed(bugs.NoiseWithoutClip())
    assert found.found_eps == pytest.approx(right.found_eps, rel=0.05)


@pytest.mark.long
def test_a_small_or_a_missing_error_is_left_to_other_findings():
    assert names(probed(Restated(bugs.Correct(), max_grad_norm=1.5))) == ["noise"]
    assert names(probed(Restated(bugs.Correct(), max_grad_norm=0.7))) == ["sensitivity", "one record"]
    assert not [f for f in probed(bugs.Projects()).findings if f.name == "scale"]  # moves by 0.14, with all its noise
    said = probed(bugs.Correct(), only=["scale"]).findings
    assert [f.sentence for f in said] == [
        "One record moves an update by 1; the stated clipping norm and divisor allow 1."
    ]


# Without a switch for the noise nothing is lost


def test_findings_without_a_switch():
    """What differs between records shows how long a gradient is at least, and how many records there are."""
    stated = {"max_grad_norm": 1.0}
    found = probed(Restated(bugs.Correct(), switch=False, **stated))
    assert {f.result for f in found.findings} == {"consistent"}, str(found)
    assert names(probed(Restated(bugs.FixedSize(), switch=False, **stated))) == ["Poisson batches"]
    assert names(probed(Restated(bugs.ClipsLayers(), switch=False, **stated))) == ["sensitivity"]
    found = probed(Restated(bugs.Correct(), switch=False, max_grad_norm=0.85))
    assert names(found) == ["one record"]  # no two records are 2C apart, and yet one is longer than C


# Loops of torch and Opacus


@functools.cache
def of_torch(name, **more):
    import torch_loops

    loop = getattr(torch_loops, name)
    trainer = loop(**more) if inspect.isclass(loop) else loop
    return eg.probe(trainer, torch_loops.data(), train_size=300, adjacency="substitute")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Adam", []),
        pytest.param("AdamWithoutNoise", ["noise"], marks=pytest.mark.long),
        ("AdamClipsTheBatch", ["noise", "clipping"]),
        pytest.param("AdamShuffles", ["Poisson batches"], marks=pytest.mark.long),
        pytest.param("Moves", [], marks=pytest.mark.long),
        ("MovesWithHalf", ["noise"]),
        pytest.param("MovesWithClippedBatch", ["noise", "clipping"], marks=pytest.mark.long),
        pytest.param("Means", [], marks=pytest.mark.long),
    ],
)
def test_loops_of_torch_that_were_not_edited(name, expected):
    pytest.importorskip("torch")
    found = of_torch(name)
    assert names(found) == expected, str(found)


def test_a_divisor_that_is_the_number_of_records_drawn_is_named():
    pytest.importorskip("torch")
    found = of_torch("Means")
    assert "it is divided by the number of records drawn" in result_of(found, "scale").sentence
    assert result_of(found, "sensitivity").result == "not tested"


@pytest.mark.long
def test_a_stated_norm_is_taken():
    pytest.importorskip("torch")
    found = of_torch("Adam", stated=1.0)
    assert not found.refuted
    assert "scale" not in [f.name for f in found.findings]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("in pieces", []),
        ("noise turned off", ["noise"]),
        pytest.param("shuffled", ["Poisson batches"], marks=pytest.mark.long),
        pytest.param("flat", [], marks=pytest.mark.long),
        pytest.param("ghost", [], marks=pytest.mark.long),
    ],
)
def test_loops_of_opacus_that_were_not_edited(name, expected):
    """The clipping norm is Opacus' own; there are neither losses nor a switch."""
    pytest.importorskip("opacus")
    from torch_loops import Unedited

    from zoo import opacus_loops

    every = {**opacus_loops.BUGS, **opacus_loops.TWINS}
    loop = Unedited(every[f"Opacus: {name}"]())
    found = eg.probe(loop, opacus_loops.data(), train_size=300, adjacency="substitute")
    assert names(found) == expected, str(found)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("engines", "words"), [(1, ""), (2, "but 2 accountants"), (0, "but nothing is stated")])
def test_what_an_accountant_of_opacus_counts_needs_no_statement(engines, words):
    """`make_private_with_epsilon` finds the noise, and the loop asks for ε."""
    pytest.importorskip("opacus")
    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    spent = []

    class Prints:
        def train(self, data, *, seed, watch=None):
            x, y = map(torch.as_tensor, data)
            for _ in range(engines):
                model, engine = torch.nn.Linear(64, 10), PrivacyEngine()
                model, optimizer, loader = engine.make_private_with_epsilon(
                    module=model,
                    optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
                    data_loader=DataLoader(TensorDataset(x.float(), y), batch_size=30),
                    target_epsilon=4.0,
                    target_delta=1e-5,
                    epochs=2,
                    max_grad_norm=1.0,
                )
                optimizer.attach_step_hook(watch)
                for _ in range(2):
                    for features, labels in loader:
                        optimizer.zero_grad()
                        torch.nn.functional.cross_entropy(model(features), labels).backward()
                        optimizer.step()
                spent.append(engine.get_epsilon(1e-5))

    if words:
        with pytest.raises(eg.InvalidInput, match=words):
            eg.probe(Prints(), bugs.data(), train_size=300)
        return
    found = eg.probe(Prints(), bugs.data(), train_size=300, only=["steps"], claimed_eps=4.0)
    assert not found.refuted, str(found)
    assert (found.privacy.sample_rate, found.privacy.steps) == (0.1, 20)
    assert found.accounted_eps == pytest.approx(spent[0], rel=0.01)
    assert found.notes == ("Rate, noise and steps are what the accountant of Opacus counted in one whole training.",)


def test_a_plain_function_is_probed():
    pytest.importorskip("torch")
    import torch_loops

    given = {"train_size": 300, "adjacency": "substitute"}
    found = eg.probe(torch_loops.in_numpy, bugs.data(), privacy=eg.DPSGD(0.1, 2.0, 40), **given)
    assert not found.refuted, str(found)
    found = eg.probe(torch_loops.in_numpy, bugs.data(), privacy=eg.DPSGD(0.1, 4.0, 40), **given)
    assert names(found) == ["noise"]


PLAN = """
name = "trains"
n_models = 20
data = "zoo.small:data"
trainer = "trains_only:train"
[game]
train_size = 2000
adjacency = "add-remove"
"""


def test_a_plan_without_losses_is_probed_and_audited_by_its_updates(tmp_path):
    (tmp_path / "trains_only.py").write_text(
        "from zoo import small\n"
        "def train(data, *, seed, watch=None):\n"
        "    return small.Nine().train(data, seed=seed, size=2000, watch=watch)\n"
        "train.privacy = small.Nine().privacy\n"
    )
    file = tmp_path / "plan.toml"
    file.write_text(PLAN)
    done = told("probe", file)
    assert (done.returncode, "Consistent" in done.stdout) == (0, True), done
    for command in (("check", file, "--try"), ("run", file, "--out", tmp_path / "run")):
        said = " ".join(told(*command).stdout.split())
        assert "Only a gradient was tried as the canary" in said
    file.write_text(PLAN + '[adversary]\npreset = "black-box"\n')
    for command in (("check", file, "--try"), ("run", file, "--out", tmp_path / "other")):
        said = " ".join(refused(*command).split())
        assert (
            "an audit by losses needs losses(model, points), one float per point, but trainer trains_only:train" in said
        )


def test_small_loops_without_a_clipping_norm():
    for trainer, expected in ((small.Nine(), []), (small.NoiseOnce(), ["fresh noise"])):
        found = eg.probe(Restated(trainer, switch=False), small.data(), train_size=small.TRAIN_SIZE)
        assert names(found) == expected, str(found)


class Grows(bugs.Correct):
    """The clipping norm grows from step to step, and the noise with it."""

    def fit(self, data, seed, n, watch=None):
        def grown(step, update, **_):
            return watch(step, [u * 1.05**step for u in update])

        return super().fit(data, seed, n, None if watch is None else grown)


def test_a_clipping_norm_that_changes_has_to_be_stated():
    """Noise of one step is not held against records of another, unless there is next to none."""
    found = probed(Restated(Grows()))
    assert not found.refuted, str(found)
    assert "times as far as in others" in result_of(found, "scale").sentence
    assert "changes during the training" in result_of(found, "noise").sentence
    assert "noise" in names(probed(Restated(Grows(noise_multiplier=0.0), switch=False), privacy=eg.DPSGD(0.1, 2.0, 40)))
