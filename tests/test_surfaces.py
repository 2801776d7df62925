"""One verdict shows the same bounds, levels and conditions on every surface, rounded to the safe side."""

import html
import json
import re
from dataclasses import dataclass

import numpy as np
import pytest
from command_line import ask, told
from hypothesis import given, settings
from hypothesis import strategies as st
from served import Served, listed
from tiny_runs import CLAIM, Pairs, pairs_plan, plan, played, responses

import epsgauge as eg
from epsgauge.auditing.compare import compare
from epsgauge.auditing.gate import gate
from epsgauge.integrations.mlflow import _metrics
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.numbers import at_least, at_most, interval_text, json_ready, span
from epsgauge.probing.finding import Finding
from epsgauge.probing.result import Probe
from epsgauge.reporting.report import written


@dataclass(frozen=True)
class Leaky(Pairs):
    """Says that it is DP-SGD with much noise."""

    noise_multiplier: float = 5.0

    def privacy(self, n):
        return DPSGD(sample_rate=0.5, noise_multiplier=self.noise_multiplier, steps=10)


def leaky(path, shift, **audit):
    own = {"pairs_per_model": 1, "n_models": 120, "audit": {"attack": "difference", **audit}}
    return played(pairs_plan(**own).changed(trainer=Leaky(shift, 5.0)), path)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("surfaces")
    leaky(out / "both", 5.0)  # the curve and the point are refuted
    leaky(out / "curve", 1.0)  # only the curve is
    leaky(out / "blind", 0.0)
    response = {"use": "randomised-response", "eps": 2.0}
    played(plan(response, n_models=200, audit={"claimed_eps": 0.31, **CLAIM}), out / "violation")
    played(plan(response, n_models=200, audit={"claimed_eps": 2.7518, **CLAIM}), out / "objection")
    played(plan(response, n_models=40, audit={"claimed_mu": 1.0, "claimed_adjacency": "substitute"}), out / "mu")
    return out


NAMES = ("both", "curve", "blind", "violation", "objection", "mu")


@pytest.fixture(scope="module")
def audits(folder):
    return {name: eg.audit(eg.Run.open(folder / name)) for name in NAMES}


def plain(text):
    """The words of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).replace("\u00a0", " ").split())


def surfaces(folder, name, audit):
    """What a person or a program reads, as text with its blanks made single."""
    yield "terminal", " ".join(ask("audit", folder / name).split())
    yield from texts(audit)


def texts(audit):
    yield "print", " ".join(str(audit).split())
    yield "notebook", plain(audit._repr_html_())
    yield "HTML", plain(written(audit, "html"))
    yield "Markdown", " ".join(written(audit, "md").replace("\u00a0", " ").split())
    yield "JSON", json.dumps(json_ready(audit.to_json()), ensure_ascii=False)
    yield "card", " ".join(eg.card(audit).markdown.split())


def test_the_six_are_of_six_kinds(audits):
    assert {name: audit.verdict.kind for name, audit in audits.items()} == {
        "both": "violation",
        "curve": "violation",
        "blind": "cannot decide",
        "violation": "violation",
        "objection": "no objection",
        "mu": "no objection",
    }
    conditions = {name: audit.verdict.conditional_bound is not None for name, audit in audits.items()}
    assert [name for name, has in conditions.items() if has] == ["both", "curve", "blind", "mu"]


@pytest.mark.parametrize("name", NAMES)
def test_every_surface_shows_each_bound_with_its_level_and_condition(folder, audits, name):
    audit = audits[name]
    bounds = [at_least(bound.value) for bound in audit.verdict.bounds]
    for surface, text in surfaces(folder, name, audit):
        for bound in audit.verdict.bounds:
            assert bound.scope in text, surface
            assert bound.how in text, surface
        # a value stands nowhere without its sign and words of its own: whatever is shown as a bound is one of these
        shown = set(re.findall(r"ε ≥ ([\d.]+(?:e-\d+)?)", text))
        assert shown <= set(bounds), surface
        assert shown, surface
        curve = audit.verdict.conditional_bound
        if curve is not None and curve.value > 0 and bounds.count(at_least(curve.value)) == 1:
            for said in re.findall(rf"≥ {re.escape(at_least(curve.value))}(?![\d]) (\S+)", text):
                assert said == "if", surface
    page = dict(surfaces(folder, name, audit))["HTML"]
    tiles = re.findall(r"ε at least ([\d.∞]+) ((?:for any|if the)[^;]+);", page)
    assert tiles[: len(bounds)] == [(at_least(b.value), b.scope) for b in audit.verdict.bounds]


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_the_table_are_at_the_verdicts_level(audits, name):
    audit = audits[name]
    for row in audit.rows:
        if row.promise == "guaranteed":
            assert (row.level, row.delta, row.high) == (audit.verdict.level, audit.verdict.delta, np.inf)
    rows = {row.method: row for row in audit.rows}
    for bound in audit.verdict.bounds:
        assert (rows[bound.method].low, rows[bound.method].condition) == (bound.value, bound.condition)


@pytest.mark.parametrize("name", NAMES)
def test_a_gate_reads_the_bounds_that_are_shown(folder, audits, name):
    for bound in audits[name].verdict.bounds:
        if bound.value == 0:
            continue
        reasons = gate(audits[name], fail_above=bound.value - 1e-6).reasons
        assert any(reason.startswith(f"{bound}, above the limit") for reason in reasons)
        done = told("audit", folder / name, "--fail-above", f"{bound.value - 1e-6}")
        assert (done.returncode, str(bound) in done.stderr) == (1, True)
    highest = max(bound.value for bound in audits[name].verdict.bounds)
    assert not gate(audits[name], fail_above=highest).reasons


def test_the_viewer_shows_them(folder, audits):
    with Served(folder) as here:
        rows = {row.partition('"')[0]: row for row in listed(here.client)["parts"]["rows"].split('data-id="')[1:]}
        pages = {name: plain(here.client.get("/api/results", id=name).json["parts"]["verdict"]) for name in NAMES}
    for name, audit in audits.items():
        said = " ".join(f"{at_least(b.value)} {b.short_scope}" for b in audit.verdict.bounds)
        assert said in plain(rows[name]), name
        for sentence in audit.verdict.shown:
            assert sentence in pages[name], name


def test_a_comparison_shows_them(folder, audits):
    paths = [folder / name for name in ("both", "curve")]
    terminal = " ".join(ask("compare", *paths, "--rule", "best").split())
    page = plain(written(compare([eg.Run.open(path) for path in paths], rule="best"), "html"))
    for name in ("both", "curve"):
        for bound in audits[name].verdict.bounds:
            assert f"{bound.text} " in terminal
            assert bound.scope.removeprefix("for any training") in terminal
            assert f"{bound.text} {bound.scope}" in page
        cells = " ".join(at_least(bound.value) for bound in audits[name].verdict.bounds)
        assert cells in page


def test_metrics_are_these_values(audits):
    for audit in audits.values():
        found = _metrics(audit)
        curve = audit.verdict.conditional_bound
        assert found["lower_bound"] == audit.verdict.bound.value
        assert found.get("conditional_lower_bound") == (None if curve is None else curve.value)


def test_a_bound_whose_condition_is_refuted_is_not_shown(tmp_path):
    run = leaky(tmp_path / "run", 1.0)
    finding = Finding("Poisson batches", "refuted", "Batches are not drawn by coins.")
    probe = Probe(run.privacy, 1e-5, "substitute", 1.0, None, None, (finding,), 1, 1.0)
    whole = eg.audit(run)
    object.__setattr__(run, "probe", probe)
    found = eg.audit(run)
    assert whole.verdict.conditional_bound is not None
    assert found.verdict.conditional_bound is None
    assert found.verdict.kind == "violation"  # the game refutes the curve too
    hidden, row = whole.verdict.conditional_bound, re.compile(r'Curve:? \|? ?≥|"method": "curve", "label"')
    for name in ("print", "notebook", "HTML", "Markdown", "JSON"):
        there, gone = (dict(texts(audit))[name] for audit in (whole, found))
        assert row.search(there), name
        assert not row.search(gone), name
        assert at_least(hidden.value) not in gone, name


# Rounding


@given(st.floats(1e-12, 1e12))
def test_lower_bounds_are_rounded_down_and_upper_ones_up(value):
    assert float(at_least(value)) <= value <= float(at_most(value))
    assert float(at_most(value)) - float(at_least(value)) <= 0.0101 * value  # three digits


@given(st.floats(0.0, 50.0), st.floats(1e-6, 50.0))
def test_guaranteed_intervals_are_rounded_outward(low, width):
    high = low + width
    for text in (interval_text(low, high, outward=True).strip("[]").replace(",", " –"), span(low, high, outward=True)):
        left, right = (float(end) for end in text.split(" – "))
        assert left <= low
        assert high <= right


@settings(max_examples=15)
@given(st.integers(0, 10**6), st.floats(0.0, 4.0), st.floats(0.1, 6.0))
def test_no_text_shows_more_than_was_proven(seed, eps, claimed):
    """Whatever stands behind ≥ in the texts of an audit is at most the bound that was computed."""
    rng = np.random.default_rng(seed)
    audit = eg.audit(responses(eps, int(rng.integers(40, 200)), seed=seed), claimed_eps=claimed, **CLAIM)
    proven = [bound.value for bound in audit.verdict.bounds]
    proven += [row.low for row in audit.rows if row.promise == "guaranteed"]
    for text in (audit.verdict.sentence, str(audit), repr(audit), written(audit, "md"), plain(written(audit, "html"))):
        for shown in re.findall(r"≥ ([\d.]+(?:e-\d+)?)", text):
            assert any(0 <= value - float(shown) <= 0.01 * value + 1e-12 for value in proven), (shown, proven)
    assert f"ε = {claimed!r}".removesuffix(".0") in audit.verdict.sentence
