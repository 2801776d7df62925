"""Several verdicts at once: the level of all of them together, levels that are divided, and gates over many runs."""

import itertools
import json
import math

import pytest
from command_line import ask, refused, told
from scipy.stats import binom
from tiny_runs import CLAIM, plan, played

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
        assert (here.verdict.promise, here.gauge.promise, here.lost) == ("guaranteed", "guaranteed", None)
        assert here.verdict.level == pytest.approx(1 - 0.01 / 3)
        assert [row.promise for row in here.rows] == [row.promise for row in alone.rows]
        assert here["exact"].low < alone["exact"].low
        by_hand = audit_run(run, {"verdict_level": here.verdict.level, "level": here.settings.level})
        assert (here.verdict.bound, here["exact"].low) == (by_hand.verdict.bound, by_hand["exact"].low)
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


# Gates and what is shown


def test_a_gate_over_many_runs_fails_if_one_does(folder):
    three = [folder / name for name in NAMES]
    found = json.loads(ask("compare", *three, "--rule", "best", "--fail-on", "violation", "--json", code=1))
    assert [run["audit"]["verdict"]["kind"] for run in found["runs"]] == ["violation", "not refuted", "not refuted"]
    assert found["gate"] == [f"a: {found['runs'][0]['audit']['verdict']['sentence']}"]
    assert found["family"]["together"] == pytest.approx(0.97)
    assert json.loads(ask("compare", *three[1:], "--rule", "best", "--fail-on", "violation", "--json"))["gate"] == []
    assert told("compare", *three, "--rule", "best", "--fail-above", 0.1).returncode == 1


def test_a_gate_over_many_runs_may_divide_the_level(folder):
    three = [folder / name for name in NAMES]
    alone = json.loads(ask("compare", *three, "--rule", "best", "--json"))
    among = json.loads(ask("compare", *three, "--rule", "best", "--family-wise", "--json"))
    highest, divided = (max(run["audit"]["lower_bound"] for run in found["runs"]) for found in (alone, among))
    assert divided < highest
    between = (divided + highest) / 2
    ask("compare", *three, "--rule", "best", "--fail-above", between, code=1)
    ask("compare", *three, "--rule", "best", "--fail-above", between, "--family-wise")


def test_a_gate_says_of_which_run_it_speaks(folder):
    said = refused("compare", folder / "a", folder / "control", "--rule", "best", "--fail-on", "violation")
    assert "control: fail_on = violation needs a claim, but there is none" in said
    shared = told("compare", folder / "b", folder / "a", "--fail-on", "violation")
    assert shared.returncode == 0
    assert "! not counted, since it is not guaranteed (--count-estimates counts it): a: Violation" in shared.stderr
    idle = told("compare", folder / "a", folder / "b", "--rule", "best", "--fail-above", 50)
    assert idle.stderr.count("! this gate could not have failed: ") == 2


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
