"""The viewer's overlay: the warnings of a comparison, a baseline, and runs that share no rule."""

from html import unescape

import pytest
from served import Served
from test_one_rule import shifted
from tiny_runs import played

import epsgauge as eg
from epsgauge.auditing.compare import compare


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("overlay")
    played(shifted("quiet", 1, 0.0, 1.2, 6.0), out / "a")
    played(shifted("leaky", 2, 40.0, 6.0, 0.5), out / "b")
    played(shifted("percentiles", 3, 0.0, 1.2, 6.0, "percentile"), out / "c")
    return out


@pytest.fixture(scope="module")
def client(folder):
    with Served(folder) as here:
        yield here.client


def overlay(client, *ids, **query):
    return unescape(client.get("/overlay", id=list(ids), **query).text)


def test_a_violation_is_shown_as_one_with_all_warnings(client, folder):
    text, found = overlay(client, "a", "b"), compare([eg.Run.open(folder / name) for name in "ab"])
    assert '<span class="chip violation">violation</span>' in text
    assert found.runs[1].audit.verdict.kind == "violation"
    for said in found.warnings:
        assert said in text
    assert found.notes[0] in found.warnings
    strict = overlay(client, "a", "b", rule="shared")
    assert '<span class="chip violation">violation</span>' not in strict


def test_the_chosen_baseline_is_the_first(client):
    assert "Largest distance to quiet" in overlay(client, "a", "b")
    chosen = overlay(client, "a", "b", baseline="b")
    assert "Largest distance to leaky" in chosen
    assert '<option value="b" selected>' in chosen
    assert "Largest distance to quiet" in overlay(client, "a", "b", baseline="none")


def test_runs_with_different_attacks_are_one_picture(client):
    text = overlay(client, "a", "c")
    assert "The runs differ in attack (loss, percentile)" in text
    assert 'id="fig-cdfs"><svg' in text
    assert "must have one attack" in overlay(client, "a", "c", rule="shared")
    one = overlay(client, "a", "c", attack="loss")
    assert "The runs differ" not in one
