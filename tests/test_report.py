"""Reports: what is in them and in which order, that names stay text, and that the commands in them do what they say."""

import functools
import inspect
import json
import re
import shlex
import tomllib
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from command_line import ask
from markdown_it import MarkdownIt
from tiny_runs import CLAIM, Breaks, pairs_plan, plan, plan_text, played

import epsgauge as eg
from epsgauge.auditing.compare import compare
from epsgauge.cli import audit as audit_command
from epsgauge.cli import report as report_command
from epsgauge.cli import scores as scores_command
from epsgauge.errors import InvalidInput
from epsgauge.figures import narrowing, percentiles
from epsgauge.figures.charts import CHARTS, chart
from epsgauge.figures.subject import Subject
from epsgauge.methods import exact
from epsgauge.methods.evidence import Evidence
from epsgauge.numbers import likely
from epsgauge.reporting import redo
from epsgauge.reporting.html import TITLES
from epsgauge.reporting.report import report, written
from epsgauge.reporting.toml import to_toml
from epsgauge.runner.executors import InProcess
from epsgauge.runner.plan import Plan
from epsgauge.runner.view import Run

HOSTILE = "<script>alert(1)</script> | **b** [l](http://e.org) `c`\n# head"
TALLY = eg.Tally(tp=31, tn=996, fp=5, fn=968)
FEW = eg.Tally(tp=9, tn=27, fp=3, fn=21)
TABLE = ("table", "thead", "tbody", "tr", "th", "td")


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
    return eg.Scores.from_in_out(
        rng.normal(shift, 1, n // 2), rng.normal(0, 1, n // 2), adjacency="substitute", models="independent"
    )


@pytest.fixture(scope="module", autouse=True)
def exact_bounds_once():
    """The same few runs are audited again and again: their exact bounds are computed once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "exact_lower_bound", functools.cache(exact.exact_lower_bound))
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    small = {"n_models": 40, "audit": {"fit_models": 10, "verdict_method": "clopper-pearson"}}
    for name, a_plan in {
        "hostile": plan(name=HOSTILE, **small),
        "broken": plan(Breaks(1.0), **small),
        "many": pairs_plan(5, n_models=30, name="many"),
        "other": plan(name="other", seed=7, **small),
    }.items():
        played(a_plan, folder / name)
    return folder


@pytest.fixture(scope="module")
def hostile(runs):
    found = eg.audit(Run.open(runs / "hostile"))
    return {kind: written(found, kind) for kind in ("html", "md", "json")}


@pytest.fixture(scope="module")
def many(runs):
    """Several pairs per model."""
    return eg.audit(Run.open(runs / "many"))


@pytest.fixture(scope="module")
def many_page(many):
    return written(many, "html")


@pytest.fixture(scope="module")
def broken(runs):
    """Some of its models failed."""
    return eg.audit(Run.open(runs / "broken"), claimed_eps=0.3, **CLAIM)


@pytest.fixture(scope="module")
def beside(runs):
    return compare([Run.open(runs / "hostile"), Run.open(runs / "other")])


@pytest.fixture(scope="module")
def judged():
    """Audits of one table of scores, by what is said of the claim."""
    table, quick = scores(1.0, 60), {"verdict_method": "clopper-pearson"}
    return {
        "violation": eg.audit(scores(3.0, 60), claimed_eps=0.3, **quick, **CLAIM),
        "too few": eg.audit(table, claimed_eps=8.0, **quick, **CLAIM),
        "no claim": eg.audit(table, **quick),
        "no objection": eg.audit(scores(3.0, 60), claimed_eps=1.2, **quick, **CLAIM),
        "too weak": eg.audit(table, claimed_eps=1.0, **quick, **CLAIM),
        "other delta": eg.audit(table, claimed_eps=1.0, **quick, **{**CLAIM, "claimed_delta": 1e-6}),
        "same data": eg.audit(table, rule="same-data", **quick),
        "mu": eg.audit(table, claimed_mu=0.2, claimed_adjacency="substitute"),
    }


def test_sections_come_in_order(hostile, many_page):
    order = ["verdict", *(key for key in TITLES if key not in ("comparison", "verdicts", "probe", "cohorts"))]
    assert sections(many_page) == order
    order.remove("dependence")  # one pair per model has none
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


def test_what_was_run(runs, broken):
    found = broken
    said = told(written(found, "html"))
    assert "40 planned, 36 done, 4 failed" in said
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


def test_json_has_no_infinity(many):
    """Pooled has no upper end."""
    assert np.isinf(many["pooled"].high)
    values = json.loads(written(many, "json"), parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert [row["high"] for row in values["methods"] if row["method"] == "pooled"] == ["inf"]


@pytest.mark.parametrize("name", ["violation", "too few", "no claim", "no objection", "too weak"])
def test_the_verdict_comes_first(name, judged):
    found = judged[name]
    kind = "cannot decide" if name.startswith("too") else name
    page = written(found, "html")
    first = next(attrs["class"] for _, attrs in Tags(page).tags if attrs.get("class", "").startswith("answer"))
    assert first == f"answer kind-{kind.replace(' ', '-')}"
    start = f"{found.verdict.head}: {found.verdict.finding}"[:60]
    assert start in told(page[: page.index("<svg")])
    assert start in " ".join(written(found, "md").replace("**", "").split("\n\n")[2:4])


def test_a_claim_at_another_delta_says_so(judged):
    said = told(written(judged["other delta"], "html"))
    assert "at the claim's δ = 1e-06" in said
    assert "Pr[ε > claim]" not in said  # the posterior is at the audit's δ
    assert "All of it is at the claim’s δ = 1e-06, not at the audit’s δ = 1e-05" in said


def words(name, source):
    return CHARTS[name].words(Subject.of(source), CHARTS[name].data(Subject.of(source)))


def both(said):
    return f"{said.shows} {said.hides}"


def test_the_words_know_what_a_claim_is(judged):
    place = {
        "violation": "The bound is above the claim, and that is as certain as the bound itself",
        "too few": "That no bound is above the claim means nothing here: a game of this size",
        "too weak": "That no bound is above the claim means nothing here: the attack is too weak",
        "no objection": "this attack does not refute it. That does not verify it either.",
    }
    for kind, text in place.items():
        assert [other for other in place.values() if other in words("ruler", judged[kind]).hides] == [text]
        assert "above the line" in words("roc", judged[kind]).hides
    nothing = judged["no claim"]
    assert "claim" not in both(words("ruler", nothing))
    assert "There is no claim, so no line" in words("roc", nothing).shows
    assert "the line" not in words("roc", nothing).hides


def test_the_words_of_a_bound_of_mu(judged):
    found = judged["mu"]
    assert found.verdict.conditional_bound.mu is not None
    assert "The conditional bound is the ε that μ of at least" in words("ruler", found).shows
    assert "Gaussian DP" not in words("ruler", judged["violation"]).shows
    page = written(found, "json")
    assert "Gaussian" in page
    assert "if the mechanism's trade-off curve is that of Gaussian DP; Gaussian DP, guaranteed" in written(found, "md")


def test_the_words_of_one_pair_a_model(judged, broken):
    plain = judged["violation"]
    assert "All rest on the same guesses." in words("bars", plain).shows
    assert "credible interval" in words("percentiles", plain).shows
    assert "Only the marked rule counts." in words("percentiles", plain).hides
    assert "the last bar on" not in words("ruler", plain).shows
    said = words("bars", broken).shows
    assert "Bayesian, Jeffreys on all judged pairs; Clopper-Pearson, Exact on all judged pairs, with 3 failed" in said
    assert "Weighted on all pairs, including those used to pick the threshold, except those of 4 failed models" in said
    rests = "The bound for any training rests on all judged pairs, with 3 failed models as wrong guesses"
    assert rests in words("ruler", broken).shows
    nothing = replace(plain, rows=tuple(replace(row, promise="estimate") for row in plain.rows))
    assert "None of them is guaranteed here" in words("bars", nothing).shows


def test_the_words_of_several_pairs_a_model(many, many_page):
    said = told(many_page)
    assert "Clopper-Pearson, Exact on one pair per model, fixed beforehand" in said
    assert "Bayesian by model, Pooled on all judged pairs" in said
    assert "Weighted on all pairs, including those used to pick the threshold" in said
    assert "the same guesses" not in said
    assert said.count("The posterior is an estimate here: the 5 pairs of a model") == 5  # of six pictures of it
    assert "credible interval" not in both(words("percentiles", many)) + both(words("narrowing", many))
    assert "among guesses about one model." in words("dependence", many).hides
    unsure = replace(many, rows=tuple(replace(row, promise="estimate") for row in many.rows if row.method == "pooled"))
    assert "estimate here for another reason" in words("dependence", unsure).hides
    judged = many.judged.judged
    few = Evidence.of_scores(judged[np.isin(judged.model, judged.models[:5])], many.judged.threshold)
    assert "too few models" in words("dependence", replace(many, evidence=few)).shows


def test_the_words_of_a_rule_that_was_not_chosen_elsewhere(judged, runs):
    same = judged["same data"]
    assert "on the very guesses that are judged" in words("percentiles", same).shows
    assert "only the simultaneous bound allows for that" in words("percentiles", same).hides
    assert "Only the marked rule" not in words("percentiles", same).hides
    assert "chosen on these guesses, as any other" in words("roc", same).hides
    assert "Simultaneous looks at every threshold" in words("bars", same).shows
    pairs = eg.audit(Run.open(runs / "many"), rule="split-pairs", verdict_method="clopper-pearson")
    assert "chosen on 30 other pairs of the judged models" in words("percentiles", pairs).shows
    assert "These guesses may have influenced" in words("roc", pairs).hides  # the plan declared another rule
    assert "other pairs of the same models" in words("roc", replace(pairs, facts=replace(pairs.facts, lost=None))).hides


def test_the_words_of_numbers(judged):
    found = judged["violation"]
    assert "at least 90 % of it lies between" in words("contours", found).shows
    shown, subject = narrowing.narrowing(found), Subject.of(found)
    assert "Not even 100 times as many" in narrowing.words(subject, replace(shown, half=None)).shows
    assert (
        f"about 40 judged models in all; there are {shown.n[-1]} now"
        in narrowing.words(subject, replace(shown, half=40)).shows
    )
    assert "more than the claim is > 0.999," in chart("density", found.posterior, claimed=0.001).words.shows
    assert [likely(p) for p in (0.0, 0.25, 0.9994, 0.9996, 1.0)] == ["0", "0.25", "0.999", "> 0.999", "> 0.999"]
    one = eg.estimate(eg.Tally(tp=9, tn=0, fp=0, fn=1), delta=1e-5)
    assert "one class has none" in CHARTS["contours"].drawn(Subject.of(one)).absent


def test_a_rule_that_was_moved_by_hand_was_chosen_by_nobody(judged):
    shown = percentiles.percentiles(judged["violation"])
    assert "chosen on" in percentiles.draw(shown)
    drawn = percentiles.draw(replace(shown, who="moved by hand"))
    assert "moved by hand" in drawn
    assert "chosen" not in drawn.lower()


def rendered(text):
    return MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(text)


def test_names_stay_text_in_markdown(beside):
    label = "# head __b__ ~~s~~ @name #12 a_b_c http://e.org www.e.org $x$ | `c` me@e.org \\*"
    for begin in ("", "- ", "+ ", "1. ", "[x] ", "> ", "=== "):
        runs = (beside.runs[0], replace(beside.runs[1], label=begin + label))
        text = written(replace(beside, runs=runs), "md").partition("## Warnings")[0]
        assert not re.search(r"@name|[^\\]#12|://e|www\.|@e\.org", text)
        page = Tags(rendered(text))
        assert {tag for tag, _ in page.tags} == {"h1", "p", "strong", "ul", "li", *TABLE}
        assert [tag for tag, _ in page.tags].count("h1") == 1
        said = " ".join("".join(page.text).split()).replace("\u200b", "")
        assert said.count(begin + label) == 4  # the title, the answer, the table, the list


def test_one_bit_alone_has_no_roc():
    table = eg.Scores(np.arange(20), np.zeros(20), np.ones(20, int), np.arange(20.0), "substitute")
    said = told(written(eg.audit(table, rule="given", threshold=5.0), "html"))
    assert "No picture: a ROC curve needs judged pairs with both bits" in said
    assert "One bit has no pairs, so there is nothing to compare." in said
    assert "On logarithmic axes" not in said  # no words about what is not there


def test_counts_alone():
    page = written(eg.intervals(TALLY, delta=1e-5, level=0.95), "html", claimed=4.0)
    said = told(page)
    assert sections(page) == ["verdict", "posterior", "region", "ran"]
    assert "Counts alone carry no verdict" in said
    assert "95\u00a0% credible interval" in page
    assert "Pr[ε > 4]" in said
    assert "one-sided 97.5\u00a0%" in page
    post = eg.estimate(FEW, delta=1e-5)
    assert json.loads(written(post, "json"))["median"] == pytest.approx(float(post.median()))
    for other in (eg.estimate_delta(FEW, eps=1.0), eg.estimate_mu(FEW)):
        assert other.family.symbol in told(written(other, "html"))
    more = eg.intervals(FEW, delta=1e-5, methods=["bayes", "anytime"])
    assert "Anytime" in told(written(more, "html"))  # a method that was asked for is there


def test_a_comparison_overlays_its_runs(beside, many):
    page = written(beside, "html")
    assert sections(page) == ["verdict", "comparison", "verdicts", "ran"]
    assert "<script" not in page
    said = told(page)
    for run in beside.runs:
        assert run.audit.verdict.sentence.partition(": ")[2].partition(". ")[0] in said
    assert len(json.loads(written(beside, "json"))["what_was_run"]["runs"]) == 2
    assert "| other |" in written(beside, "md")
    unlike = replace(beside, runs=(beside.runs[0], replace(beside.runs[1], audit=many)))
    said = told(written(unlike, "html"))
    assert words("ruler", many).shows in said  # words of another run would not be true beside this ruler


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"delta": 1e-6, "verdict_method": "exact", "verdict_level": 0.9},
        {"rule": "given", "threshold": 0.5, "attack": "loss"},
        {"rule": "same-data"},
        {"fit_models": 20, "target_fpr": 0.1, "claimed_eps": 2.0, **CLAIM},
    ],
)
def test_the_command_makes_the_same_report(runs, settings, tmp_path):
    found = eg.audit(Run.open(runs / "other"), **settings)
    _, command = redo.of_audit(found)
    line = shlex.split(command)
    assert line[:2] == ["epsgauge", "report"]
    ask(*line[1:-1], tmp_path / "again.json")
    again = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))
    assert again["settings"] == found.settings.model_dump(mode="json")
    assert again["verdict"]["bound"]["value"] == pytest.approx(found.verdict.bound.value)


def test_what_the_command_line_cannot_say_is_said_in_python(runs, beside):
    found = eg.audit(Run.open(runs / "other"), search="bayes")
    line = shlex.split(redo.of_audit(found)[1])
    assert line[:2] == ["python", "-c"]
    assert "search='bayes'" in line[2]
    first = beside.runs[0]
    first = replace(first, audit=replace(first.audit, settings=first.audit.settings.model_copy(update={"delta": 1e-6})))
    line = shlex.split(redo.of_comparison(replace(beside, runs=(first, beside.runs[1])))[0])
    assert line[:2] == ["python", "-c"]
    assert "delta=1e-06" in line[2]


def test_the_command_of_scores(tmp_path):
    table = scores(1.0, 60)
    table.write(tmp_path / "scores.csv")
    found = eg.audit(table, seed=4, fit_models=20, level=0.8, verdict_method="clopper-pearson")
    (command,) = redo.of_audit(found, str(tmp_path / "again.json"))
    line = [str(tmp_path / "scores.csv") if word == "FILE" else word for word in shlex.split(command)]
    again = json.loads(ask(*line[1:], "--json"))
    told_before = json.loads((tmp_path / "again.json").read_text(encoding="utf-8"))["verdict"]["bound"]
    assert told_before == again["verdict"]["bound"]
    assert again["rule"]["threshold"] == pytest.approx(found.judged.threshold)
    assert again["verdict"]["bound"]["value"] == pytest.approx(found.verdict.bound.value)


@pytest.mark.parametrize("way", [("--lower-is-in",), ("--either-way",), ("--keep-direction",)])
def test_the_command_of_scores_as_another_tool_wrote_them(tmp_path, way):
    table, out = scores(1.0, 60), tmp_path / "my report.json"
    rows = [f"{'in' if bit else 'out'},{-score}" for bit, score in zip(table.bit, table.score, strict=True)]
    (tmp_path / "their file.csv").write_text("\n".join(["label,loss", *rows, ""]))
    words = ("--adjacency", "substitute", "--independent", "--bit-column", "label", "--score-column", "loss", *way)
    ask("scores", tmp_path / "their file.csv", *words, "--report", out)
    first = json.loads(out.read_text(encoding="utf-8"))
    (command,) = first["what_was_run"]["commands"]
    assert shlex.split(command)[-1] == str(out)
    out.unlink()
    ask(*shlex.split(command)[1:])
    assert json.loads(out.read_text(encoding="utf-8"))["verdict"]["bound"] == first["verdict"]["bound"]
    assert json.loads(out.read_text(encoding="utf-8"))["scores"] == first["scores"]


def test_the_commands_of_a_run_name_its_plan_and_the_report(tmp_path):
    file = tmp_path / "my plan.toml"
    file.write_text(plan_text(n_models=70))
    eg.run(eg.Plan.read(file), out=tmp_path / "run", executor=InProcess())
    found = eg.audit(Run.open(tmp_path / "run"))
    eg.report(found, out=tmp_path / "r.json")
    begin, end = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["what_was_run"]["commands"]
    assert shlex.split(begin) == ["epsgauge", "run", str(file), "--out", str(tmp_path / "run")]
    assert shlex.split(end) == ["epsgauge", "report", str(tmp_path / "run"), "-o", str(tmp_path / "r.json")]
    assert f"epsgauge check '{file}' --run {tmp_path / 'run'}" in [step.command for step in found.decision.steps]


def test_the_commands_of_counts_and_comparisons(runs, tmp_path):
    (command,) = redo.of_comparison(compare([Run.open(runs / "hostile"), Run.open(runs / "other")], rule="best"))
    line = shlex.split(command)
    assert "--rule best" in command
    ask(*line[1:-1], tmp_path / "compare.md")
    assert (tmp_path / "compare.md").read_text(encoding="utf-8").startswith("# Comparison of runs: ")
    ran = json.loads(written(eg.estimate_mu(TALLY, prior=(1.0, 1.0)), "json", claimed=2.0))["what_was_run"]
    line = shlex.split(ran["commands"][0])
    ask(*line[1:-1], tmp_path / "counts.json")
    assert json.loads((tmp_path / "counts.json").read_text(encoding="utf-8"))["prior"] == [1.0, 1.0]


def test_report_has_the_options_of_audit():
    def options(command):
        return set(inspect.signature(command).parameters)

    gate = {"fail_above", "fail_on", "count_estimates", "allow_undecided", "curve", "explain", "as_json", "unsealed"}
    assert (
        options(report_command.report) - {"out", "format", "probe", "groups", "coins"}
        == options(audit_command.audit) - gate
    )
    assert set(redo.OPTIONS) == options(audit_command.audit) - gate - {"folder", "same_data"}
    assert set(redo.OF_SCORES) <= options(scores_command.scores)


def test_formats_and_files(runs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = ask("report", runs / "other")
    assert said.endswith("report: report.html\n")
    assert (tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    ask("report", runs / "other", "--format", "md")
    assert (tmp_path / "report.md").read_text(encoding="utf-8").startswith("# Privacy audit: other\n")
    assert json.loads(ask("report", runs / "other", "--format", "json", "-o", "-"))["name"] == "other"
    assert Run.open(runs / "other").looks[-1]["kind"] == "audit"  # a report is a look
    assert (
        report(eg.estimate(FEW, delta=1e-5), out="x.txt", format="md")
        .read_text(encoding="utf-8")
        .startswith("# Privacy estimate")
    )


def test_bad_places_are_refused_before_the_look(runs, tmp_path):
    before = len(Run.open(runs / "many").looks)
    with pytest.raises(InvalidInput, match=r"must end in \.html, \.md, \.json"):
        ask("report", runs / "many", "-o", tmp_path / "report.docx")
    for target in (tmp_path, tmp_path / "none" / "report.html"):
        with pytest.raises(InvalidInput, match="a report"):
            report(eg.estimate(TALLY, delta=1e-5), out=target)
    assert len(Run.open(runs / "many").looks) == before


def test_what_no_report_can_be_made_of(runs, judged):
    with pytest.raises(InvalidInput, match=r"Audit a run or scores first"):
        written(Run.open(runs / "many"), "html")
    with pytest.raises(InvalidInput, match="of one tally"):
        written(eg.estimate(eg.Tally(tp=[1, 2], tn=1, fp=1, fn=1), delta=1e-5), "html")
    with pytest.raises(InvalidInput, match="claimed goes with counts alone"):
        written(judged["no claim"], "md", claimed=1.0)
    with pytest.raises(InvalidInput, match="claimed must be"):
        written(eg.estimate(TALLY, delta=1e-5), "md", claimed=-1.0)
    with pytest.raises(InvalidInput, match="format must be one of"):
        written(eg.estimate(TALLY, delta=1e-5), "pdf")


def test_toml_reads_back():
    tables = {"a": 'q"\\\n\x7f€', "b": True, "c": [1, 2.5, "x"], "odd key": 1e-5, "t": {"u": {"v": 1}, "none": None}}
    want = {**tables, "t": {"u": {"v": 1}}}
    assert tomllib.loads(to_toml(tables)) == want


def test_the_terminal_says_each_promise_once_and_whose_it_is(tmp_path):
    lines = ask("audit", played(plan(), tmp_path / "run").path, "--explain").splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith("guaranteed ")]
    assert len(heads) == 1
    text = " ".join(" ".join(lines[heads[0] :]).split())
    assert "proven under its assumptions (Clopper-Pearson, Exact)" in text
    assert "surer guesses weigh more (Weighted)" in text


def test_both_numbers_of_guesses_are_named(tmp_path):
    """The threshold judges other models than choose it; the weighted bound counts all of them."""
    audit = eg.audit(played(plan(n_models=120, audit={"fit_models": 20}), tmp_path / "run"))
    assert (audit.judged.tally.n_samples, audit.verdict.tally.n_samples) == (100, 120)
    named = "the verdict's bound counts N = 120, all pairs, including those used to pick the threshold"
    assert named in " ".join(str(audit).split())
    page = eg.report(audit, out=tmp_path / "r.md").read_text(encoding="utf-8")
    assert f"100 judged models of 120; {named}" in page


def test_one_model_is_no_plural(tmp_path):
    bits = np.arange(40) % 2
    one = eg.Scores(np.zeros(40, int), np.arange(40), bits, bits * 1.0, "add-remove", bits="coins")
    for kind in ("html", "md"):
        page = eg.report(eg.audit(one, delta=1e-5), out=tmp_path / f"r.{kind}").read_text(encoding="utf-8")
        assert "1 judged model" in page
        assert "1 judged models" not in page
