"""`assert_private` and its plugin: one assertion in a test suite, by a probe and by a game."""

import json
import os
import subprocess
import sys
import tomllib
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import epsgauge as eg
from epsgauge.integrations.assertion import NotPrivate
from epsgauge.integrations.hearing import HEARING, Hearing

ROOT = Path(__file__).parent.parent
DATA = (np.linspace(0.0, 1.0, 60).reshape(-1, 1), np.arange(60) % 2)


@dataclass(frozen=True)
class NoisySum:
    """The sum of clipped records with noise, in one step; `said` is the noise that is accounted."""

    noise_multiplier: float = 4.0
    said: float = 4.0

    def train(self, data, *, seed, watch=None):
        x = np.clip(data[0].sum(axis=1), -1.0, 1.0)
        update = [np.array([x.sum() + self.noise_multiplier * np.random.default_rng(seed).normal()] + [0.0] * 300)]
        update[0][1:] += self.noise_multiplier * np.random.default_rng(seed + 1).normal(size=300)
        if watch is not None:
            update = watch(0, update, max_grad_norm=1.0)
        return update[0]

    def losses(self, model, points):
        return (points[0].sum(axis=1) - model[0]) ** 2

    def privacy(self, n):
        return eg.DPSGD(sample_rate=1.0, noise_multiplier=self.said, steps=1)


class Sum:
    """What can be played, and not probed: it shows no updates."""

    def __init__(self, noise):
        self.noise = noise

    def train(self, data, *, seed):
        return np.clip(data[0], -1.0, 1.0).sum() + self.noise * np.random.default_rng(seed).normal()

    def losses(self, model, points):
        return points[0].sum(axis=1) * np.sign(-model) + model


def test_a_training_as_accounted_passes_and_says_what_was_tested():
    checked = eg.assert_private(NoisySum(), DATA, eps=3, delta=1e-5, models=300)
    assert checked.finding is None
    assert not checked.probe.refuted
    assert checked.audit.verdict.basis.probe == checked.probe  # no plan said that there is none
    assert checked.audit.verdict.kind != "violation"
    assert checked.audit.verdict.level == 0.999
    assert checked.sentence.startswith("probe: nothing contradicts")
    assert json.loads(json.dumps(checked.to_json(), default=str))["outcome"] == "no objection"


def test_the_probe_comes_first_and_its_finding_is_the_message():
    with pytest.raises(
        NotPrivate, match=r"^noise: The noise is at most .* is claimed; with what was found, it is"
    ) as e:
        eg.assert_private(NoisySum(noise_multiplier=1.0), DATA, eps=3, models=60)
    assert e.value.checked.audit is None
    assert e.value.checked.to_json()["outcome"] == "refuted"
    assert isinstance(e.value, AssertionError)


def test_a_claim_below_the_accountants_is_refuted():
    with pytest.raises(NotPrivate, match=r"^accounting: ε = 0\.1 is claimed"):
        eg.assert_private(NoisySum(), DATA, eps=0.1, models=60)


def test_a_claim_that_holds_with_what_was_found_stands():
    """The noise is not what is accounted, but the claim is so large that it holds all the same."""
    checked = eg.assert_private(NoisySum(noise_multiplier=2.0), DATA, eps=30, models=40)
    assert checked.probe.refuted
    assert checked.finding is None


def test_what_cannot_be_probed_is_refuted_by_the_game():
    with pytest.raises(NotPrivate, match=r"Violation: the stated claim ε = 0\.5") as e:
        eg.assert_private(Sum(0.0), DATA, eps=0.5, models=200)
    assert "takes no watch" in e.value.checked.probe.reason


def test_an_assertion_that_could_not_have_failed_fails():
    with pytest.raises(
        NotPrivate, match=r"no probe \(.*40 models cannot decide this claim.* At least [\d,]+ are needed"
    ):
        eg.assert_private(Sum(5.0), DATA, eps=5, models=40)
    allowed = eg.assert_private(Sum(5.0), DATA, eps=5, models=40, allow_undecided=True)
    assert allowed.untested is not None
    assert allowed.to_json()["outcome"] == "cannot decide"
    assert allowed.audit is None  # nothing is trained for a game that nobody can win


def test_too_little_time_is_said():
    with pytest.raises(NotPrivate, match="no game was played: 0 models fit into what is left of 1e-06 seconds"):
        eg.assert_private(Sum(5.0), DATA, eps=1, seconds=1e-6)
    checked = eg.assert_private(NoisySum(), DATA, eps=3, seconds=1e-6)  # the probe is a test by itself
    assert checked.audit is None
    assert checked.untested is None


def test_seconds_are_turned_into_models(monkeypatch):
    """By a clock on which everything takes a tenth of a second: of 11 s, 10.7 are left for models of 0.103 · 1.4 s."""
    clock = SimpleNamespace(perf_counter=(n / 10 for n in count()).__next__)
    for module in ("assertion", "asserted"):
        monkeypatch.setattr(f"epsgauge.integrations.{module}.time", clock)
    checked = eg.assert_private(Sum(20.0), DATA, eps=3, seconds=11, allow_undecided=True)
    assert checked.n_models == int(10.7 / (1.4 * 0.103))


def test_functions_in_place_of_a_trainer():
    trainer = NoisySum()

    def train(data, *, seed, watch=None):
        return trainer.train(data, seed=seed, watch=watch)

    own = {"losses": trainer.losses, "privacy": trainer.privacy(60), "models": 200}
    checked = eg.assert_private(train, DATA, eps=3, **own, allow_undecided=True)
    assert not checked.probe.refuted
    with pytest.raises(NotPrivate, match="accounting"):
        eg.assert_private(
            train, DATA, eps=3, losses=trainer.losses, privacy=eg.DPSGD(sample_rate=1, noise_multiplier=1.0, steps=1)
        )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"eps": -1}, "eps must be finite, 0 or more"),
        ({"delta": 2}, "delta must be"),
        ({"seconds": 0}, "seconds must be above 0"),
        ({"adjacency": "both"}, "adjacency must be"),
        ({"train": lambda data: None, "losses": 3}, r"needs a trainer, or the functions train and losses="),
    ],
)
def test_bad_input_is_one_sentence(change, said):
    given = {"train": NoisySum(), "data": DATA, "eps": 3} | change
    with pytest.raises(eg.InvalidInput, match=said):
        eg.assert_private(given.pop("train"), given.pop("data"), **given)


def test_whoever_hears_gives_the_models_and_the_command():
    heard = []
    token = HEARING.set(Hearing(heard.append, lambda checked: f"again with {checked.n_models}", models=50))
    try:
        with pytest.raises(NotPrivate, match=r"To repeat it: again with 50$"):
            eg.assert_private(Sum(0.0), DATA, eps=0.2, seconds=1)
    finally:
        HEARING.reset(token)
    assert [checked.n_models for checked in heard] == [50]


# The plugin


SUITE = """
import pytest
from zoo import network, opacus_loops

CLAIM = {"delta": 1e-5, "adjacency": "substitute", "train_size": 250, "models": 40}


def test_correct(assert_private):
    assert_private(network.Correct(noise_multiplier=4.0), network.data(), eps=1.76, **{**CLAIM, "models": 60})


@pytest.mark.parametrize("bug", BUGS)
def test_broken(assert_private, bug):
    assert_private(network.BUGS[bug](), network.data(), eps=3.86, **CLAIM)


def test_other():
    pass
"""
BUGS = ["no noise", "shuffled batches"]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """pytest, run on a correct pipeline of the zoo and on two broken ones, by two workers."""
    folder = tmp_path_factory.mktemp("suite")
    (folder / "test_training.py").write_text(SUITE.replace("BUGS)", f"{BUGS!r})", 1), encoding="utf-8")
    plugin = ["-p", "no:epsgauge", "-p", "epsgauge.integrations.pytest_plugin", "-p", "no:cacheprovider"]
    options = ["-q", "-n", "2", "--epsgauge-report", "reports", "--junitxml", "junit.xml", "--strict-markers"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugin, *options],
        cwd=folder,
        env=environment,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    return folder, done.stdout


def test_pytest_passes_the_correct_pipeline_and_fails_broken_ones(session):
    _, out = session
    assert "2 failed, 2 passed" in out, out
    for bug in BUGS:
        assert f"FAILED test_training.py::test_broken[{bug}]" in out


def test_the_message_is_a_finding_and_a_command(session):
    _, out = session
    for bug in BUGS:
        assert f"To repeat it: pytest 'test_training.py::test_broken[{bug}]'" in out


def test_reports_are_written_for_each_assertion(session):
    folder, _ = session
    files = {path.name for path in (folder / "reports").iterdir()}
    assert {"test_training.py-test_correct.html", "test_training.py-test_correct.json"} <= files
    assert (folder / "reports" / "test_training.py-test_correct" / "store.sqlite").exists()
    texts = [path.read_text(encoding="utf-8") for path in (folder / "reports").glob("*.txt")]
    assert len(texts) == len(BUGS)
    assert all("refuted" in text for text in texts)


def test_junit_has_the_findings(session):
    folder, _ = session
    cases = {case.get("name"): case for case in ET.parse(folder / "junit.xml").iter("testcase")}
    said = cases["test_correct"].find("properties/property")
    assert said.get("name") == "epsgauge"
    assert said.get("value").startswith("probe: nothing contradicts")
    assert cases["test_other"].find("properties") is None


def test_the_plugin_is_shipped():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plugin = import_module(project["entry-points"]["pytest11"]["epsgauge"])
    assert callable(plugin.pytest_addoption)
