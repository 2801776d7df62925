"""Several verdicts at once: of many runs, which may divide their level, of one run by two bounds; and their gates."""

import itertools
import json
import math

import pytest
from command_line import ask, refused, told
from scipy.stats import binom
from tiny_runs import CLAIM, Breaks, pairs_plan, plan, played, stopped

import epsgauge as eg
from epsgauge.auditing.audit import audit_run
from epsgauge.auditing.compare import compare
from epsgauge.auditing.family import Family
from epsgauge.bounds.exact import exact_lower_bound
from epsgauge.errors import InvalidInput
from epsgauge.reporting.report import written
from epsgauge.runner.view import Run
from epsgauge.stats.tally import Tally

NAMES = ("a", "b", "c")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Three runs of randomised response at ε = 2 that claim less or more, and a control."""
    out = tmp_path_factory.mktemp("family")
    for seed, (name, eps) in enumerate(zip(NAMES, (0.1, 3.0, 3.0), strict=True)):
        claim = {"claimed_eps": eps, **CLAIM}
        played(
            plan({"use": "randomised-response", "eps": 2.0}, n_models=180, name=name, seed=seed, audit=claim),
            out / name,
        )
    played(plan(n_models=60, name="control", control=True, seed=9), out / "control")
    return out


@pytest.fixture
def runs(folder):
    return [Run.open(folder / name) for name in NAMES]


def test_each_verdict_holds_by_itself_and_the_comparison_says_what_they_do_together(runs):
    family = compare(runs, rule="best").family
    assert (family.n, family.levels, family.divided) == (3, (0.99,) * 3, False)
    assert family.together == pytest.approx(0.97)
    said = "3 guaranteed verdicts, each at 99 %: all hold together at 97 % or more. --family-wise makes that 99 %."
    assert family.sentence == said


def test_family_wise_divides_the_levels_and_keeps_the_promise(runs):
    found = compare(runs, rule="best", family_wise=True)
    assert found.family.together == pytest.approx(0.99)
    assert "3 of 3 verdicts are guaranteed, each at 99.67 %: all hold together at 99 %" in found.family.sentence
    assert "if this set of runs was fixed before its results were seen" in found.family.sentence
    assert found.level == pytest.approx(1 - 0.1 / 3)
    for run, compared in zip(runs, found.runs, strict=True):
        here, alone = compared.audit, audit_run(run)
        assert (here.verdict.promise, here.verdict.bound.promise, here.lost) == ("guaranteed", "guaranteed", None)
        assert here.verdict.level == pytest.approx(1 - 0.01 / 3)
        assert [row.promise for row in here.rows] == [row.promise for row in alone.rows]
        assert here["exact"].low < alone["exact"].low
        by_hand = audit_run(run, {"verdict_level": here.verdict.level, "level": here.settings.level})
        assert here.verdict.bound.value == by_hand.verdict.bound.value
        assert by_hand.verdict.promise == "estimate"  # that level is nobody's declaration


def test_a_level_that_was_not_declared_is_none_when_it_is_divided(runs):
    found = compare(runs, rule="best", family_wise=True, verdict_level=0.97, level=0.7)
    assert {run.audit.verdict.promise for run in found.runs} == {"estimate"}
    assert {run.audit["exact"].promise for run in found.runs} == {"estimate"}
    assert found.runs[0].audit.verdict.level == pytest.approx(0.99)
    assert (found.family.together, found.family.levels) == (None, ())
    assert found.family.sentence.startswith("No verdict is guaranteed here")


def test_only_what_is_guaranteed_has_a_level_to_share(runs):
    """With one rule for all the first run alone has declared it."""
    assert compare(runs).family == Family(3, (0.99,), False)
    assert compare(runs).family.sentence == ""
    divided = compare(runs, family_wise=True).family
    assert divided.sentence.startswith("1 of 3 verdicts is guaranteed, at 99.67 %, if this set")


def test_levels_that_differ_add_up():
    family = Family(3, (0.99, 0.95), False)
    assert family.together == pytest.approx(0.94)
    assert "2 guaranteed verdicts, at 99 %, 95 %: all hold together at 94 %" in family.sentence
    assert Family(200, (0.99,) * 200, False).together == 0


def test_divided_bounds_are_rarely_wrong_together():
    """By enumeration: any of three bounds at 80 % is too high in more than 20 % of cases, unless they are divided."""
    n, rate = 8, 0.4
    truth = math.log((1 - rate) / rate)  # at δ = 0, of a rule with FNR and FPR 0.4

    def any_of_three(level):
        over = 0.0
        for fn, fp in itertools.product(range(n + 1), repeat=2):
            tally = Tally(tp=n - fn, fn=fn, tn=n - fp, fp=fp)
            if fn + fp < n and exact_lower_bound(tally, delta=0.0, level=level, direction="right") > truth + 1e-9:
                over += float(binom.pmf(fn, n, rate) * binom.pmf(fp, n, rate))
        return 1 - (1 - over) ** 3

    assert any_of_three(0.8) > 0.2
    assert any_of_three(1 - 0.2 / 3) <= 0.2


# Two verdicts on one run


BOTH = "both verdicts hold together at 98 % or more"
FEW = {"fit_models": 10}


def seen(run):
    """Two audits of the run: the second has looked before, and by the same bound."""
    first, again = eg.audit(run), eg.audit(Run.open(run.path))
    assert first.verdict.sentence == again.verdict.sentence
    return first


@pytest.mark.parametrize(
    ("first", "more"),
    [
        (plan(n_models=40, audit=FEW), plan(n_models=60, audit=FEW)),
        (plan(Breaks(1.0), n_models=40, audit=FEW), plan(Breaks(1.0), n_models=60, audit=FEW)),  # some models failed
        (pairs_plan(n_models=30), pairs_plan(n_models=40)),
    ],
    ids=["exact", "exact, some failed", "pooled"],
)
def test_a_run_that_is_extended_after_its_verdict_has_two_of_them(tmp_path, first, more):
    before = seen(played(first, tmp_path / "a"))
    assert (before.verdict.promise, before.verdict.caveats) == ("guaranteed", ())
    v = seen(played(more, tmp_path / "a")).verdict
    assert (before.verdict.method != v.method, v.method, v.promise, v.level) == (True, "anytime", "guaranteed", 0.99)
    n = before.models.done
    said = f"With {n} models done, this run was judged by another bound, at 99 %: {BOTH}."
    assert said in v.sentence
    assert said in audit_run(Run.open(tmp_path / "a")).warnings


def test_a_run_that_is_judged_before_and_after_its_end_has_two_verdicts(tmp_path):
    early = seen(stopped(plan(audit=FEW), tmp_path / "a", 30)).verdict
    assert (early.method, BOTH in early.sentence) == ("anytime", False)
    late = seen(played(plan(audit=FEW), tmp_path / "a"))
    assert (late.verdict.method, late.verdict.promise, late.level_kept) == ("weighted", "guaranteed", True)
    assert late.verdict.caveats == (f"With 30 models done, this run was judged by another bound, at 99 %: {BOTH}.",)


def test_one_bound_keeps_its_level_however_often_it_judges(tmp_path):
    unseen = played(plan(n_models=40, audit=FEW), tmp_path / "unseen")
    assert audit_run(unseen).verdict.promise == "guaranteed"  # no look is logged here
    assert seen(played(plan(n_models=60, audit=FEW), tmp_path / "unseen")).verdict.caveats == ()
    watched = {"verdict_method": "anytime", **FEW}
    eg.audit(stopped(plan(n_models=40, audit=watched), tmp_path / "watched", 30))
    eg.audit(played(plan(n_models=40, audit=watched), tmp_path / "watched"))
    assert "together" not in seen(played(plan(n_models=60, audit=watched), tmp_path / "watched")).verdict.sentence
    early = stopped(plan(n_models=40, audit=FEW), tmp_path / "early", 30)
    eg.audit(early)
    grown = seen(played(plan(n_models=60, audit=FEW), tmp_path / "early"))  # never judged at 40
    assert (grown.verdict.method, "together" in grown.verdict.sentence) == ("anytime", False)


def test_what_shows_no_verdict_is_none(tmp_path):
    run = played(plan(n_models=40, audit=FEW), tmp_path / "a")
    for kind in ("live", "export"):
        assert run.log_look(kind)
    grown = eg.audit(played(plan(n_models=60, audit=FEW), tmp_path / "a"))
    assert (grown.verdict.method, "together" in grown.verdict.sentence) == ("anytime", False)


# Gates and what is shown


def test_a_gate_over_many_runs_fails_if_one_does(folder):
    three = [folder / name for name in NAMES]
    found = json.loads(ask("compare", *three, "--rule", "best", "--fail-on", "violation", "--json", code=1))
    assert [run["audit"]["verdict"]["kind"] for run in found["runs"]] == ["violation", "no objection", "no objection"]
    assert found["gate"]["reasons"] == [f"a: {found['runs'][0]['audit']['verdict']['sentence']}"]
    assert found["family"]["together"] == pytest.approx(0.97)
    assert (
        json.loads(ask("compare", *three[1:], "--rule", "best", "--fail-on", "violation", "--json"))["gate"]["outcome"]
        == "passes"
    )
    assert told("compare", *three, "--rule", "best", "--fail-above", 0.1).returncode == 1


def test_a_gate_over_many_runs_may_divide_the_level(folder):
    three = [folder / name for name in NAMES]
    alone = json.loads(ask("compare", *three, "--rule", "best", "--json"))
    among = json.loads(ask("compare", *three, "--rule", "best", "--family-wise", "--json"))
    highest, divided = (
        max(run["audit"]["verdict"]["bound"]["value"] for run in found["runs"]) for found in (alone, among)
    )
    assert divided < highest
    between = (divided + highest) / 2
    ask("compare", *three, "--rule", "best", "--fail-above", between, code=1)
    ask("compare", *three, "--rule", "best", "--fail-above", between, "--family-wise")


def test_a_gate_says_of_which_run_it_speaks(folder):
    said = refused("compare", folder / "a", folder / "control", "--rule", "best", "--fail-on", "violation")
    assert "control: fail_on = violation needs a claim, but there is none" in said
    shared = told("compare", folder / "b", folder / "a", "--fail-on", "violation")
    assert shared.returncode == 4  # what is not guaranteed could not have failed it
    assert "! not counted, since it is not guaranteed (--count-estimates counts it): a: Violation" in shared.stderr
    idle = told("compare", folder / "a", folder / "b", "--rule", "best", "--fail-above", 50)
    assert idle.stderr.count("! cannot decide: ") == 2


def test_what_a_person_reads(folder, runs):
    out = " ".join(ask("compare", *(folder / name for name in NAMES), "--rule", "best", "--family-wise").split())
    assert "Bayesian 96.7 %" in out
    assert "verdict a: violation, ε ≥" in out
    assert "each at 99.67 %: all hold together at 99 % or more, if this set of runs was fixed" in out
    found = compare(runs, rule="best", family_wise=True)
    page = written(found, "md")
    assert found.family.sentence in page
    assert "--rule best --family-wise" in page
    assert "family_wise=True" in written(compare(runs, rule="best", family_wise=True, delta=1e-4), "md")


def test_two_runs_or_more(runs):
    with pytest.raises(InvalidInput, match="two runs or more"):
        compare(runs[:1], family_wise=True)
