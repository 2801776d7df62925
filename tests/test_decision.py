"""The decision: what an audit means for a release, and which steps come next."""

from dataclasses import replace
from typing import get_args

import pytest
from command_line import told
from test_verdict import ruled
from tiny_runs import CLAIM, played, small_plan

import epsgauge as eg
from epsgauge.auditing.basis import Basis
from epsgauge.auditing.decision import MEANS, decision_of
from epsgauge.auditing.verdict import Ruling
from epsgauge.probing.finding import Finding
from epsgauge.stats.tally import Tally

STRONG, WEAK, FEW = (
    Tally(tp=499, fn=1, tn=499, fp=1),
    Tally(tp=252, fn=248, tn=250, fp=250),
    Tally(tp=5, fn=1, tn=5, fp=1),
)
NOISE = Finding("noise", "refuted", "The noise is at most 0.5.", noise=0.5)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return played(small_plan(), tmp_path_factory.mktemp("decision") / "run")


def commands(decision):
    return [step.command for step in decision.steps if step.command]


def test_every_ruling_means_something_for_a_release():
    assert set(MEANS) == set(get_args(Ruling))


def test_a_violation_without_a_probe_asks_for_one_first(run):
    found = decision_of(ruled(STRONG, 1.0), run)
    assert found.meaning.startswith("Do not release under this claim")
    assert commands(found) == ["epsgauge probe PLAN", "epsgauge run PLAN --out NEW"]


def test_what_the_probe_found_is_to_be_fixed_first(run):
    found = decision_of(replace(ruled(STRONG, 1.0), basis=Basis(None, (NOISE,))), run)
    assert found.steps[0].text == "Fix the training (noise), or account for what it really does."


def test_a_claim_that_the_accountant_does_not_support_is_to_be_stated_anew(run):
    accounting = Finding("accounting", "refuted", "ε = 1 is claimed, but …")
    (step,) = decision_of(replace(ruled(WEAK, 1.0), kind="unsupported", basis=Basis(None, (accounting,))), run).steps
    assert step.text.startswith("State the ε that the accountant computes")


def test_an_attack_that_can_refute_nothing_is_inconclusive_and_is_to_be_replaced(run):
    found = ruled(WEAK, 1.0)
    assert found.kind == "inconclusive"
    assert "this attack is too weak to refute any claim with 80 % power." in found.sentence
    assert "without noise" not in found.sentence  # nothing was tried without noise
    assert "a stronger adversary" in " ".join(step.text for step in decision_of(found, run).steps)


def test_an_attack_with_some_power_is_not_inconclusive():
    found = ruled(Tally(tp=350, fn=150, tn=350, fp=150), 3.0)
    assert found.kind == "not refuted"
    assert "this attack refutes claims below ε = " in found.sentence


def test_too_few_models_say_how_many_are_needed(run):
    found = decision_of(ruled(FEW, 4.0), run)
    assert found.meaning == "Do not base a decision on this audit: there are too few models to tell."
    assert "even a perfect attack needs about" in found.steps[0].text


def test_scores_have_steps_of_their_own():
    by_estimate = ruled(STRONG, 1.0, promise="estimate")
    assert commands(decision_of(by_estimate, None)) == [
        "epsgauge declare FILE",
        "epsgauge scores SCORES --declared FILE",
    ]
    for tally, claim in ((STRONG, 1.0), (WEAK, 1.0), (FEW, 4.0), (WEAK, None)):
        found = decision_of(ruled(tally, claim), None)
        assert found.steps
        assert not any("PLAN" in step.command for step in found.steps)


def test_the_terminal_begins_with_the_decision_and_explains_on_demand(run):
    shown = told("audit", run.path, "--claimed-eps", 0.5, "--claimed-delta", 1e-5, "--claimed-adjacency", "substitute")
    heads = [line.split()[0] for line in shown.stdout.splitlines()[1:4]]
    assert heads[0] == "verdict"
    assert "means" in heads
    assert "a posterior under a stated prior" not in shown.stdout
    assert "a posterior under a stated prior" in told("audit", run.path, "--explain").stdout


def test_lines_end_where_their_text_does(run):
    table = told("audit", run.path).stdout.split("90 % interval")[0]
    assert not any(line != line.rstrip() for line in table.splitlines()[:-1])


def test_reports_and_json_have_the_decision(run, tmp_path):
    audit = eg.audit(run, claimed_eps=0.5, **CLAIM)
    page, text = (eg.report(audit, out=tmp_path / f"r.{kind}").read_text(encoding="utf-8") for kind in ("html", "md"))
    for shown in (page, text):
        assert audit.decision.meaning in shown
        assert audit.decision.steps[0].text.replace('"', "&#34;")[:30] in shown.replace("&#39;", "'")
        assert "Pr[ε &gt; claim]" not in shown
    assert audit.to_json()["decision"]["meaning"] == audit.decision.meaning
