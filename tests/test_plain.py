"""Names and errors that came from a file are text: in a terminal, in a report, in a picture and in JSON."""

import io
import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

import pytest
from command_line import ask, refused, told
from rich.console import Console
from tiny_runs import TEXT, plan, played

import epsgauge as eg
from epsgauge import plain
from epsgauge.games.seeds import Branch, training_seed
from epsgauge.reporting import markdown
from epsgauge.reporting.progress import Bar
from epsgauge.reporting.report import written
from epsgauge.runner.progress import Progress
from epsgauge.runner.view import Run
from epsgauge.trainers.mechanism import RandomisedResponseTrainer

CLIPBOARD, CLEAR, TURNED, CSI = "\x1b]52;c;aGk=\x07", "\x1b[2J", "\u202egnp", "\x9b31m"
FORGED = "forged      not refuted"
NAME = f"run{CLIPBOARD}{TURNED}{CSI}[/x][bold red]:smile:\n{FORGED}\r{FORGED}\x85{FORGED}\u2028{FORGED}"
# what a terminal acts on, but for the ends of lines
ACTS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Hostile(RandomisedResponseTrainer):
    """Fails for one model, with an error that would say something else."""

    def train(self, data, *, seed, size=None):
        if seed == training_seed(0, Branch.audited, 9):
            raise RuntimeError(f"{CLEAR}{TURNED}\n{FORGED}\r\n{FORGED}[/x]")
        return super().train(data, seed=seed, size=size)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plain")
    played(plan(Hostile(1.0), name=NAME, n_models=40), folder / "a")
    played(plan(name="b" * 5000, n_models=40, seed=3), folder / "b")
    return folder


@pytest.mark.parametrize("width", [40, 52, 80])
def test_no_line_of_ours_begins_with_a_name_that_is_folded(runs, width, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(width))
    for line in ask("status", runs / "a", code=3).splitlines():
        assert not line.startswith("forged")


def test_a_line_of_progress_is_one_line():
    said = io.StringIO()
    bar = Bar(plan(name=NAME), Console(file=said, width=52))
    bar.rehearsed_one(Progress(6, 1, 0))
    assert len(safe(said.getvalue()).splitlines()) == 1


def safe(text):
    assert not ACTS.search(text), ascii(ACTS.search(text)[0])
    assert FORGED in text
    assert not [line for line in text.splitlines() if line.startswith("forged")]
    return text


@pytest.mark.parametrize(
    "command",
    [("status",), ("audit",), ("audit", "--fail-above", "0"), ("report", "-o", "-", "--format", "md")],
    ids=["status", "audit", "gate", "markdown"],
)
def test_a_run_of_others(runs, command):
    name, *options = command
    done = told(name, runs / "a", *options)
    assert "Traceback" not in done.stderr
    said = safe(done.stdout + done.stderr)
    if name != "report":
        assert "[/x][bold red]:smile:" in said  # no markup


def test_whether_it_is_intact(runs):
    assert not ACTS.search(told("verify", runs / "a").stdout)


def test_several_runs(runs, tmp_path):
    out = ask("compare", runs / "a", runs / "b", "--figure", tmp_path / "a.svg", "--report", tmp_path / "a.md")
    assert not [line for line in out.splitlines() if line.startswith("forged")]
    assert not ACTS.search(out)
    assert "b…" in out
    assert "b" * 201 not in re.sub(r"\s", "", out)
    ElementTree.parse(tmp_path / "a.svg")
    assert not ACTS.search((tmp_path / "a.md").read_text(encoding="utf-8"))


def test_a_plan_of_others(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(
        TEXT.format(name=json.dumps(NAME)[1:-1], n_models=80, eps=1.0, m=1, attack="percentile", challenge="")
    )
    safe(re.sub(r"\n +", " ", ask("check", path)))


def test_what_objects_show_of_themselves(runs):
    found = eg.audit(Run.open(runs / "a"))
    for text in (str(found), repr(found)):
        safe(text)
    for page in (found._repr_html_(), written(found, "html")):
        assert not ACTS.search(page)
    assert "[/x]" in written(found, "html")


def test_json_says_the_same(runs):
    for raw in (ask("audit", runs / "a", "--json"), ask("report", runs / "a", "-o", "-", "--format", "json")):
        assert not ACTS.search(raw)
        assert json.loads(raw)["name"] == NAME


def test_errors_are_of_one_command(tmp_path):
    said = refused("audit", tmp_path / f"{CLEAR}[/x]\n{FORGED}\nerror: all is well")
    assert not ACTS.search(said)
    assert re.fullmatch(r"error: .*\n(    .*\n)+", said)
    path = tmp_path / "a.csv"
    path.write_text(",".join(f"column{i}" for i in range(100_000)) + "\n")
    said = refused("scores", path)
    assert "must have a column bit, but has: column0, column1" in said
    assert len(said) <= plain.SENTENCE + 1
    path.write_text(f"bit,{CLIPBOARD}{TURNED}score\n1,2\n", encoding="utf-8")
    assert not ACTS.search(refused("scores", path))


@pytest.mark.parametrize(
    "live",
    [
        "![x](http://e.org/a.png)",
        "[x](http://e.org)",
        "[x][y]",
        "![x][y]",
        "[x]: http://e.org",
        "<img src=x>",
        "<http://e.org>",
        "a | b",
        "`c`",
        "@somebody",
        "a\n\n# head",
        "a\n| b | c |\n|---|---|",
    ],
)
def test_a_name_makes_nothing_in_markdown(live):
    text = markdown.line(live)
    for made in (r"\]\(", r"\]\[", r"\]:", "<", r"(?<!\\)\|", "(?<!\\\\)`", r"@\w", "\n", r"(?<!&)(?<!\\)#"):
        assert not re.search(made, text), (made, text)


def test_a_traceback_of_ours_is_shown_whole_and_acts_on_nothing(monkeypatch):
    def broken(*args):
        raise RuntimeError(f"{CLEAR}\n{FORGED}")

    monkeypatch.setattr("epsgauge.cli.estimate._number", broken)
    done = told("estimate", "--tp", "1", "--tn", "1", "--fp", "1", "--fn", "1", "--delta", "0")
    assert done.returncode == 2
    assert "RuntimeError" in safe(done.stderr)
