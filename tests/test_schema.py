"""The JSON of an audit follows the schema that ships with the package, and a page explains all of it."""

import json
from importlib.resources import files
from pathlib import Path

import pytest
from command_line import ask, told
from jsonschema import Draft202012Validator
from tiny_runs import plan, played, responses

from epsgauge.auditing.record import SCHEMA_VERSION

ROOT = Path(__file__).parent.parent
SCHEMA = json.loads(files("epsgauge").joinpath("auditing/audit.schema.json").read_text(encoding="utf-8"))


def closed(part):
    """The schema without room for keys that it does not explain."""
    if isinstance(part, list):
        return [closed(each) for each in part]
    if not isinstance(part, dict):
        return part
    found = {key: closed(value) for key, value in part.items()}
    return {**found, "additionalProperties": False} if isinstance(part.get("properties"), dict) else found


STRICT = Draft202012Validator(closed(SCHEMA))


def errors(value):
    return [f"{error.json_path}: {error.message}" for error in STRICT.iter_errors(value)]


def audits(value):
    """All audits in what was recorded."""
    if isinstance(value, dict):
        if "posterior" in value and "verdict" in value:
            yield value
        for each in value.values():
            yield from audits(each)
    elif isinstance(value, list):
        for each in value:
            yield from audits(each)


def test_the_schema_is_one_and_has_the_version():
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema_version"]["const"] == SCHEMA_VERSION


def test_recorded_audits_follow_the_schema():
    recorded = list(audits(json.loads((ROOT / "tests/recorded/expected.json").read_text(encoding="utf-8"))))
    assert len(recorded) > 100
    assert [errors(each) for each in recorded if errors(each)] == []
    assert {each["verdict"]["kind"] for each in recorded} >= {"violation", "not refuted", "underpowered", "no claim"}


@pytest.mark.parametrize("break_it", ["missing", "unknown", "type", "word"])
def test_what_does_not_follow_the_schema_is_seen(break_it):
    recorded = next(audits(json.loads((ROOT / "tests/recorded/expected.json").read_text(encoding="utf-8"))))
    if break_it == "missing":
        del recorded["verdict"]["bound"]
    elif break_it == "unknown":
        recorded["rule"]["fit_models"] = [0, 1]
    elif break_it == "type":
        recorded["looks"] = "none"
    else:
        recorded["verdict"]["kind"] = "fine"
    assert errors(recorded)


def test_what_commands_print_follows_the_schema(tmp_path):
    played(plan(audit={"fit_models": 10}), tmp_path / "run")
    found = json.loads(ask("audit", tmp_path / "run", "--json"))
    assert errors(found) == []
    assert found["gate"] is None
    responses(2.0, 400).write(tmp_path / "scores.csv")
    claim = ("--claimed-eps", 0.5, "--claimed-delta", 1e-5, "--claimed-adjacency", "substitute")
    gated = told("scores", tmp_path / "scores.csv", *claim, "--fail-on", "violation,weak", "--json")
    assert gated.returncode == 1
    assert errors(json.loads(gated.stdout)) == []
    assert json.loads(gated.stdout)["gate"]["outcome"] == "fails"
    assert len(gated.stdout) < 10_000  # also with many models: none is listed


def test_the_page_is_made_from_the_schema(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    from json_page import PAGE, page

    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tools/json_page.py"
