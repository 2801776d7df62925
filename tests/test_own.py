"""An attack and a method of the user's own: in Python, on the command line, in plans; their names and promises."""

import json
import re
import sys

import pytest
from command_line import ask
from tiny_runs import pairs_plan, plan, played

import epsgauge as eg
from epsgauge.auditing.audit import audit, audit_run
from epsgauge.auditing.live import ELSEWHERE, Live
from epsgauge.auditing.stopping import StopWhen
from epsgauge.errors import InvalidInput
from epsgauge.methods.bayes import Bayes
from epsgauge.methods.clopper_pearson import ClopperPearson
from epsgauge.methods.clusters import Clusters
from epsgauge.methods.exact import Exact
from epsgauge.runner.view import Run

MODULE = """
import epsgauge as eg
from epsgauge.methods.clopper_pearson import ClopperPearson

class Doubled(eg.Attack):
    name = "doubled"
    meaning = "twice the difference of both losses"
    axis = "score: twice the difference"

    def score(self, signals):
        return 2 * (signals["loss"][..., 0] - signals["loss"][..., 1])

    def sees(self, signals):
        return "black box: both losses"

class Mine(ClopperPearson):
    name = "mine"
    label = "My own"

nothing = 5
"""


PARAMETERS = """
from dataclasses import dataclass

@dataclass(frozen=True)
class Scaled(Doubled):
    by: float = 2.0
    name = "scaled"

    def score(self, signals):
        return self.by * super().score(signals)
"""


class Doubled(eg.Attack):
    name = "doubled"

    def score(self, signals):
        return 2 * (signals["loss"][..., 0] - signals["loss"][..., 1])


class Mine(ClopperPearson):
    name = "mine"
    label = "My own"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return played(plan(), tmp_path_factory.mktemp("own") / "a")


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A file of the user's in the current folder."""
    file = tmp_path / "my_parts.py"
    file.write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield file
    sys.modules.pop("my_parts", None)


def declared(attack="my_parts:Doubled", **kw):
    return plan(audit={"attack": attack, **kw})


def test_an_attack_of_ones_own_has_its_name_everywhere(run):
    a, built_in = audit_run(run, {"attack": Doubled()}), audit_run(run)
    assert a.judged.tally == built_in.judged.tally  # twice a score is the same rule
    assert a.verdict.adversary.attack == "doubled"
    assert "attack doubled" in a.verdict.sentence
    assert a.settings.attack == "test_own:Doubled"
    assert a.to_json()["settings"]["attack"] == "test_own:Doubled"
    assert "attack doubled" in str(a)


def test_an_attack_that_was_not_declared_promises_nothing(run):
    a = audit_run(run, {"attack": Doubled()})
    assert {row.promise for row in a.rows} == {"estimate"}
    assert "attack differs from what the plan declared" in a.lost.why


def test_a_declared_attack_keeps_the_level_and_is_loaded_only_where_it_is_named(tmp_path, module):
    done = played(declared(), tmp_path / "run")
    with pytest.raises(InvalidInput, match="no code is loaded because a run directory names it") as refused:
        audit_run(done)
    assert "--attack my_parts:Doubled" in str(refused.value)
    assert "my_parts" not in sys.modules
    for named in ("my_parts:Doubled", __import__("my_parts").Doubled, __import__("my_parts").Doubled()):
        a = audit_run(done, {"attack": named})
        assert (a.level_kept, a.verdict.promise, a.settings.attack) == (True, "guaranteed", "my_parts:Doubled")
        assert "this holds only if it does not read the bits elsewhere" in a.verdict.sentence
        assert a.verdict.caveats[-1] in a.warnings


def lost(run, attack="my_parts:Doubled"):
    found = audit(run, attack=attack)
    assert {row.promise for row in found.rows} == {found.verdict.promise} == {"estimate"}
    return found.lost.why


def test_code_that_is_not_what_was_declared_loses_the_level(tmp_path, module):
    done = played(declared(), tmp_path / "run")
    assert audit(done, attack="my_parts:Doubled").level_kept
    look = Run.open(tmp_path / "run").looks[0]
    assert [(own["what"], own["name"], len(own["code"])) for own in look["own"]] == [("attack", "my_parts:Doubled", 64)]
    module.write_text(MODULE.replace("2 *", "3 *"))
    changed = "the code of my_parts:Doubled is not known to be what it was before results were seen"
    assert lost(done) == changed
    module.write_text(MODULE)
    assert audit(done, attack="my_parts:Doubled").level_kept


def test_code_that_is_written_later_was_not_declared(tmp_path, module):
    module.unlink()
    done = played(declared(), tmp_path / "run")
    module.write_text(MODULE)
    assert "is not known to be what it was" in lost(done)


def test_what_a_module_imports_from_beside_it_is_its_code(tmp_path, module):
    (tmp_path / "factor.py").write_text("FACTOR = 2\n")
    module.write_text("from factor import FACTOR\n" + MODULE.replace("2 *", "FACTOR *"))
    done = played(declared(), tmp_path / "run")
    assert audit(done, attack="my_parts:Doubled").level_kept
    (tmp_path / "factor.py").write_text("FACTOR = 3\n")
    assert "is not known to be what it was" in lost(done)
    sys.modules.pop("factor", None)


def test_other_parameters_are_another_attack(tmp_path, module):
    module.write_text(MODULE + PARAMETERS)
    done = played(declared("my_parts:Scaled"), tmp_path / "run")
    by_itself, other = __import__("my_parts").Scaled(), __import__("my_parts").Scaled(by=3.0)
    assert audit(done, attack=by_itself).level_kept
    assert "was given with other parameters" in lost(done, other)
    plain = __import__("my_parts").Doubled()
    plain.score = lambda signals: signals["loss"][..., 1]
    assert "was given with other parameters" in lost(played(declared(), tmp_path / "b"), plain)


def test_an_attack_does_not_see_the_bits(run):
    class Peeks(eg.Attack):
        name = "peeks"

        def score(self, signals):
            assert (signals.bits == -1).all()
            return signals.bits.astype(float)

    class Cheats(Peeks):
        name = "cheats"

        def scores(self, signals):
            return eg.Scores(signals.models, signals.models * 0, signals.bits[:, 0], signals.bits[:, 0], "substitute")

    class Writes(eg.Attack):
        name = "writes"

        def score(self, signals):
            signals.bits[:] = 1
            return signals["loss"][..., 1]

    for attack in (Peeks(), Cheats()):
        assert audit_run(run, {"attack": attack, "rule": "given", "threshold": 0.0}).judged.tally.tp == 0
    with pytest.raises(InvalidInput, match="attack writes failed with ValueError"):
        audit_run(run, {"attack": Writes()})


def test_while_it_runs_nothing_of_it_is_shown(tmp_path):
    done = played(declared(), tmp_path / "run")
    live = Live(done)
    assert live.text() == ELSEWHERE
    assert not live.shows_results
    with pytest.raises(InvalidInput, match="which is your own code"):
        StopWhen.parse("width<0.5", declared()).check(done)


def test_a_method_of_ones_own_is_an_estimate_whatever_it_says(tmp_path):
    run = played(plan(audit={"verdict_method": "test_own:Mine"}), tmp_path / "a")
    a = audit_run(run, {"verdict_method": Mine()})
    assert a.level_kept
    assert (a.verdict.method, a.verdict.bound.label, a.verdict.promise) == ("mine", "My own", "estimate")
    assert a["mine"].note.endswith("a method of your own, for which epsgauge does not vouch")
    expected = eg.intervals(a.guaranteed_tally, delta=1e-5, level=0.9)["clopper-pearson"]
    assert (a["mine"].low, a["mine"].high) == (expected.low, expected.high)
    assert a.verdict.bound.value == audit_run(run, {"verdict_method": "clopper-pearson"}).verdict.bound.value
    assert "for which epsgauge does not vouch" in a.verdict.sentence
    assert a.verdict.bound.method == "mine"


class Sly(ClopperPearson):
    name = "sly"
    label = "Sly"

    def form(self, evidence, *, by_mu):
        return Exact()


def test_a_method_cannot_borrow_a_promise(tmp_path):
    run = played(plan(audit={"verdict_method": "test_own:Sly"}), tmp_path / "a")
    a = audit_run(run, {"verdict_method": Sly()})
    assert (a.level_kept, a.verdict.promise) == (True, "estimate")
    assert a["clopper-pearson"].promise == "guaranteed"
    altered = Exact()
    altered.lower_bound = lambda evidence, **at: 9.0
    with pytest.raises(InvalidInput, match="must not be called 'exact', which is built in"):
        audit_run(run, {"verdict_method": altered})


class Narrow(Bayes):
    name = "narrow"
    label = "Narrow"


def test_a_posterior_of_ones_own_is_an_estimate_too(tmp_path):
    run = played(plan(audit={"verdict_method": "test_own:Narrow"}), tmp_path / "run")
    assert audit_run(run, {"verdict_method": Narrow()}).verdict.promise == "estimate"


class Raises(Mine):
    name = "raises"
    label = "Raises"

    def detectable(self, evidence, *, delta, level):
        raise ZeroDivisionError("oh")


class Nan(Mine):
    name = "nan"
    label = "Nan"

    def lower_bound(self, evidence, *, delta, level):
        return float("nan")


class Nameless(Mine):
    name = "nameless"
    label = None


class Sighs(Doubled):
    name = "sighs"

    def sees(self, signals):
        raise ZeroDivisionError("oh")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"verdict_method": Raises()}, "method test_own:Raises failed with ZeroDivisionError: oh."),
        ({"verdict_method": Nan()}, "a bound of Nan must be a number that is at least 0, but it gave nan."),
        ({"verdict_method": Nameless()}, "Nameless, must have a text as its label, but has None."),
        ({"attack": Sighs()}, "attack test_own:Sighs failed with ZeroDivisionError: oh."),
    ],
)
def test_code_that_misbehaves_gets_one_sentence(run, changes, sentence):
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        audit_run(run, changes)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"attack": "nowhere"}, "attack must be one of percentile, loss, difference"),
        ({"attack": "my_parts:nothing"}, "but got my_parts:nothing."),
        ({"attack": "my_parts:Dubled"}, "has no 'Dubled'. Did you mean \"Doubled\"?"),
        ({"verdict_method": "clusters"}, "simultaneous, anytime, .module:attr. or an object of a class"),
        ({"verdict_method": Clusters()}, "which clusters may not"),
        ({"attack": Mine()}, "extends epsgauge.attacks.attack.Attack"),
        ({"verdict_method": Doubled()}, "extends epsgauge.methods.method.Method"),
        ({"verdict_method": "my_parts:Doubled"}, "extends epsgauge.methods.method.Method"),
        ({"verdict_method": type("Fake", (Mine,), {"name": "exact"})()}, "must not be called 'exact'"),
        ({"attack": type("Fake", (Doubled,), {"name": " "})()}, "must have a text as its name"),
    ],
)
def test_what_is_refused(run, module, changes, sentence):
    with pytest.raises(InvalidInput, match=sentence.replace("?", r"\?")):
        audit_run(run, changes)


def test_an_attack_whose_channel_the_run_lacks(run):
    class Margins(eg.Attack):
        name = "margins"
        needs = ("margin",)

        def score(self, signals):
            return signals["margin"]

    with pytest.raises(InvalidInput, match="the attack margins needs the channel 'margin', but this run has only"):
        audit_run(run, {"attack": Margins()})


def test_on_the_command_line(tmp_path, module):
    played(declared(), tmp_path / "run")
    found = json.loads(ask("audit", tmp_path / "run", "--attack", "my_parts:Doubled", "--json"))
    assert found["verdict"]["adversary"]["attack"] == "doubled"
    assert found["level_kept"]
    assert "attack      doubled" in ask("audit", tmp_path / "run", "--attack", "my_parts:Doubled")
    by_mine = ask("audit", tmp_path / "run", "--attack", "my_parts:Doubled", "--verdict-method", "my_parts:Mine")
    assert "My own" in by_mine
    written = ask("export", tmp_path / "run", "--attack", "my_parts:Doubled", "-o", tmp_path / "s.csv")
    assert "scores of the attack doubled" in written


def test_several_pairs_per_model(tmp_path):
    done = played(pairs_plan(), tmp_path / "run")
    a = audit_run(done, {"attack": Doubled(), "verdict_method": Mine()})
    assert "of one pair per model out of 4, fixed beforehand" in a["mine"].note
