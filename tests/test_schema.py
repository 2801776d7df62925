"""The JSON of an audit follows the schema that ships with the package, and a page explains all of it."""

import json
from dataclasses import asdict, replace
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from command_line import ask, told
from jsonschema import Draft202012Validator
from tiny_runs import pairs_plan, plan, played, responses

import epsgauge as eg
from epsgauge.auditing.record import SCHEMA_VERSION
from epsgauge.numbers import json_ready

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
    assert {each["verdict"]["kind"] for each in recorded} >= {"violation", "no objection", "cannot decide", "no claim"}


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
    gated = told("scores", tmp_path / "scores.csv", *claim, "--fail-on", "violation", "--json")
    assert gated.returncode == 1
    assert errors(json.loads(gated.stdout)) == []
    assert json.loads(gated.stdout)["gate"]["outcome"] == "fails"
    assert len(gated.stdout) < 10_000  # also with many models: none is listed


def test_the_page_is_made_from_the_schema(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    from json_page import PAGE, page

    assert PAGE.read_text(encoding="utf-8") == page(), "run: python tools/json_page.py"


def kinds_of_audit(folder):
    """One audit of every kind, by name."""
    rng = np.random.default_rng(0)
    claim = {"claimed_eps": 0.5, "claimed_delta": 1e-5}
    run = played(plan(audit={"fit_models": 10}), folder / "run")
    control = played(plan(audit={"fit_models": 10}, control=True), folder / "control")
    near = {"estimator": "sklearn.neighbors:KNeighborsClassifier", "settings": {"n_neighbors": 1}}
    labels = {"use": "label-response", "eps": 1.0, "n_classes": 10, **near}
    of_labels = {"adjacency": "label-only", "challenge": None, "canaries": None, "train_size": 40}
    label_only = played(
        plan(labels, data="digits", n_models=30, audit={"attack": None}, **of_labels), folder / "label-only"
    )
    bits = rng.integers(0, 2, 300)
    made = eg.coins(folder / "coins.csv", canaries=60, claimed_eps=1.0, seed=1)

    def laplace(data, rng, size):
        return sum(data) + rng.laplace(0, 1, size)

    game = eg.MechanismGame(laplace, [0, 0], [0, 1], n_samples=2000)
    gradients = eg.Scores(np.zeros(300, int), np.arange(300), bits, rng.normal(bits, 1), "add-remove", bits="coins")
    yield "run", eg.audit(run)
    yield "control", eg.audit(control)
    yield "unsealed", eg.audit(eg.Run.open(folder / "run", unsealed=True))
    yield "pairs", eg.audit(played(pairs_plan(4), folder / "pairs"))
    yield "label-only", eg.audit(label_only, claimed_adjacency="label-only", **claim)
    yield "scores", eg.audit(responses(2.0, 400), claimed_adjacency="substitute", **claim)
    yield "by μ", eg.audit(responses(2.0, 400), claimed_mu=0.5, claimed_adjacency="substitute", delta=1e-5)
    yield "one model", eg.audit(gradients, rule="split-pairs", delta=1e-5)
    yield "coins", eg.audit(made.scores({each: float(rng.normal()) for each in made.ids}))
    yield "mechanism", eg.audit(game, claimed_eps=0.5)
    yield "until a violation", eg.audit(replace(game, until="violation"), claimed_eps=0.5)
    yield "a claimed curve", eg.audit(game, claimed_curve="laplace:1")
    trainer = {"use": "dpsgd", "batch_size": 10, "epochs": 1, "noise_multiplier": 1.0, "model": "logistic"}
    own = plan(
        trainer, data="digits", n_models=30, train_size=20, audit={"attack": None}, challenge=None, canaries=None
    )
    yield "DP-SGD", eg.audit(played(own, folder / "dpsgd"))


def test_every_kind_of_audit_follows_the_schema(tmp_path):
    pytest.importorskip("torch")
    found = {name: json_ready(each.to_json()) for name, each in kinds_of_audit(tmp_path)}
    assert {name: errors(each) for name, each in found.items() if errors(each)} == {}
    assert {each["source"] for each in found.values()} == {"run", "scores", "mechanism"}
    assert {each["adjacency"] for each in found.values()} == {"substitute", "add-remove", "label-only"}
    assert found["DP-SGD"]["verdict"]["method"] == "curve"
    assert found["by μ"]["claim"]["mu"] == 0.5
    with_noise = {
        **found["DP-SGD"],
        "noise": json_ready(asdict(eg.audit(eg.Run.open(tmp_path / "dpsgd")).effective_noise())),
    }
    assert errors(with_noise) == []
