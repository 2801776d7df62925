"""The benchmark of how near bounds come to what the data allow: its ideal, and its rows."""

import importlib
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from epsgauge.auditing.audit import audit
from epsgauge.bounds.watched import watched_lower_bound
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.table import METHODS
from epsgauge.scores.rules import Split, default_fit, judge
from epsgauge.scores.table import Scores


@pytest.fixture
def tightness(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "benchmarks")
    return importlib.import_module("tightness_of_bounds")


def test_the_nearest_private_law_of_randomised_response_is_randomised_response(tightness):
    ins, outs = tightness.Answers(1.0).laws()
    p, q = special.expit(1.0), special.expit(0.7)
    closed = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    divergence = importlib.import_module("ideal").divergence
    assert divergence(ins, outs, eps=0.7, delta=0.0) == pytest.approx(closed, rel=1e-6)
    assert divergence(ins, outs, eps=1.1, delta=0.0) == pytest.approx(0.0, abs=1e-9)


def test_a_delta_brings_the_nearest_private_law_nearer(tightness):
    laws = tightness.Normal(1.0).laws()
    divergence = importlib.import_module("ideal").divergence
    assert divergence(*laws, eps=2.0, delta=1e-3) < divergence(*laws, eps=2.0, delta=1e-5)
    assert divergence(*laws, eps=2.0, delta=1e-5) < divergence(*laws, eps=1.9, delta=1e-5)


def test_truth_and_ideal_of_the_settings(tightness):
    shown = [(round(s.truth, 3), s.ideal()) for s in tightness.SETTINGS]
    assert shown[:3] == [(4.377, "2.03"), (4.377, "1.27"), (4.868, "1.26")]
    assert [(s.truth > 0, ideal) for s, (_, ideal) in zip(tightness.SETTINGS[3:], shown[3:], strict=True)] == [
        (True, ""),
        (False, ""),
    ] * 2


def test_every_guaranteed_method_has_a_row(tightness, capsys):
    gauss, null = (replace(tightness.SETTINGS[i], n=60) for i in (0, 4))
    tightness.samples(2, 0, tightness.Work(), [gauss, null])
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    named = {row[0].removesuffix(" †") for row in rows}
    assert {name for name, method in METHODS.items() if method.promise == "guaranteed" and not method.of_dpsgd} < named
    assert all(len(row) == 3 for row in rows if row[0] in METHODS)


def test_one_model_has_the_bounds_that_allow_for_any_dependence(tightness, capsys):
    tightness.one_model(2, 300, 0, tightness.Work())
    out = capsys.readouterr().out
    assert all(f"| {name} |" in out for name in ("pooled", "one-run", "one-run †", "simultaneous", tightness.STEINKE))
    assert "exact" not in out


def test_bounds_by_the_share_that_chooses(tightness, capsys):
    tightness.shares(0, 1, 600, 0, tightness.Work())
    rows = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert rows[0] == ["1/6", "1/12", "1/20"]
    assert [row[0].split(": ")[1] for row in rows[2:]] == ["pooled", "one-run †"]
    assert all(len(row) == 4 and all(float(x) > 0 for x in row[1:]) for row in rows[2:])


def test_bounds_are_those_of_an_audit(tightness):
    """Of the rows that are left for judging, at the threshold that the others chose."""
    n, fit = 120, default_fit(120)
    ((bits, scores),) = tightness.Setting("some", tightness.Normal(2.0), n).draws(0, [0])
    rows = Scores(np.arange(n), np.zeros(n, np.int64), bits, scores, "substitute", bits="coins")
    judged = judge(rows, Split(fit), delta=1e-5)
    given = {"rule": "given", "threshold": judged.threshold}
    found = tightness.of_samples((bits, scores), frozenset(tightness.METHODS))
    for name, table, rule in (
        *((name, rows[fit:], given) for name in ("clopper-pearson", "exact")),
        ("simultaneous", rows, {"rule": "same-data"}),
    ):
        said = audit(table, delta=1e-5, verdict_level=0.95, verdict_method=name, **rule)
        assert said.verdict.bound.promise == "guaranteed"
        assert said.verdict.bound.value == found[name] > 0
    assert watched_lower_bound(Evidence(judged).watched, delta=1e-5, level=0.95) == found["anytime"] > 0
