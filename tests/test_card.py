"""The privacy card: what was measured or declared, and nothing else."""

import hashlib
import json
import re
from pathlib import Path

import numpy as np
import pytest
from command_line import ask, refused
from tiny_runs import plan, played

import epsgauge as eg
from epsgauge.reporting.card import DECLARABLE, read_report
from epsgauge.reporting.report import written

SAID = {"curator": "Example Ltd", "unit": "a person, with one record each"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return played(plan(n_models=60), tmp_path_factory.mktemp("card") / "run")


def test_each_fact_has_a_source(run):
    audit = eg.audit(run)
    card = eg.card(audit, declared=SAID)
    assert {fact.source for fact in card.facts} <= {"measured", "declared", "computed", "not stated"}
    assert all(bool(fact.value) == (fact.source != "not stated") for fact in card.facts)
    facts = {fact.name: fact for fact in card.facts}
    assert facts["Curator"].value == "Example Ltd"
    assert facts["Verdict"].value == audit.verdict.kind
    assert facts["Unit of privacy"].source == "declared"
    assert facts["Side channels and floating point"].source == "not stated"
    assert card.decision == audit.decision.meaning
    assert audit.verdict.sentence.startswith(card.sentence)


def test_it_says_what_registry_and_guidelines_ask_for(run):
    asked = {by for fact in eg.card(eg.audit(run)).facts for by in fact.asked_by}
    assert asked == {"NIST SP 800-226", "deployment registry"}


def test_the_card_of_a_report_is_that_of_its_audit(run, tmp_path):
    audit = eg.audit(run)
    eg.report(audit, out=tmp_path / "audit.json")
    of_file = [fact for fact in eg.card(read_report(tmp_path / "audit.json")).facts if fact.name != "Report"]
    read = next(fact for fact in of_file if fact.name == "Read from")
    assert read.source == "declared"  # anybody may have edited it
    assert hashlib.sha256((tmp_path / "audit.json").read_bytes()).hexdigest() in read.value
    of_file.remove(read)
    assert of_file == [fact for fact in eg.card(audit).facts if fact.name != "Report"]


def test_infinite_numbers_are_written(run):
    found = json.loads(written(eg.audit(run), "json"))
    found["accountant"]["eps"]["substitute"] = "inf"
    facts = {fact.name: fact for fact in eg.card(found).facts}
    assert facts["ε by the accountant (substitute)"].value == "∞ at δ = 1e-05"


def test_scores_have_a_card_too(tmp_path):
    rng = np.random.default_rng(0)
    scores = eg.Scores.from_in_out(
        rng.normal(1, 1, 200), rng.normal(0, 1, 200), adjacency="add-remove", models="independent"
    )
    card = eg.card(eg.audit(scores, delta=1e-5))
    facts = {fact.name: fact for fact in card.facts}
    assert facts["Claim"].source == "not stated"
    assert facts["Declared beforehand"].value == "no"


def test_the_command_writes_markdown_json_and_a_section(run, tmp_path):
    (tmp_path / "said.toml").write_text('curator = "Example | Ltd"\n', encoding="utf-8")
    ask("card", run.path, "--declare", tmp_path / "said.toml", "-o", tmp_path / "card.md")
    text = (tmp_path / "card.md").read_text(encoding="utf-8")
    assert "| Curator | Example \\| Ltd | declared | deployment registry |" in text
    ask("card", run.path, "-o", tmp_path / "card.json")
    kept = json.loads((tmp_path / "card.json").read_text(encoding="utf-8"))
    assert kept["card_version"] == 1
    assert {fact["name"] for fact in kept["facts"]} >= {name for name, _ in DECLARABLE.values()}
    section = ask("card", run.path, "--section")
    assert section.startswith("## Privacy\n")
    assert "Not stated: Curator" in section


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('curater = "x"', 'curater is not a key of a card, which has: curator, .* Did you mean "curator"?'),
        ("unit = 3", "unit must be a text, but got 3"),
        ("unit = ", "are not TOML"),
    ],
)
def test_bad_declarations_are_one_sentence(text, said, run, tmp_path):
    (tmp_path / "said.toml").write_text(text, encoding="utf-8")
    assert re.search(said.replace("?", r"\?"), refused("card", run.path, "--declare", tmp_path / "said.toml"))


def test_what_is_no_report_is_one_sentence(run, tmp_path):
    (tmp_path / "a.json").write_text("{}", encoding="utf-8")
    assert "a card needs the JSON of a report" in refused("card", tmp_path / "a.json")
    (tmp_path / "b.json").write_text("[", encoding="utf-8")
    assert "is not JSON" in refused("card", tmp_path / "b.json")
    assert "cannot be read: No such file or directory. Give a run directory" in refused("card", tmp_path / "c.json")
    assert "must end in .md or .json" in refused("card", run.path, "-o", tmp_path / "card.pdf")


def test_the_page_lists_every_key():
    page = (Path(__file__).parent.parent / "docs" / "card.md").read_text(encoding="utf-8")
    for key, (name, by) in DECLARABLE.items():
        assert f"| `{key}` | {name} | {', '.join(by)} |" in page
