"""What is declared beforehand cannot be had afterwards: in a run's store, or in a file before scores are seen."""

import json

import numpy as np
import pytest
from command_line import ask, refused, told
from stores import forge
from tiny_runs import plan, played, responses

import epsgauge as eg
from epsgauge.declaration import digest_of
from epsgauge.errors import InvalidInput
from epsgauge.runner import looks
from epsgauge.runner.store import FILE
from epsgauge.runner.view import Run

ALL = {"rule": "given", "threshold": 0.5}


def later(out, **audit):
    """The same run with another [audit]."""
    return played(plan(audit=audit), out)


@pytest.fixture
def done(tmp_path):
    return played(plan(), tmp_path / "run")


# runs


def test_what_is_declared_after_the_signals_were_read_does_not_count(done):
    Run.open(done.path).signals()
    assert [look["kind"] for look in done.looks] == ["signals"]
    again = later(done.path, **ALL)
    assert again.declared.rule == "split"
    assert [each.beforehand for each in again.declarations] == [True, False]
    found = eg.audit(again)
    assert not found.level_kept
    assert "differs from what the plan declared before results were seen" in found.lost.why


def test_until_results_are_seen_another_plan_may_be_declared(done):
    again = later(done.path, **ALL)
    assert again.declared.rule == "given"
    assert eg.audit(again).level_kept
    assert "when 60 of 60 models were done and no result had been seen" in again.declaration.sentence


def test_a_run_whose_looks_were_removed_declares_nothing_new(done):
    log = done.path / looks.FILE
    before = log.read_bytes()
    eg.audit(done)
    later(done.path)  # from here on the store knows of them
    log.write_bytes(before)
    with pytest.raises(InvalidInput, match="looks logged before the last run are missing"):
        later(done.path, **ALL)


def test_what_has_no_results_is_no_look(tmp_path):
    done = played(plan(), tmp_path / "run")
    forge(done.path / FILE, "DELETE FROM models")
    run = Run.open(done.path)
    assert len(run.signals()) == 0
    assert run.looks == []


def test_a_look_that_cannot_be_logged_is_said(done, tmp_path, monkeypatch):
    monkeypatch.setattr("epsgauge.runner.view.log_look", lambda folder, look: False)
    said = f"This look could not be logged: {done.path} cannot be written."
    assert said in eg.audit(done).warnings
    assert said in eg.compare([done, done], rule="best").runs[1].audit.warnings
    assert said in told("export", done.path, "-o", tmp_path / "scores.csv").stderr
    with pytest.warns(UserWarning, match="This look could not be logged"):
        done.signals()


def test_every_output_shows_when_a_run_was_declared(done, tmp_path):
    found = eg.audit(done)
    sentence = done.declaration.sentence
    assert found.declaration == done.declaration
    assert found.to_json()["declared"]["sentence"] == sentence
    assert found.to_json()["declared"]["digest"] == done.declaration.digest
    assert done.declaration.digest[:12] in str(found)
    later(done.path, delta=1e-6)
    found = eg.audit(Run.open(done.path))
    for name in ("report.html", "report.md", "report.json"):
        text = eg.report(found, out=tmp_path / name).read_text(encoding="utf-8")
        assert sentence in text
        assert Run.open(done.path).declarations[1].sentence in text


# scores


@pytest.fixture
def scores():
    return responses(1.0, 300)


def declared(folder, **kw):
    return eg.declare(
        folder / "scores.plan", **{"adjacency": "substitute", "bits": "coins", "delta": 1e-6, "seed": 3, **kw}
    )


def test_scores_are_judged_exactly_as_declared(scores, tmp_path):
    before = declared(tmp_path, note="minus the loss", verdict_level=0.95)
    found = eg.audit(scores, declared=before.file)
    same = eg.audit(scores, delta=1e-6, seed=3, verdict_level=0.95)
    assert (found.settings, found.verdict.bound.value) == (same.settings, same.verdict.bound.value)
    assert found.judged.choice.seed == 3
    assert found.declaration == before
    assert found.to_json()["declared"]["digest"] == before.digest
    assert eg.audit(scores, declared=before.file, delta=1e-6, seed=3).settings == same.settings
    said = json.loads((tmp_path / "scores.plan").read_text(encoding="utf-8"))["declared"]
    assert (said["bits"], said["note"], said["audit"]["delta"]) == ("coins", "minus the loss", 1e-6)


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"delta": 1e-5}, "delta is 1e-05 here, but 1e-06 in"),
        ({"seed": 4}, "seed is 4 here, but 3 in"),
        ({"verdict_level": 0.9}, "verdict_level is 0.9 here, but 0.99 in"),
        ({"rule": "given", "threshold": 0.5}, "rule is 'given' here, but 'split' in"),
        ({"claimed_eps": 1.0, "claimed_delta": 1e-6, "claimed_adjacency": "substitute"}, "claimed_eps is 1.0 here"),
    ],
)
def test_what_contradicts_a_declaration_is_refused(scores, tmp_path, other, words):
    before = declared(tmp_path)
    with pytest.raises(eg.InvalidInput, match=words):
        eg.audit(scores, declared=before.file, **other)


@pytest.mark.parametrize(
    ("name", "here", "before"), [("adjacency", "substitute", "add-remove"), ("bits", "coins", "unknown")]
)
def test_scores_of_which_something_else_was_said_are_not_the_declared_ones(scores, tmp_path, name, here, before):
    file = declared(tmp_path, **{name: before}).file
    with pytest.raises(eg.InvalidInput, match=f"{name} is '{here}' here, but '{before}' in"):
        eg.audit(scores, declared=file)


def test_which_rows_share_a_model_is_declared_too(tmp_path):
    file, table = tmp_path / "scores.plan", tmp_path / "scores.csv"
    rng = np.random.default_rng(0)
    table.write_text("bit,score\n" + "".join(f"{b},{rng.normal() + b}\n" for b in rng.integers(0, 2, 120)))
    said = ("--adjacency", "substitute", "--bits", "coins")
    content = json.loads(ask("declare", file, *said, "--independent", "--json"))["declared"]
    assert content["models"] == "independent"
    found = json.loads(ask("scores", table, "--declared", file, "--json"))  # which need not be said again
    assert sum(found["guaranteed_tally"].values()) == 100
    assert "models is 'one' here, but 'independent' in" in refused("scores", table, "--declared", file, "--one-model")
    assert "only one of --one-model and --independent" in refused("declare", "x", *said, "--independent", "--one-model")
    with pytest.raises(eg.InvalidInput, match='models must be "one", "independent" or "orthogonal", but got \'two\''):
        declared(tmp_path / "other", models="two")


def test_declarations_of_before_models_were_declared_are_read(tmp_path):
    before = declared(tmp_path)
    content = {name: value for name, value in before.content.items() if name != "models"}
    file = tmp_path / "old.plan"
    file.write_text(json.dumps({"declared": content, "digest": digest_of(content)}), encoding="utf-8")
    table = tmp_path / "scores.csv"
    table.write_text("bit,score\n" + "0,1\n1,2\n" * 60)
    rows = eg.Scores.read(table, adjacency="substitute", bits="coins", models="independent")
    assert eg.audit(rows, declared=file).declaration.digest == digest_of(content)


def test_a_declaration_is_not_replaced_and_not_edited(scores, tmp_path):
    before = declared(tmp_path)
    with pytest.raises(eg.InvalidInput, match=r"scores.plan exists, and a declaration is never replaced"):
        declared(tmp_path, delta=1e-5)
    file = tmp_path / "scores.plan"
    text = file.read_text(encoding="utf-8")
    for old, new in (("1e-06", "1e-05"), (before.time, "2020-01-01T00:00:00+00:00")):
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")
        with pytest.raises(eg.InvalidInput, match=r"scores.plan was changed after it was written: its digest"):
            eg.audit(scores, declared=file)


def test_what_is_no_declaration_is_a_sentence(scores, done, tmp_path):
    file = tmp_path / "x.plan"
    with pytest.raises(eg.InvalidInput, match="could not be read"):
        eg.audit(scores, declared=file)
    empty = json.dumps({"declared": {}, "digest": digest_of({})})
    for text in ("", "[]", "{}", empty, '{"declared": 1, "digest": "2"}'):
        file.write_text(text)
        with pytest.raises(eg.InvalidInput, match=r"is no declaration|was changed after"):
            eg.audit(scores, declared=file)
    with pytest.raises(eg.InvalidInput, match="declared goes with scores"):
        eg.audit(done, declared=file)
    for bad in ({"bits": "fair"}, {"seed": -1}, {"attack": "loss"}, {"adjacency": "near"}, {"delta": 2.0}):
        with pytest.raises(eg.InvalidInput):
            declared(tmp_path, **bad)
    assert not (tmp_path / "scores.plan").exists()


def test_scores_without_a_declaration_say_so_beside_their_promise(scores):
    found = eg.audit(scores)
    assert found.verdict.promise == "guaranteed"
    assert "Not declared beforehand: this is guaranteed if rule" in found.verdict.sentence
    assert found.to_json()["declared"] is None
    assert "declared not beforehand" in str(found)
    assert not any("beforehand" in warning for warning in found.warnings)
    assert "Not declared" not in eg.audit(scores, verdict_method="bayes").verdict.sentence  # it promises no level


def test_the_command_line_declares_and_keeps_to_it(scores, tmp_path):
    table, file = tmp_path / "scores.csv", tmp_path / "scores.plan"
    options = ("--adjacency", "substitute", "--bits", "coins", "--delta", "1e-6", "--seed", 3)
    said = json.loads(ask("declare", file, *options, "--json"))
    scores.write(table)
    out = json.loads(ask("scores", table, "--declared", file, "--json"))
    assert out["declared"]["digest"] == said["digest"]
    assert out["settings"]["delta"] == 1e-6
    report = tmp_path / "report.html"
    ask("scores", table, "--declared", file, "--report", report)
    text = report.read_text(encoding="utf-8")
    assert out["declared"]["sentence"].removeprefix("Declared ") in text
    assert f"--declared {file}" in text
    assert "exists, and a declaration is never replaced" in refused("declare", file, "--adjacency", "substitute")
    assert "delta is 1e-05 here" in refused("scores", table, "--declared", file, "--delta", "1e-5")
    assert "seed is 0 here, but 3" in refused("scores", table, "--declared", file, "--seed", 0)


def test_what_a_file_does_not_say_is_taken_from_the_declaration(scores, tmp_path):
    table, file = tmp_path / "scores.csv", declared(tmp_path, models="independent").file
    rows = [f"{bit},{score}" for bit, score in zip(scores.bit, scores.score, strict=True)]
    table.write_text("\n".join(["bit,score", *rows, ""]))
    out = json.loads(ask("scores", table, "--declared", file, "--json"))
    said = {"bits": "coins", "models": "independent", "lower_is_in": False, "direction": None}
    assert (out["adjacency"], out["scores"]) == ("substitute", said)
    report = tmp_path / "report.md"
    ask("scores", table, "--independent", "--declared", file, "--report", report)
    assert f"epsgauge scores {table} --independent --declared {file} --report {report}" in report.read_text(
        encoding="utf-8"
    )
    unsaid = eg.declare(tmp_path / "unsaid.plan", adjacency="substitute").file
    scores.write(table)  # which says that its bits are coins
    assert "bits is 'coins' here, but 'unknown' in" in refused("scores", table, "--declared", unsaid)


def test_tables_that_one_declaration_judged_are_counted(tmp_path):
    """Twenty attacks, of which the best is shown, are not one. The same table counts once, in any order of its rows."""
    path = tmp_path / "scores.plan"
    eg.declare(path, adjacency="add-remove", bits="coins", verdict_level=0.99)
    for n in range(1, 4):
        rng = np.random.default_rng(n)
        table = eg.Scores(
            np.arange(200),
            np.zeros(200, int),
            rng.integers(0, 2, 200),
            rng.normal(size=200),
            "add-remove",
            bits="coins",
        )
        for rows in (slice(None), rng.permutation(200)):
            said = eg.audit(table[rows], declared=path, direction="kept").verdict.sentence
            words = f"{n} different tables were judged by this declaration: all verdicts hold together at {100 - n} %."
            assert (words in said) == (n > 1)
    assert len((tmp_path / "scores.plan.uses").read_text(encoding="utf-8").split()) == 3


def test_a_declaration_beside_which_nothing_can_be_written(tmp_path):
    path = tmp_path / "scores.plan"
    eg.declare(path, adjacency="add-remove", bits="coins")
    (tmp_path / "scores.plan.uses").mkdir()
    rng = np.random.default_rng(1)
    table = eg.Scores(
        np.arange(90), np.zeros(90, int), rng.integers(0, 2, 90), rng.normal(size=90), "add-remove", bits="coins"
    )
    assert "different tables" not in eg.audit(table, declared=path, direction="kept").verdict.sentence
