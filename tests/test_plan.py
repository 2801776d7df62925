"""Plans: what they accept, what they refuse and in which words, and what belongs to a run's identity."""

import pickle
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import epsgauge
from epsgauge.cli.demo import STORY
from epsgauge.errors import InvalidInput
from epsgauge.runner.code import code_of
from epsgauge.runner.parts import Part
from epsgauge.runner.plan import Plan
from epsgauge.runner.play import prepare, table

PLAN = {
    "name": "a",
    "n_models": 60,
    "data": {"use": "zeros", "size": 50},
    "trainer": {"use": "laplace", "eps": 1.0},
    "game": {"train_size": 20, "reference_size": 10, "challenge": "average"},
}


@dataclass(frozen=True)
class Mine:
    noise_multiplier: float = 1.0

    def train(self, data, *, seed):
        return None

    def losses(self, model, points):
        return points


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n_modls": 3}, 'n_modls is not a key of a plan. Did you mean "n_models"?'),
        ({"n_models": "3"}, "n_models must be a valid integer, but got '3'."),
        ({"n_models": 0}, "n_models must be greater than or equal to 1, but got 0."),
        ({"game": {"train_sise": 20}}, 'game.train_sise is not a key of a plan. Did you mean "train_size"?'),
        ({"game": {}}, "game.train_size is missing. Add it to the plan."),
        (
            {"game": {"train_size": 20, "challenge": "avrage"}},
            "game.challenge must be 'average', 'worst' or 'explicit'",
        ),
        ({"game": {"train_size": 20, "challenge": "worst"}}, 'game: challenge = "worst" needs pool_size'),
        ({"game": {"train_size": 20, "challenge": "explicit"}}, 'game: challenge = "explicit" needs the key canaries'),
        (
            {"game": {"train_size": 20, "challenge": "average", "canaries": "digits"}},
            'game: canaries goes with challenge = "explicit"',
        ),
        ({"game": {"train_size": 3, "pairs_per_model": 3}}, "pairs_per_model must be below train_size = 3"),
        ({"game": {"train_size": 20, "sees": "z0"}}, 'sees = "z0" goes with base = "resampled" and pairs = "fresh"'),
        ({"game": {"train_size": 20, "ranking_models": 8}}, "game.ranking_models must be greater than or equal to 32"),
        ({"audit": {"delta": 1.5}}, "audit.delta must be less than 1, but got 1.5."),
        ({"audit": {"fit_modles": 3}}, 'audit.fit_modles is not a key of a plan. Did you mean "fit_models"?'),
        ({"audit": {"fit_models": 60}}, "audit.fit_models must be below n_models = 60"),
        ({"audit": {"rule": "given"}}, 'audit: rule = "given" needs one of percentile and threshold.'),
        ({"audit": {"percentile": 5.0}}, 'audit: percentile goes with rule = "given".'),
        (
            {"audit": {"claimed_eps": 1.0}},
            "a claim needs all of claimed_eps, claimed_delta and claimed_adjacency, or claimed_mu.",
        ),
        ({"trainer": {"use": "dpsg"}}, 'or your own as "module:attr", but got \'dpsg\'. Did you mean "dpsgd"?'),
        ({"trainer": {"eps": 1.0}}, "trainer.use must be a name, but got None."),
    ],
)
def test_what_a_plan_refuses(changes, sentence):
    with pytest.raises(InvalidInput) as error:
        Plan(**{**PLAN, **changes})
    assert sentence in str(error.value)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name = 'a'\nn_models", "is not TOML"),
        ("name = 'a'", "is missing"),
        ("folder = '/tmp'\nname = 'a'", "folder is not a key of a plan"),
    ],
)
def test_a_damaged_file(tmp_path, text, sentence):
    file = tmp_path / "plan.toml"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=r"plan\.toml") as error:
        Plan.read(file)
    assert sentence in str(error.value)


def test_a_missing_file_or_folder(tmp_path):
    with pytest.raises(InvalidInput, match=r"there is no plan .*nowhere\.toml\. `epsgauge init"):
        Plan.read(tmp_path / "nowhere.toml")
    with pytest.raises(InvalidInput, match="cannot be read"):
        Plan.read(tmp_path)


def test_tables_and_pickles_give_the_same_plan():
    plan = Plan(**PLAN)
    assert Plan.from_tables(plan.tables()) == plan
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_what_the_fingerprint_covers():
    plan = Plan(**PLAN)
    same = plan.changed(name="b", n_models=80, audit={"delta": 1e-6}, execution={"workers": 3})
    assert same.fingerprinted() == plan.fingerprinted()
    for change in (
        {"seed": 1},
        {"control": True},
        {"data": {"use": "zeros", "size": 51}},
        {"trainer": {"use": "laplace", "eps": 2.0}},
        {"game": {"train_size": 21, "reference_size": 10, "challenge": "average"}},
    ):
        assert plan.changed(**change).fingerprinted() != plan.fingerprinted(), change


def test_shipped_plans_stand_in_examples_too():
    shipped = Path(epsgauge.__file__).parent / "cli" / "plans"
    examples = Path(__file__).parent.parent / "examples"
    names = {path.name for path in shipped.iterdir() if path.is_file()}
    assert names == {"digits_bug.py", *(f"{name}.toml" for of in STORY.values() for name in of)}
    for name in names:
        assert (shipped / name).read_bytes() == (examples / name).read_bytes()
    plans = [Plan.read(examples / name) for name in names if name.endswith(".toml")]
    assert {plan.n_models - plan.n_fit for plan in plans} == {2000}


def test_settings_are_checked_by_name():
    with pytest.raises(InvalidInput, match=r'trainer.epss is not a setting of laplace, .* Did you mean "eps"\?'):
        Part("trainer", "laplace", {"epss": 1.0}).build()
    with pytest.raises(InvalidInput, match="trainer laplace needs the setting eps"):
        Part("trainer", "laplace", {}).build()


def test_an_object_with_plain_fields_is_known_by_its_path():
    plan = Plan(**{**PLAN, "trainer": Mine(noise_multiplier=2.0)})
    assert plan.trainer.use.endswith("test_plan:Mine")
    assert plan.trainer.settings == {"noise_multiplier": 2.0}
    assert plan.trainer.resumable
    assert plan.trainer.build() == Mine(2.0)


def test_an_object_that_no_other_process_can_find_is_not_resumable():
    @dataclass(frozen=True)
    class Local(Mine):
        pass

    part = Plan(**{**PLAN, "trainer": Local(3.0)}).trainer
    assert not part.resumable
    assert part.build() == Local(3.0)


def test_the_code_of_a_plan_is_its_modules_and_what_they_import_from_beside(tmp_path):
    (tmp_path / "mine_a.py").write_text("import mine_b\nimport numpy\nclass T: pass\n")
    (tmp_path / "mine_b.py").write_text("X = 1\n")
    (tmp_path / "unrelated.py").write_text("Y = 1\n")
    plan = Plan(**{**PLAN, "trainer": {"use": "mine_a:T"}}, folder=tmp_path)
    before = code_of(plan)
    assert set(before) == {"mine_a.py", "mine_b.py"}
    (tmp_path / "mine_b.py").write_text("X = 2\n")
    after = code_of(plan)
    assert before["mine_a.py"] == after["mine_a.py"]
    assert before["mine_b.py"] != after["mine_b.py"]


@pytest.mark.parametrize(
    ("source", "use", "sentence"),
    [
        ("", "gone_away:T", "there is no module 'gone_away' beside the plan"),
        ("class Trainer: pass", "mod_one:Trainr", "mod_one has no 'Trainr'. Did you mean \"Trainer\"?"),
        ("import not_there_at_all", "mod_two:T", "mod_two needs the module 'not_there_at_all', which is not installed"),
        ("1 / 0", "mod_three:T", "importing mod_three failed with ZeroDivisionError: division by zero"),
        (
            "class T:\n    def __init__(self): raise OSError('no disk')",
            "mod_four:T",
            "trainer mod_four:T failed with OSError: no disk",
        ),
    ],
)
def test_modules_that_cannot_be_used(tmp_path, monkeypatch, source, use, sentence):
    (tmp_path / f"{use.partition(':')[0]}.py").write_text(source)
    if use.startswith("gone"):
        (tmp_path / "gone_away.py").unlink()
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInput) as error:
        Part("trainer", use).build()
    assert sentence in str(error.value)


def test_the_code_of_packages_is_known_by_path(tmp_path):
    package = tmp_path / "pkg_of_mine"
    (package / "deep").mkdir(parents=True)
    for file, text in {
        "__init__.py": "",
        "pipe.py": "from pkg_of_mine.train import fit\nfrom . import near\nfrom .deep import utils",
        "train.py": "def fit(): pass",
        "near.py": "",
        "deep/__init__.py": "",
        "deep/utils.py": "",
    }.items():
        (package / file).write_text(text)
    plan = Plan(**{**PLAN, "trainer": {"use": "pkg_of_mine.pipe:T"}}, folder=tmp_path)
    names = {"pipe.py", "train.py", "near.py", "deep/__init__.py", "deep/utils.py"}
    assert names == {name.removeprefix("pkg_of_mine/") for name in code_of(plan)} - {"__init__.py"}


def test_a_module_of_another_folder_does_not_pass_for_the_plans_own(tmp_path):
    """Every `epsgauge init` writes a module of the same name."""
    for name, eps in (("a", 1.0), ("b", 2.0)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same_name.py").write_text(
            "from epsgauge.trainers.mechanism import LaplaceTrainer\n"
            f"def make(): return LaplaceTrainer(eps={eps})\n"
            "class T:\n    def __new__(cls): return make()\n"
        )
    plans = [Plan(**{**PLAN, "trainer": {"use": "same_name:T"}}, folder=tmp_path / name) for name in ("a", "b")]
    assert code_of(plans[0]) != code_of(plans[1])
    assert table(plans[0]).trainer.eps == 1.0
    with pytest.raises(InvalidInput, match=r"this process has loaded another same_name, from .*a.same_name\.py"):
        table(plans[1])


def test_data_given_as_objects_are_never_mixed_up():
    """A new object may have the address of one that is gone."""
    for value in range(5):
        plan = Plan(**{**PLAN, "data": (np.arange(50), np.full(50, float(value)))})
        assert table(plan).points.columns[1][0] == value
        del plan


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("def privacy(self, n): return {}['x']", "privacy of the trainer broken_promise:T failed with KeyError: 'x'"),
        ("def privacy(self, n): return 3.0", "must give eg.DPSGD(...), eg.KnownPrivacy(...) or None, but gave float"),
        ("def privacy(self, n): raise SystemExit(4)", "failed with SystemExit: 4"),
    ],
)
def test_a_promise_that_fails_is_a_sentence(tmp_path, monkeypatch, source, sentence):
    (tmp_path / "broken_promise.py").write_text(
        "class T:\n    def train(self, data, *, seed): pass\n    def losses(self, model, points): pass\n    " + source
    )
    monkeypatch.delitem(sys.modules, "broken_promise", raising=False)
    plan = Plan(**{**PLAN, "trainer": {"use": "broken_promise:T"}}, folder=tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        prepare(plan)


def test_data_that_leave_are_a_sentence(tmp_path, monkeypatch):
    (tmp_path / "leaving_data.py").write_text("import sys\ndef data(): sys.exit('no such file')\n")
    monkeypatch.syspath_prepend(tmp_path)
    plan = Plan(**{**PLAN, "data": "leaving_data:data"}, folder=tmp_path)
    with pytest.raises(InvalidInput, match="data leaving_data:data failed with SystemExit: no such file"):
        prepare(plan)
