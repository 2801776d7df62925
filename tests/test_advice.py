"""How many models `check` recommends, with an attack that a run has shown or with the best one there is."""

import io
import json
import math
import re

import numpy as np
import pytest
from command_line import ask
from rich.console import Console
from tiny_runs import CLAIM, pairs_plan, plan, plan_text, played

import epsgauge as eg
from epsgauge.auditing import advice
from epsgauge.auditing.advice import best_attack
from epsgauge.auditing.forecast import forecast
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.numbers import short
from epsgauge.reporting.check import show

STATED = 'claimed_eps = 0.5\nclaimed_delta = 1e-5\nclaimed_adjacency = "substitute"\n'


@pytest.fixture(autouse=True)
def not_so_many(monkeypatch):
    """Each doubling up to the most that are asked for takes as long as the last."""
    monkeypatch.setattr(advice, "MOST", 2000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("advice")
    (out / "plan.toml").write_text(plan_text(n_models=360))
    text = plan_text(n_models=500).replace("fit_models = 60", "fit_models = 8")
    (out / "false.toml").write_text(text + STATED)
    ask("run", out / "plan.toml", "-o", out / "run")
    return out


def said(*args):
    return " ".join(ask(*args).split())


@pytest.mark.long
def test_a_false_claim_needs_about_as_many_models_as_refute_it(folder):
    seen = json.loads(ask("check", folder / "false.toml", "--run", folder / "run", "--json"))["advice"][0]
    assert seen["eps"] == 0.5

    def refuted(n):
        audit = {"claimed_eps": 0.5, **CLAIM, "fit_models": 8}
        plans = (plan({"use": "laplace", "eps": 2.0}, n_models=n, seed=seed, audit=audit) for seed in range(4))
        audits = [eg.audit(played(each, folder / f"{n}-{each.seed}")) for each in plans]
        return sum(found.verdict.kind == "violation" for found in audits)

    n = round(seen["n_models"])
    assert refuted(2 * n) >= 3
    assert refuted(n // 3) <= 2


def test_it_advises_a_new_run(folder):
    text = said("check", folder / "false.toml", "--run", folder / "run")
    assert "To refute ε = 0.5 with an attack like that of" in text
    assert "models are needed for a chance of 80 %: start a new run of" in text
    assert "is extended to 500 models, it is judged by the anytime bound, which is lower" in text


def test_a_true_claim_is_refuted_by_no_number_of_models_but_where_noise_is_missing(folder):
    noisy, quiet = json.loads(ask("check", folder / "plan.toml", "--run", folder / "run", "--json"))["advice"]
    assert noisy["n_models"] == "inf"
    assert quiet["measured"] == "100 % of pairs in the right order"
    assert quiet["n_models"] < 300
    text = said("check", folder / "plan.toml", "--run", folder / "run")
    assert "2,000 models are too few: use a stronger attack." in text
    assert "is extended" not in text


def test_the_rates_of_an_attack_are_those_of_its_audit(folder):
    advised = json.loads(ask("check", folder / "false.toml", "--run", folder / "run", "--json"))["advice"]
    shown = " ".join(ask("audit", folder / "run").split())
    assert advised[0]["measured"].replace(", ", " ") in shown
    assert advised[1]["measured"] in shown  # of the control
    assert f"({advised[0]['measured']})" in said("check", folder / "false.toml", "--run", folder / "run")


def test_what_any_training_can_show_is_the_same_with_and_without_the_trainer():
    """A trainer that states DP-SGD is judged by its curve, which shows more, under a condition."""
    trainer = {"use": "dpsgd", "batch_size": 20, "epochs": 5, "noise_multiplier": 2.0}
    own = plan(trainer, data="digits", train_size=40, canaries=None, challenge=None)
    unknown = plan(data="digits", train_size=40, canaries=None, challenge=None)
    known, before = forecast(own), forecast(unknown)
    assert (known.largest_any, known.label_any) == (before.largest_any, before.label_any)
    assert before.largest_verdict == before.largest_any
    assert known.largest_verdict > 2 * known.largest_any
    page = io.StringIO()
    show(known, None, Console(file=page, width=400))
    (line,) = [line for line in page.getvalue().splitlines() if line.startswith("can show")]
    assert f"ε of at most {short(known.largest_any, 2)} for any training (Weighted" in line
    assert f"at most {short(known.largest_verdict, 2)} if it is the DP-SGD that is accounted (Curve)" in line


def test_a_plan_that_cannot_decide_says_so_and_how_many_models_would():
    few = plan(n_models=60, audit={"claimed_eps": 4.0, **CLAIM})
    (warning,) = forecast(few).warnings
    assert warning.startswith("60 models cannot decide this claim: a perfect attack shows at most ε = ")
    n = int(re.search(r"At least ([\d,]+) are needed", warning)[1].replace(",", ""))
    assert forecast(few.changed(n_models=n)).warnings == ()
    assert forecast(few.changed(n_models=round(0.95 * n))).warnings != ()


def test_it_is_a_look(folder):
    before = len(eg.Run.open(folder / "run").looks)
    ask("check", folder / "plan.toml", "--run", folder / "run")
    assert len(eg.Run.open(folder / "run").looks) == before + 1


def test_a_stated_claim_is_held_against_the_best_attack():
    trainer = {"use": "dpsgd", "batch_size": 20, "epochs": 5, "noise_multiplier": 2.0}
    own = plan(trainer, data="digits", train_size=40, canaries=None, challenge=None)
    assert forecast(own).advice == ()  # what the accountant says of itself
    (found,) = forecast(own.with_audit(claimed_eps=0.4, **CLAIM)).advice
    assert found.attack == advice.BEST
    assert found.n_models < 1000
    (none,) = forecast(own.with_audit(claimed_eps=40.0, **CLAIM)).advice
    assert math.isinf(none.n_models)
    assert str(none).endswith("2,000 models are too few.")


@pytest.mark.parametrize("rate", [0.3, 1.0])
def test_the_best_attack_has_the_rates_of_likelihood_ratios(rate):
    """Of all steps, drawn one by one."""
    scores, rng, n, noise, steps = (
        best_attack(DPSGD(rate, 2.0, 6), "substitute").scores,
        np.random.default_rng(0),
        20_000,
        2.0,
        6,
    )
    ratio = {}
    for gradient in (-1.0, 1.0):
        x = (rng.random((n, steps)) < rate) * gradient + rng.normal(0.0, noise, (n, steps))
        with_it, without = (1 - rate + rate * np.exp((2 * x * g - 1) / (2 * noise**2)) for g in (1.0, -1.0))
        ratio[gradient] = np.log(with_it / without).sum(axis=1)
    for fpr in (0.02, 0.2, 0.6):
        drawn = np.mean(ratio[1.0] >= np.quantile(ratio[-1.0], 1 - fpr))
        cut = np.quantile(scores.score[scores.bit == 0], 1 - fpr)
        assert np.mean(scores.score[scores.bit == 1] >= cut) == pytest.approx(drawn, abs=0.015)


def test_several_pairs_of_a_model(tmp_path):
    shown = played(pairs_plan(4, shift=3.0, n_models=60), tmp_path / "run")
    audit = {"attack": "percentile", "claimed_eps": 1.0, **CLAIM}
    assert forecast(pairs_plan(4, shift=3.0, n_models=60, audit=audit), run=shown).advice[0].n_models < 200


def test_what_cannot_be_advised_is_said(folder):
    shown = eg.Run.open(folder / "run")
    with pytest.raises(eg.InvalidInput, match="--run needs a run of the plan's game"):
        forecast(pairs_plan(4), run=shown)
    with pytest.raises(eg.InvalidInput, match="--run needs an attack that is built in"):
        forecast(shown.plan.with_audit(attack="mine:Attack"), run=shown)
