"""The viewer's page of a run: what is there at once, files to download, and an upload that goes on."""

import csv
import io
import json
import re

import numpy as np
import pytest
from served import Client, Served, listed, looks
from tiny_runs import pairs_plan, played, stopped

import epsgauge as eg
from epsgauge.auditing.audit import audit_run
from epsgauge.reporting.report import written
from epsgauge.reporting.viewer import upload


def quick(name="a <b>run</b>", seed=1):
    return pairs_plan(
        1, shift=2.0, name=name, seed=seed, n_models=40, audit={"attack": "loss", "verdict_method": "clopper-pearson"}
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    played(quick(), out / "a")
    stopped(quick("half", 2), out / "half", 30)
    return out


@pytest.fixture(scope="module")
def client(folder):
    with Served(folder) as here:
        listed(here.client)
        yield here.client


def test_a_report_is_that_of_the_library(client, folder):
    found, audit = client.get("/download", id="a"), audit_run(eg.Run.open(folder / "a"))
    assert found.status == 400  # as what?
    html = client.get("/download", **{"id": "a", "as": "html"})
    assert html.headers["content-disposition"] == 'attachment; filename="a-b-run-b.html"'
    assert html.headers["content-type"] == "text/html; charset=utf-8"
    ours = written(audit, "html", out="a-b-run-b.html")
    assert re.findall(r"<svg.*?</svg>", html.text, re.S) == re.findall(r"<svg.*?</svg>", ours, re.S)
    record = json.loads(client.get("/download", **{"id": "a", "as": "json"}).text)
    assert record["verdict"]["bound"]["value"] == audit.verdict.bound.value
    assert client.get("/download", **{"id": "a", "as": "md"}).text.startswith("# ")


def test_the_scores_are_those_of_export(client, folder):
    answer = client.get("/download", **{"id": "a", "as": "csv"})
    rows = list(csv.DictReader(line for line in io.StringIO(answer.text) if not line.startswith("#")))
    signals = eg.Run.open(folder / "a").signals()
    assert [int(row["bit"]) for row in rows] == signals.bits.ravel().tolist()
    assert len({row["score"] for row in rows}) == 40


def test_a_download_of_an_unfinished_run_is_asked_for(client, folder):
    answer = client.get("/download", **{"id": "half", "as": "csv"})
    assert answer.status == 400
    assert "nobody asked for its results" in answer.text
    assert looks(folder / "half") == []
    assert client.get("/download", **{"id": "../a", "as": "csv"}).status == 400
    assert client.get("/download", **{"id": "a", "as": "pickle"}).status == 400
    assert Client(client.port).get("/download", **{"id": "a", "as": "csv"}).status == 403


def test_the_page_begins_with_a_verdict_that_was_kept(client, folder):
    page = client.get("/run", id="a").text
    found = audit_run(eg.Run.open(folder / "a"))
    assert f"{found.verdict.kind}</span>" in page
    assert str(found.verdict.bound) in page
    assert "Pictures and warnings are on their way" in page
    half = client.get("/run", id="half").text
    assert "ε ≥" not in half
    assert "/download?id=a&amp;as=csv" in client.get("/api/results", id="a").json["parts"]["verdict"]


def test_a_kept_verdict_on_a_page_is_a_look(tmp_path):
    played(quick(), tmp_path / "a")
    with Served(tmp_path) as here:
        listed(here.client)
    with Served(tmp_path) as here:
        while "ε ≥" not in here.client.get("/run", id="a").text:
            pass
        assert looks(tmp_path / "a") == ["view", "view"]


# an upload that goes on


def lines(n=40):
    rng = np.random.default_rng(0)
    return "bit,score\n" + "".join(f"{i % 2},{rng.normal() + 3 * (i % 2)}\n" for i in range(n))


def test_what_a_file_lacks_is_said_without_sending_it_again(client):
    first = client.post("/api/scores", lines().encode(), name="mine.csv")
    assert first.status == 400
    assert first.json["asks"] == "adjacency"
    assert "does not say its adjacency" in first.json["error"]
    held = first.json["held"]
    second = client.post("/api/scores", held=held, adjacency="add-remove")
    assert (second.status, second.json["asks"], second.json["held"]) == (400, "models", held)
    then = client.post("/api/scores", held=held, adjacency="add-remove", models="independent")
    assert then.status == 200
    at_once = client.post(
        "/api/scores", lines().encode(), name="mine.csv", adjacency="add-remove", models="independent"
    )
    assert then.json["parts"] == at_once.json["parts"]
    again = client.post("/api/scores", held=at_once.json["held"], adjacency="substitute", models="independent")
    assert "substitute" in again.json["parts"]["dropped"]
    gone = client.post("/api/scores", held=held, adjacency="substitute")  # another file has come since
    assert (gone.status, "not held any more" in gone.json["error"]) == (400, True)


def test_a_held_file_is_of_one_session_and_few_are_held(client):
    held = upload.Held()
    files = [held.keep(f"session {i}", "a.csv", b"x") for i in range(upload.MOST_HELD + 1)]
    with pytest.raises(eg.InvalidInput, match="not held any more"):
        held.of("session 0", files[0].key)
    assert held.of("session 1", files[1].key) is files[1]
    for session, key in (("session 2", files[1].key), ("none", files[1].key), ("session 1", "")):
        with pytest.raises(eg.InvalidInput, match="not held any more"):
            held.of(session, key)
    assert held.keep("session 1", "b.csv", b"y").key != files[1].key
    with pytest.raises(eg.InvalidInput):
        held.of("session 1", files[1].key)
