"""Adversaries of growing power: presets, what each may do, adaptive poisoning, and their ladder in `compare`."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import ask
from tiny_runs import plan as tiny
from tiny_runs import played

import epsgauge as eg
from epsgauge.auditing.compare import compare
from epsgauge.errors import InvalidInput
from epsgauge.figures.ladder import ladder, pipelines_of
from epsgauge.games.adversary import PRESETS
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.reporting.report import written
from epsgauge.trainers.adaptive import AdaptiveRecords
from epsgauge.trainers.ratio import Ratio

TRAINER = {"use": "dpsgd", "model": "logistic", "epochs": 2, "batch_size": 10, "noise_multiplier": 1.0}
EXAMPLES = sorted((Path(__file__).parent.parent / "examples" / "hierarchy").glob("*.toml"))


def plan(preset, *, n_models=7, trainer=None, adversary=None, **game):
    return eg.Plan(
        name=preset,
        n_models=n_models,
        data="digits",
        trainer={**TRAINER, **(trainer or {})},
        game={"train_size": 40, "reference_size": 15, "control_models": 0, **game},
        adversary={"preset": preset, **(adversary or {})},
    )


# what each may do


@pytest.mark.parametrize("preset", PRESETS)
def test_each_preset_says_what_it_may_do_and_who_covers_it(preset):
    found = plan(preset).powers
    assert found.preset == preset
    inside = preset in ("api", "static-poisoning", "black-box")
    assert (found.covered == "Every claim of differential privacy covers this.") == inside
    assert ("knows the first weights" in found.may) == (preset == "black-box")


def test_words_follow_the_keys_and_not_the_name():
    drawn = plan("black-box", challenge="average", pairs_per_model=3, adjacency="add-remove").powers
    assert drawn.preset == "api"
    assert drawn.may.startswith("draws records at random, each of which is trained on or not, and")
    both = plan("black-box", challenge="average", pairs_per_model=3).powers
    assert both.may.startswith("draws pairs of records at random, one of each is trained on, and")
    again = eg.Plan.from_tables(plan("adaptive-poisoning").tables())  # a run keeps the keys alone
    assert again.powers == plan("adaptive-poisoning").powers


def test_presets_fill_in_their_game():
    assert plan("api").game.challenge == "average"
    for name in ("static-poisoning", "intermediate-models", "adaptive-poisoning"):
        assert plan(name).game.auto
    assert plan("static-poisoning").start == "secret"
    assert plan("api").tables() == plan("black-box", challenge="average").tables() | {"name": "api"}
    assert not plan("adaptive-poisoning").tries_canaries


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: plan("api", canaries="blank"), '"api" draws records at random, so challenge must be "average", but'),
        (lambda: plan("static-poisoning", challenge="average"), 'preset = "static-poisoning" makes records of its own'),
        (lambda: plan("adaptive-poisoning", challenge="average"), "makes records of its own, so challenge must be"),
        (lambda: plan("adaptive-poisoning", pairs_per_model=2, canaries="blank"), "one guess per model, but got"),
        (lambda: plan("adaptive-poisoning", adversary={"sees": "losses"}), 'inserts = "adaptive" needs sees ='),
        (lambda: plan("adaptive-poisoning").with_audit(attack="loss"), 'which adversary.inserts = "adaptive" does not'),
        (lambda: plan("black-box").with_audit(attack="updates"), 'Use adversary.preset = "intermediate-models"'),
        (lambda: plan("black-box").with_audit(attack="displacement"), 'Use adversary.preset = "hidden-state"'),
    ],
)
def test_contradictions_are_one_sentence(make, sentence):
    with pytest.raises(InvalidInput, match=re.escape(sentence)) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_check_and_the_examples_say_it():
    presets = [eg.Plan.read(file).powers.preset for file in EXAMPLES]
    assert presets == ["api", "static-poisoning", "intermediate-models", "adaptive-poisoning", "white-box"]
    trained = {json.dumps([(of := eg.Plan.read(file)).trainer.identity(), of.game.train_size]) for file in EXAMPLES}
    assert len(trained) == 1
    said = " ".join(ask("check", EXAMPLES[3]).split())
    assert "adversary adaptive-poisoning: chooses records of its own anew at each step, and sees" in said


# records that are chosen at each step


@pytest.mark.parametrize("adjacency", ["substitute", "add-remove"])
def test_both_engines_choose_and_show_the_same(tmp_path, adjacency):
    seen = [
        played(
            plan("adaptive-poisoning", n_models=3, trainer={"engine": engine, "epochs": 1}, adjacency=adjacency),
            tmp_path / engine,
        ).signals()
        for engine in ("stacked", "opacus")
    ]
    for name in ("llr", "alignment"):
        np.testing.assert_allclose(seen[0][name], seen[1][name], rtol=0, atol=1e-4)
        assert np.ptp(seen[0][name]) > 0.1
    np.testing.assert_array_equal(seen[0]["chosen"], seen[1]["chosen"])
    per_step = 2 if adjacency == "substitute" else 1
    assert (seen[0]["chosen"].sum(axis=1) == 4 * per_step).all()
    assert (seen[0].pairs == -1).all()


def chooser(bit, adjacency="substitute", rate=1.0, choices=2):
    seed = np.random.SeedSequence(1)
    privacy = DPSGD(rate, 2.0, 9)
    return AdaptiveRecords(records=None, choices=choices, bit=bit, adjacency=adjacency, privacy=privacy, seed=seed)


@pytest.mark.parametrize("bit", [0, 1])
def test_it_takes_gradients_that_are_far_apart_where_the_last_update_was_small(bit):
    watch, e = chooser(bit), 3.0 * np.eye(4)
    first, later = [e[0], e[1], -e[0], 0.5 * e[1]], [e[0], e[1], -e[0], -e[1]]  # z1 of both pairs, then z0
    update = watch(0, np.array([90.0, 0.0, 0.0, 0.0]), max_grad_norm=3.0, gradients=first)
    np.testing.assert_allclose(update, [93.0 if bit else 87.0, 0, 0, 0])  # the clipped gradient of one of them
    update = watch(1, np.zeros(4), max_grad_norm=3.0, gradients=later)
    np.testing.assert_allclose(update, [0, 3.0 if bit else -3.0, 0, 0])  # others use the first direction
    found = watch.channels()
    assert found["chosen"].tolist() == [1, 1, 1, 1]
    twin = Ratio(1, DPSGD(1.0, 2.0, 9))
    for along in (31.0 if bit else 29.0, 1.0 if bit else -1.0):
        twin.add(np.array([[along, -along]]), np.ones((1, 2)))
    np.testing.assert_allclose(found["llr"], twin.totals()[0])


def test_to_add_or_remove_it_takes_the_longest():
    watch = chooser(0, "add-remove")
    gradients = [0.1 * np.eye(2)[0], 0.7 * np.eye(2)[1]]
    np.testing.assert_array_equal(watch(0, np.ones(2), max_grad_norm=1.0, gradients=gradients), np.ones(2))
    assert watch.channels()["chosen"].tolist() == [0, 1]


def test_an_audit_names_the_adversary_and_what_it_may_do(tmp_path):
    audit = eg.audit(played(plan("adaptive-poisoning", n_models=40), tmp_path / "a"))
    assert "the gradients of records that it chooses anew at each step" in audit.adversary.access
    assert audit.to_json()["verdict"]["adversary"]["powers"]["preset"] == "adaptive-poisoning"
    assert eg.verify(tmp_path / "a").intact
    assert [note for note in audit.warnings if "nor how it samples records is tested" in note]
    page = written(audit, "md")
    assert "Adversary: chooses records of its own anew at each step" in page
    assert "as those of DP-SGD's accountants do" in page


# the ladder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder, rr = tmp_path_factory.mktemp("ladder"), {"use": "randomised-response", "eps": 3.0}
    weak = {"challenge": "average", "canaries": None, "audit": {"attack": "percentile"}}
    return [
        played(tiny(rr, n_models=200, name="drawn", data={"use": "zeros", "size": 200}, **weak), folder / "drawn"),
        played(tiny(rr, n_models=200, name="made", data={"use": "zeros", "size": 200}), folder / "made"),
    ]


def test_adversaries_are_compared_with_a_rule_of_each(runs):
    with pytest.raises(InvalidInput, match=re.escape('different adversaries. With rule="best" each has a rule')):
        compare(runs, rule="shared")
    found = compare(runs, rule="best")
    assert found.of_adversaries
    ((title, rungs),) = ladder(pipelines_of(found)).pipelines.items()
    assert title == "randomised-response on zeros"
    assert [rung.adversary for rung in rungs] == ["api", "static-poisoning"]
    assert rungs[0].reach < rungs[1].reach
    assert {run.audit.verdict.promise for run in found.runs} == {"guaranteed"}


def test_one_adversary_is_no_ladder_and_two_of_a_kind_go_by_their_names(runs):
    same = compare([runs[1], runs[1]], rule="best")
    assert not same.of_adversaries
    assert "Adversary by adversary" not in written(same, "html")
    labels = [rung.adversary for of in ladder(pipelines_of(same)).pipelines.values() for rung in of]
    assert labels == [str(runs[1].path)]


def test_compare_draws_it_in_the_terminal_and_on_a_page(runs, tmp_path):
    page = tmp_path / "page.html"
    said = ask("compare", runs[0].path, runs[1].path, "--rule", "best", "--report", page)
    lines = said.splitlines()
    (weak,) = [line for line in lines if line.startswith("api ")]
    (strong,) = [line for line in lines if line.startswith("static-poisoning ")]
    assert weak.count("█") < strong.count("█")
    assert "made: makes two records of its own before training" in said
    text = page.read_text(encoding="utf-8")
    assert "Adversary by adversary" in text
    assert "The adversary of made shows most, ε ≥" in text
    assert "What its adversary may do: draws two records at random" in text
