"""The table [small] of a plan: what it replaces, what it refuses, and that a small run never passes for the plan's."""

import json

import pytest
from command_line import ask

import epsgauge as eg
from epsgauge.errors import InvalidInput
from epsgauge.runner.plan import Plan

PLAN = """
name = "coins"
seed = 3
n_models = 80

[data]
use = "zeros"
size = 60

[trainer]
use = "laplace"
eps = 2.0

[game]
train_size = 20
reference_size = 10
challenge = "explicit"
canaries = "zeros"

[audit]
attack = "difference"
fit_models = 60
"""
SMALL = """
[small]
n_models = 8

[small.data]
size = 30

[small.game]
train_size = 10

[small.audit]
fit_models = 4
"""


@pytest.fixture
def write(tmp_path):
    def written(text):
        file = tmp_path / "plan.toml"
        file.write_text(text)
        return file

    return written


def test_values_are_replaced_key_by_key(write):
    plan = Plan.read(write(PLAN + SMALL), small=True)
    assert plan.name == "coins (small)"
    assert (plan.seed, plan.n_models, plan.n_fit) == (3, 8, 4)
    assert plan.data.settings == {"size": 30}
    assert plan.trainer.settings == {"eps": 2.0}
    assert (plan.game.train_size, plan.game.reference_size, plan.game.canaries) == (10, 10, "zeros")
    assert plan.audit.attack == "difference"


def test_without_the_switch_it_is_as_if_the_table_were_not_there(write):
    with_table = Plan.read(write(PLAN + SMALL))
    assert with_table == Plan.read(write(PLAN))
    assert "small" not in with_table.tables()
    assert "small" not in Plan.read(write(PLAN + SMALL), small=True).tables()


def test_a_small_plan_is_the_plan_with_these_values(write):
    """Its identity is that of its values; where they came from does not matter."""
    small = Plan.read(write(PLAN + SMALL), small=True)
    by_hand = (
        PLAN.replace("= 80", "= 8").replace("size = 60", "size = 30").replace("train_size = 20", "train_size = 10")
    )
    assert (
        small.fingerprinted() == Plan.read(write(by_hand.replace("fit_models = 60", "fit_models = 4"))).fingerprinted()
    )
    assert Plan.from_tables(small.tables()).tables() == small.tables()


def test_tables_of_settings_are_merged_too(write):
    text = """
name = "a"
n_models = 9
data = "digits"
[trainer]
use = "classifier"
estimator = "sklearn.tree:DecisionTreeClassifier"
settings = { max_depth = 8, criterion = "gini" }
[game]
train_size = 100
[small]
data = "zeros"
[small.trainer.settings]
max_depth = 2
[small.audit]
delta = 1e-3
"""
    plan = Plan.read(write(text), small=True)
    assert plan.data.use == "zeros"
    assert plan.trainer.settings["settings"] == {"max_depth": 2, "criterion": "gini"}
    assert plan.trainer.settings["estimator"] == "sklearn.tree:DecisionTreeClassifier"
    assert plan.audit.delta == 1e-3
    full = Plan.read(write(text))
    assert (full.data.use, full.audit.delta) == ("digits", 1e-5)


BAD = {
    "a table": ("[smal]\nn_models = 3", 'smal is not a key of a plan. Did you mean "small"?'),
    "a table in it": ("[small.gaem]\ntrain_size = 3", 'small.gaem is not a key of a plan. Did you mean "game"?'),
    "a key": ("[small]\nn_modls = 3", 'small.n_modls is not a key of a plan. Did you mean "n_models"?'),
    "a key of a table": (
        "[small.game]\ntrain_sise = 3",
        'small.game.train_sise is not a key of a plan. Did you mean "train_size"?',
    ),
    "the name": (
        '[small]\nname = "b"',
        "small.name cannot be set: a small run has the plan's name with (small). Remove it.",
    ),
    "itself": ("[small.small]\nn_models = 3", "small.small is not a key of a plan."),
    "a number for a table": ("[small]\ngame = 3", "small.game must be a table of values, but got 3."),
    "a number for a part": ("[small]\ndata = 3", "small.data must be a table of values, but got 3."),
}


@pytest.mark.parametrize("small", [False, True])
@pytest.mark.parametrize("case", BAD)
def test_a_misspelt_table_is_a_sentence_with_and_without_the_switch(write, case, small):
    text, sentence = BAD[case]
    with pytest.raises(InvalidInput) as error:
        Plan.read(write(PLAN + text + ("\n[small]\nseed = 1" if case == "a table" else "")), small=small)
    assert sentence in str(error.value)


def test_no_table_at_all(write):
    for text in (PLAN, PLAN + "[small]"):
        with pytest.raises(InvalidInput, match=r"plan.toml has no table \[small\], .* Add one, or leave out --small\."):
            Plan.read(write(text), small=True)
    with pytest.raises(InvalidInput, match=r"small must be a table of values, but got 3\."):
        Plan.read(write("small = 3\n" + PLAN))


def test_values_that_the_plan_refuses(write):
    with pytest.raises(InvalidInput) as error:
        Plan.read(write(PLAN + "[small]\nn_models = 60"), small=True)
    assert "plan.toml with its table [small]: audit.fit_models must be below n_models = 60" in str(error.value)
    with pytest.raises(InvalidInput, match=r'trainer.epss is not a setting of laplace, .* Did you mean "eps"\?'):
        ask("check", write(PLAN + "[small.trainer]\nepss = 1.0"), "--small")


def test_python_has_no_small_table():
    with pytest.raises(InvalidInput, match=r"small is a table of a plan's file, which Plan.read\(path, small=True\)"):
        Plan(name="a", n_models=3, data="zeros", trainer="laplace", game={"train_size": 9}, small={"n_models": 2})


def test_check_and_run(write, tmp_path):
    file, out = write(PLAN + SMALL), tmp_path / "small"
    seen = json.loads(ask("check", file, "--small", "--json"))
    assert (seen["plan"]["name"], seen["n_guesses"]) == ("coins (small)", 4)
    assert json.loads(ask("check", file, "--json"))["n_guesses"] == 20
    ask("run", file, "--small", "-o", out, "--workers", 1, "--blind")
    assert "8 of 8 models done" in ask("run", file, "--small", "-o", out)
    found = eg.audit(eg.Run.open(out))
    assert sum(found.to_json()["tally"].values()) == 4
    assert "coins (small)" in ask("audit", out)


def test_a_small_run_is_another_run(write, tmp_path):
    """Neither goes on in the folder of the other."""
    file = write(PLAN + SMALL)
    ask("run", file, "-o", tmp_path / "full", "--workers", 1, "--blind")
    with pytest.raises(
        InvalidInput, match=r"full holds another plan \(data.size was 60, now 30; game.train_size was 20, "
    ):
        ask("run", file, "--small", "-o", tmp_path / "full")
    ask("run", file, "--small", "-o", tmp_path / "small", "--workers", 1, "--blind")
    with pytest.raises(
        InvalidInput, match=r"small holds another plan \(data.size was 30, now 60; game.train_size was 10, "
    ):
        ask("run", file, "-o", tmp_path / "small")


def test_fewer_models_alone_are_no_way_to_shrink_a_run(write, tmp_path):
    file = write(PLAN + "[small]\nn_models = 70")
    ask("run", file, "-o", tmp_path / "full", "--workers", 1, "--blind")
    with pytest.raises(InvalidInput, match=r"n_models must be at least 80, .* A run can grow, not shrink"):
        ask("run", file, "--small", "-o", tmp_path / "full")
