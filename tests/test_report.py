"""Reports: what is in them and in which order, that names stay text, and that the commands in them do what they say."""

import functools
import inspect
import json
import re
import shlex
import tomllib
from html.parser import HTMLParser

import numpy as np
import pytest
from test_audit import Breaks, pairs_plan, plan, played
from test_cli_runs import ask, refused

import epsgauge as eg
from epsgauge.auditing.compare import compare
from epsgauge.cli import audit as audit_command
from epsgauge.cli import report as report_command
from epsgauge.cli import scores as scores_command
from epsgauge.errors import InvalidInput
from epsgauge.reporting import redo
from epsgauge.reporting.html import TITLES
from epsgauge.reporting.report import report, written
from epsgauge.reporting.toml import to_toml
from epsgauge.runner.plan import Plan
from epsgauge.runner.view import Run
from epsgauge.stats import methods

HOSTILE = "<script>alert(1)</script> | **b** [l](http://e.org) `c`\n# head"
TALLY = eg.Tally(tp=31, tn=996, fp=5, fn=968)
CLAIM = {"claimed_delta": 1e-5, "claimed_adjacency": "substitute"}


class Tags(HTMLParser):
    """Every tag with its attributes, and the text."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.text = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text.append(data)


def told(page):
    """The words of a page, in one line."""
    return " ".join(" ".join(Tags(page).text).split())


def sections(page):
    return [attrs["id"] for tag, attrs in Tags(page).tags if tag == "section"]


def scores(shift, n, seed=0):
    rng = np.random.default_rng(seed)
    return eg.Scores.from_in_out(rng.normal(shift, 1, n // 2), rng.normal(0, 1, n // 2), adjacency="substitute")


@pytest.fixture(scope="module", autouse=True)
def exact_bounds_once():
    """The same few runs are audited again and again: their exact bounds are computed once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(methods, "exact_lower_bound", functools.cache(methods.exact_lower_bound))
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    hostile = plan(name=HOSTILE, audit={"fit_models": 10})
    for name, a_plan in {
        "hostile": hostile,
        "broken": plan(Breaks(1.0)),
        "many": pairs_plan(5, n_models=40, name="many"),
        "other": plan(name="other", seed=7, audit={"fit_models": 10}),
    }.items():
        played(a_plan, folder / name)
    return folder


@pytest.fixture(scope="module")
def hostile(runs):
    found = eg.audit(Run.open(runs / "hostile"))
    return {kind: written(found, kind) for kind in ("html", "md", "json")}


def test_sections_come_in_order(runs, hostile):
    order = ["verdict", *(key for key in TITLES if key not in ("comparison", "verdicts"))]
    assert sections(written(eg.audit(Run.open(runs / "many")), "html")) == order
    order.remove("dependence")  # one pair a model has none
    assert sections(hostile["html"]) == order


def test_a_report_loads_nothing_and_runs_nothing(hostile):
    page = Tags(hostile["html"])
    names = [tag for tag, _ in page.tags]
    assert not {"script", "img", "link", "iframe", "object", "form", "base"} & set(names)
    for tag, attrs in page.tags:
        assert not [name for name in attrs if name.startswith("on") or name in ("style", "src")], (tag, attrs)
        assert attrs.get("href", "#").startswith("#")
    (policy,) = [attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv")]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    assert names.count("style") == 1
    rest = hostile["html"].replace("http://www.w3.org/2000/svg", "").replace("http://e.org", "")
    assert not re.search(r"url\((?!#)|@import|https?:", rest)


def test_the_policy_allows_this_stylesheet_alone(hostile):
    import base64
    import hashlib

    style = re.search("<style>(.*?)</style>", hostile["html"], re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"'sha256-{digest}'" in hostile["html"]


def test_names_stay_text(hostile):
    assert "<script" not in hostile["html"]
    assert HOSTILE.partition("\n")[0] in told(hostile["html"])
    before = hostile["md"].partition("```toml")[0]  # in the fence everything is text
    for live in ("<script", "\n# head", "](http"):
        assert live not in before
    assert "&lt;script&gt;alert(1)&lt;/script&gt; \\| \\*\\*b\\*\\*" in hostile["md"]
    assert json.loads(hostile["json"])["name"] == HOSTILE


def test_the_plan_in_a_report_is_the_plan(runs, hostile):
    """As TOML in the Markdown, and as tables in the JSON."""
    held = Run.open(runs / "hostile").plan
    text = re.search("`{3,}toml\n(.*?)\n`{3,}\n", hostile["md"], re.DOTALL)[1]
    assert Plan.from_tables(tomllib.loads(text)).tables() == held.tables()
    ran = json.loads(hostile["json"])["what_was_run"]["run"]
    assert Plan.from_tables(ran["plan"]).tables() == held.tables()
    assert [look["kind"] for look in ran["looks"]] == ["audit"]
    assert ran["packages"]["numpy"] == np.__version__


def test_what_was_run(runs):
    found = eg.audit(Run.open(runs / "broken"), claimed_eps=0.3, **CLAIM)
    said = told(written(found, "html"))
    assert "60 planned, 56 done, 4 failed" in said
    by_bit = found.run.status()["failed_pairs_by_bit"]
    assert f"{by_bit['0']} pairs with b = 0 and {by_bit['1']} with b = 1" in said
    assert "RuntimeError: broken" in said
    assert "eps 1.0, adjacency substitute, delta 0.0" in said
    for warning in found.warnings:
        assert warning in said
    assert found.warnings
    folder = shlex.quote(str(runs / "broken"))
    stated = "--claimed-eps 0.3 --claimed-delta 1e-05 --claimed-adjacency substitute"
    assert f"epsgauge report {folder} {stated} -o report.html" in said


def test_json_has_no_infinity(runs):
    """Pooled has no upper end."""
    found = eg.audit(Run.open(runs / "many"))
    assert np.isinf(found["pooled"].high)
    values = json.loads(written(found, "json"), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert [row["high"] for row in values["methods"] if row["method"] == "pooled"] == ["inf"]


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("violation", lambda: eg.audit(scores(2.0, 400), claimed_eps=0.3, **CLAIM)),
        ("underpowered", lambda: eg.audit(scores(1.0, 60), claimed_eps=8.0, verdict_method="clopper-pearson", **CLAIM)),
        ("no-claim", lambda: eg.audit(scores(1.0, 200))),
        ("not-refuted", lambda: eg.audit(scores(1.0, 400), claimed_eps=3.0, **CLAIM)),
    ],
)
def test_the_verdict_comes_first(kind, make):
    found = make()
    page = written(found, "html")
    first = next(attrs["class"] for _, attrs in Tags(page).tags if attrs.get("class", "").startswith("answer"))
    assert first == f"answer kind-{kind}"
    start = found.verdict.sentence[:60]
    assert start in told(page[: page.index("<svg")])
    assert start in " ".join(written(found, "md").replace("**", "").split("\n\n")[2:4])


def test_a_claim_at_another_delta_says_so():
    found = eg.audit(scores(1.0, 400), claimed_eps=3.0, claimed_delta=1e-6, claimed_adjacency="substitute")
    said = told(written(found, "html"))
    assert "at the claim's δ = 1e-06" in said
    assert "Pr[ε > claim]" not in said  # the posterior is at the audit's δ


def test_one_bit_alone_has_no_roc():
    table = eg.Scores(np.arange(20), np.zeros(20), np.ones(20, int), np.arange(20.0), "substitute")
    said = told(written(eg.audit(table, rule="given", threshold=5.0), "html"))
    assert "No picture: a ROC curve needs judged pairs with both bits" in said


def test_counts_alone():
    page = written(eg.intervals(TALLY, delta=1e-5, level=0.95), "html", claimed=4.0)
    said = told(page)
    assert sections(page) == ["verdict", "posterior", "region", "ran"]
    assert "Counts alone carry no verdict" in said
    assert "95\u00a0% credible interval" in page
    assert "Pr[ε > 4]" in said
    assert "one-sided 97.5\u00a0%" in page
    assert json.loads(written(eg.estimate(TALLY, delta=1e-5), "json"))["median"] == pytest.approx(1.798, abs=1e-3)
    for other in (eg.estimate_delta(TALLY, eps=1.0), eg.estimate_mu(TALLY)):
        assert other.family.symbol in told(written(other, "html"))
    more = eg.intervals(TALLY, delta=1e-5, methods=["bayes", "anytime"])
    assert "Anytime" in told(written(more, "html"))  # a method that was asked for is there


def test_a_comparison_overlays_its_runs(runs):
    found = compare([Run.open(runs / "hostile"), Run.open(runs / "other")])
    page = written(found, "html")
    assert sections(page) == ["verdict", "comparison", "verdicts", "ran"]
    assert "<script" not in page
    said = told(page)
    for run in found.runs:
        assert run.audit.verdict.sentence.partition(": ")[2].partition(". ")[0] in said
    assert len(json.loads(written(found, "json"))["what_was_run"]["runs"]) == 2
    assert "| other |" in written(found, "md")


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"delta": 1e-6, "verdict_method": "clopper-pearson", "verdict_level": 0.9},
        {"rule": "given", "threshold": 0.5, "attack": "loss"},
        {"rule": "same-data"},
        {"fit_models": 20, "target_fpr": 0.1, "claimed_eps": 2.0, **CLAIM},
    ],
)
def test_the_command_makes_the_same_report(runs, settings, tmp_path):
    found = eg.audit(Run.open(runs / "other"), **settings)
    _, command = redo.of_audit(found)
    words = shlex.split(command)
    assert words[:2] == ["epsgauge", "report"]
    ask(*words[1:-1], tmp_path / "again.json")
    again = json.loads((tmp_path / "again.json").read_text())
    assert again["settings"] == found.settings.model_dump(mode="json")
    assert again["verdict"]["bound"] == pytest.approx(found.verdict.bound)


def test_what_the_command_line_cannot_say_is_said_in_python(runs):
    found = eg.audit(Run.open(runs / "other"), search="bayes")
    words = shlex.split(redo.of_audit(found)[1])
    assert words[:2] == ["python", "-c"]
    assert "search='bayes'" in words[2]
    beside = compare([Run.open(runs / "hostile"), Run.open(runs / "other")], delta=1e-6)
    words = shlex.split(redo.of_comparison(beside)[0])
    assert words[:2] == ["python", "-c"]
    assert "delta=1e-06" in words[2]


def test_the_command_of_scores(tmp_path):
    table = scores(1.0, 300)
    table.write(tmp_path / "scores.csv")
    found = eg.audit(table, seed=4, fit_models=60, level=0.8)
    (command,) = redo.of_audit(found)
    words = [str(tmp_path / "scores.csv") if word == "FILE" else word for word in shlex.split(command)]
    again = json.loads(ask(*words[1:], "--json"))
    assert again["rule"]["threshold"] == pytest.approx(found.judged.threshold)
    assert again["lower_bound"] == pytest.approx(found.lower_bound)


def test_the_commands_of_counts_and_comparisons(runs, tmp_path):
    (command,) = redo.of_comparison(compare([Run.open(runs / "hostile"), Run.open(runs / "other")], rule="best"))
    words = shlex.split(command)
    assert "--rule best" in command
    ask(*words[1:-1], tmp_path / "compare.md")
    assert (tmp_path / "compare.md").read_text().startswith("# Comparison of runs: ")
    ran = json.loads(written(eg.estimate_mu(TALLY, prior=(1.0, 1.0)), "json", claimed=2.0))["what_was_run"]
    words = shlex.split(ran["commands"][0])
    ask(*words[1:-1], tmp_path / "counts.json")
    assert json.loads((tmp_path / "counts.json").read_text())["prior"] == [1.0, 1.0]


def test_report_has_the_options_of_audit():
    def options(command):
        return set(inspect.signature(command).parameters)

    gate = {"fail_above", "fail_on", "curve", "as_json"}
    assert options(report_command.report) - {"out", "format"} == options(audit_command.audit) - gate
    assert set(redo.OPTIONS) == options(audit_command.audit) - gate - {"folder", "same_data"}
    assert set(redo.OF_SCORES) <= options(scores_command.scores)


def test_formats_and_files(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = ask("report", runs / "other")
    assert said.endswith("report: report.html\n")
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    ask("report", runs / "other", "--format", "md")
    assert (tmp_path / "report.md").read_text().startswith("# Privacy audit: other\n")
    assert json.loads(ask("report", runs / "other", "--format", "json", "-o", "-"))["name"] == "other"
    assert Run.open(runs / "other").looks[-1]["kind"] == "audit"  # a report is a look
    assert report(eg.estimate(TALLY, delta=1e-5), out="x.txt", format="md").read_text().startswith("# Privacy estimate")


def test_bad_places_are_refused_before_the_look(runs, tmp_path):
    before = len(Run.open(runs / "many").looks)
    assert "must end in .html, .md, .json" in refused("report", runs / "many", "-o", tmp_path / "report.docx")
    for target in (tmp_path, tmp_path / "none" / "report.html"):
        with pytest.raises(InvalidInput, match="a report"):
            report(eg.estimate(TALLY, delta=1e-5), out=target)
    assert len(Run.open(runs / "many").looks) == before


def test_what_no_report_can_be_made_of(runs):
    with pytest.raises(InvalidInput, match=r"Audit a run or scores first"):
        written(Run.open(runs / "many"), "html")
    with pytest.raises(InvalidInput, match="of one tally"):
        written(eg.estimate(eg.Tally(tp=[1, 2], tn=1, fp=1, fn=1), delta=1e-5), "html")
    with pytest.raises(InvalidInput, match="claimed goes with counts alone"):
        written(eg.audit(scores(1.0, 60)), "md", claimed=1.0)
    with pytest.raises(InvalidInput, match="claimed must be"):
        written(eg.estimate(TALLY, delta=1e-5), "md", claimed=-1.0)
    with pytest.raises(InvalidInput, match="format must be one of"):
        written(eg.estimate(TALLY, delta=1e-5), "pdf")


def test_toml_reads_back():
    tables = {"a": 'q"\\\n\x7f€', "b": True, "c": [1, 2.5, "x"], "odd key": 1e-5, "t": {"u": {"v": 1}, "none": None}}
    want = {**tables, "t": {"u": {"v": 1}}}
    assert tomllib.loads(to_toml(tables)) == want
