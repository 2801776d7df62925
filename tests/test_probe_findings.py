"""Codes of findings, the page that explains them, and what a finding shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import epsgauge as eg
from epsgauge.errors import InvalidInput
from epsgauge.probing.checks import NAMES, named
from epsgauge.probing.codes import PAGE, RULES
from zoo import network as bugs

DOCS = Path(__file__).parent.parent


def probed(trainer, **more):
    return eg.probe(trainer, bugs.data(), **{"train_size": 300, "adjacency": "substitute", **more})


def test_the_page_has_every_code_with_its_title_and_severity():
    page = (DOCS / PAGE).read_text(encoding="utf-8")
    sections = dict(re.findall(r"^### (P\d+)\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL))
    assert list(sections) == list(RULES)
    for code, rule in RULES.items():
        words = re.sub(r"\s+", " ", sections[code])
        assert f"**{rule.title}** ({rule.finding}, {rule.severity})." in words, code
        (example,) = re.findall(r"```py\n(.*?)```", sections[code], re.DOTALL)
        assert len(example.splitlines()) <= 5, code
        assert "*Fix:*" in words, code


def test_every_finding_that_can_be_refuted_has_a_code():
    assert {rule.finding for rule in RULES.values()} == {"accounting", *NAMES}


@pytest.mark.parametrize(
    ("trainer", "code", "where"),
    [
        (bugs.NoiseOnOneLayer(), "P101", "array 3 of 4 (16×10)"),
        (bugs.SeedOfSteps(), "P102", " of model 2 and step "),
        (bugs.NoClipping(), "P104", "record huge by huge, other label, place "),
        (bugs.Shuffles(), "P111", ""),
        (bugs.Standardises(), "P117", "record huge"),
    ],
)
def test_a_finding_has_its_code_its_place_and_the_line_that_repeats_it(trainer, code, where):
    found = probed(trainer)
    first = next(f for f in found.refuted if f.code == code)
    assert where in first.where
    assert first.name == RULES[code].finding
    assert first.measured != first.allowed or code == "P117"
    line = found.repeat(first, "plan.toml")
    assert line == f"epsgauge probe --only {first.name.lower().replace(' ', '-')} --seed 0 plan.toml"
    again = probed(trainer, only=[code])
    assert [f.sentence for f in again.refuted] == [first.sentence]
    assert again.n_trainings < found.n_trainings
    assert re.sub(r"\s+", "", found.repeat(first)) in re.sub(r"\s+", "", str(found))


def test_noise_whose_seed_is_fixed_is_told_from_noise_that_is_used_twice():
    fixed, twice = (probed(bug(), only=["P102"]).refuted[0] for bug in (bugs.SeedOfModels, bugs.SeedOfSteps))
    assert (
        "so its seed is fixed. Take another one each time: in a plan `seed`, as in TrainingArguments" in fixed.sentence
    )
    assert "its seed is fixed" not in twice.sentence


def test_one_check_needs_no_other():
    found = probed(bugs.Correct(), only=["noise"])
    assert [f.name for f in found.findings] == ["noise"]
    assert found.n_trainings < 60


def test_names_of_checks_and_codes():
    assert named(["P111", "noise", "Fresh-Noise"]) == ["noise", "fresh noise", "Poisson batches"]
    with pytest.raises(
        InvalidInput, match=r"only must name checks \(scale, noise, fresh-noise, .*\) or codes .* got 'nois'"
    ):
        named(["nois"])


def test_a_quick_probe_makes_few_short_trainings():
    found = probed(bugs.Correct(), quick=True)
    assert {f.result for f in found.findings} == {"consistent"}
    assert found.n_trainings < 90
    assert probed(bugs.NoNoise(), quick=True).refuted[0].code == "P101"
    assert probed(bugs.ClipsTheBatch(), quick=True, adjacency="add-remove").refuted[0].code == "P105"


def test_progress_names_the_check_and_counts_trainings():
    told = []
    found = probed(bugs.Correct(), progress=lambda name, count: told.append((name, count)))
    assert [count for _, count in told] == list(range(1, found.n_trainings + 1))
    assert set(dict.fromkeys(name for name, _ in told)) <= {"replays", *NAMES}
    assert {"noise", "steps"} <= {name for name, _ in told}


def test_both_adjacencies_are_shown():
    found = probed(bugs.Correct())
    assert found.other_eps < found.accounted_eps
    assert "(substitute)," in str(found)
    assert "(add-remove)" in str(found)


def test_arrays_are_called_by_the_layers_of_torch():
    torch = pytest.importorskip("torch")

    class Torch(bugs.NoiseOnOneLayer):
        def fit(self, data, seed, n, watch=None):
            net = torch.nn.Sequential()
            for i, weights in enumerate(self.start(*data)):
                net.register_parameter(f"part{i}", torch.nn.Parameter(torch.zeros(weights.shape)))
            model = super().fit(data, seed, n, watch)
            del net
            return model

    (noise,) = [f for f in probed(Torch()).refuted if f.name == "noise"]
    assert "part2" in noise.where


def test_arrays_in_dicts_are_called_by_their_keys():
    class Dict(bugs.NoiseOnOneLayer):
        def fit(self, data, seed, n, watch=None):
            def keyed(step, update, **more):
                return list(watch(step, {f"dense.{i}": u for i, u in enumerate(update)}, **more).values())

            return super().fit(data, seed, n, None if watch is None else keyed)

    (noise,) = [f for f in probed(Dict()).refuted if f.name == "noise"]
    assert "dense.2" in noise.where
