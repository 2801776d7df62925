"""The decision: what an audit means for a release, and which steps come next."""

from dataclasses import replace
from typing import get_args

import pytest
from command_line import told
from test_verdict import ruled
from tiny_runs import CLAIM, pairs_plan, plan, played, small_plan, stopped

import epsgauge as eg
from epsgauge.auditing.basis import Basis
from epsgauge.auditing.decision import MEANS, decision_of
from epsgauge.auditing.gate import gate
from epsgauge.auditing.verdict import Ruling
from epsgauge.probing.finding import Finding
from epsgauge.probing.result import Probe, Unprobed
from epsgauge.runner.hopeless import NO_CONTROL
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
    found = decision_of(ruled(STRONG, 1.0), of_dpsgd(run))
    assert found.meaning.startswith("Do not release under this claim")
    assert commands(found) == ["epsgauge probe PLAN", "epsgauge run PLAN --out NEW"]


def of_dpsgd(run):
    return replace(run, privacy=eg.DPSGD(0.1, 1.0, 10))


def texts(decision):
    return " ".join(step.text for step in decision.steps)


def test_no_step_asks_for_what_cannot_run(run):
    """A classifier of scikit-learn states no DP-SGD, takes no watch and has no noise to leave out."""
    plain = replace(run, privacy=None, notes=[f"{NO_CONTROL}trainer classifier cannot be had without noise."])
    for tally, claim in ((STRONG, 1.0), (WEAK, 1.0), (Tally(tp=350, fn=150, tn=350, fp=150), 3.0), (FEW, 4.0)):
        found = decision_of(ruled(tally, claim), plain)
        assert found.steps
        assert not any(word in str(found) for word in ("probe", "--control", "white-box"))
    assert texts(decision_of(ruled(STRONG, 1.0), plain)).startswith("Fix the training, or state a larger ε.")


def test_a_probe_that_failed_or_found_nothing_is_not_proposed_again(run):
    failed = replace(of_dpsgd(run), probe=Unprobed("the training takes no watch."))
    assert "probe" not in str(decision_of(ruled(STRONG, 1.0), failed))
    clean = Probe(failed.privacy, 1e-5, "substitute", None, None, None, (), 100, 1.0)
    assert "The probe found nothing" in texts(decision_of(ruled(STRONG, 1.0), replace(failed, probe=clean)))
    assert "epsgauge probe PLAN" not in commands(decision_of(ruled(WEAK, 1.0), replace(failed, probe=clean)))


def test_a_mechanism_is_never_told_to_use_canaries():
    game = eg.MechanismGame(lambda data, rng, size: rng.normal(size=size), [0], [1], n_samples=400)
    audit = eg.audit(game, claimed_eps=1.0)
    assert audit.verdict.kind == "cannot decide"
    assert not any(word in str(audit) + audit.verdict.sentence for word in ("canar", "updates"))


def test_average_points_are_left_by_removing_all_keys_that_mean_them(tmp_path):
    pairs = played(pairs_plan(4, n_models=30), tmp_path / "run")
    found = decision_of(ruled(WEAK, 1.0), pairs)
    assert "remove challenge, pairs_per_model and attack from the plan" in texts(found)


def test_a_run_that_still_trains_is_in_progress(tmp_path):
    run = stopped(plan(n_models=60, audit={"fit_models": 10, "claimed_eps": 5.0, **CLAIM}), tmp_path / "run", 20)
    audit = eg.audit(run)
    assert audit.verdict.kind == "in progress"
    assert audit.verdict.sentence.startswith("In progress: 40 models to go; those that are done could not have refuted")
    assert audit.decision.meaning == "There is nothing to decide yet: the run is in progress."
    assert commands(audit.decision) == [f"epsgauge run PLAN --out {run.path}"]
    assert gate(audit, fail_on="violation").idle == ("the run is in progress (40 models to go)",)
    assert "In progress" in told("audit", run.path).stdout
    assert "means nothing yet" in eg.report(audit, out=tmp_path / "r.html").read_text(encoding="utf-8")
    done = played(plan(n_models=60, audit={"fit_models": 10, "claimed_eps": 5.0, **CLAIM}), tmp_path / "run")
    assert eg.audit(done).verdict.kind == "cannot decide"


def test_what_the_probe_found_is_to_be_fixed_first(run):
    found = decision_of(replace(ruled(STRONG, 1.0), basis=Basis(None, (NOISE,))), run)
    assert found.steps[0].text == "Fix the training (noise), or account for what it really does."


def test_a_claim_that_the_accountant_does_not_support_is_to_be_stated_anew(run):
    accounting = Finding("accounting", "refuted", "ε = 1 is claimed, but …")
    (step,) = decision_of(replace(ruled(WEAK, 1.0), kind="unsupported", basis=Basis(None, (accounting,))), run).steps
    assert step.text.startswith("State the ε that the accountant computes")


def test_an_attack_that_can_refute_nothing_cannot_decide_and_is_to_be_replaced(run):
    found = ruled(WEAK, 1.0)
    assert found.kind == "cannot decide"
    assert "this attack is too weak to refute any claim with 80 % power." in found.sentence
    assert "without noise" not in found.sentence  # nothing was tried without noise
    assert "a stronger adversary" in " ".join(step.text for step in decision_of(found, of_dpsgd(run)).steps)


def test_an_attack_with_some_power_finds_no_objection():
    found = ruled(Tally(tp=350, fn=150, tn=350, fp=150), 3.0)
    assert found.kind == "no objection"
    assert "this attack refutes claims below ε = " in found.sentence


def test_too_few_models_say_how_many_are_needed(run):
    found = decision_of(ruled(FEW, 4.0), run)
    assert found.meaning == "Do not base a decision on this audit: it could not have refuted the claim."
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
    heads = [line.split()[0] for line in shown.stdout.splitlines()[1:] if line[:1].strip()][:3]
    assert heads == ["verdict", "shown", "means"]
    assert "a posterior under a stated prior" not in shown.stdout
    assert "a posterior under a stated prior" in told("audit", run.path, "--explain").stdout


def test_lines_end_where_their_text_does(run):
    table = told("audit", run.path).stdout.split("promise")[0]
    assert not any(line != line.rstrip() for line in table.splitlines()[:-1])


def test_reports_and_json_have_the_decision(run, tmp_path):
    audit = eg.audit(run, claimed_eps=0.5, **CLAIM)
    page, text = (eg.report(audit, out=tmp_path / f"r.{kind}").read_text(encoding="utf-8") for kind in ("html", "md"))
    for shown in (page, text):
        assert audit.decision.meaning in shown
        assert audit.decision.steps[0].text.replace('"', "&#34;")[:30] in shown.replace("&#39;", "'")
        assert "Pr[ε &gt; claim]" not in shown
    assert audit.to_json()["decision"]["meaning"] == audit.decision.meaning
