"""Seals: rows of another run, dropped sums and emptied tables do not fit; what is read without them is an estimate."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing, suppress

import pytest
from command_line import ask, told
from stores import copied, edit, forge
from tiny_runs import CLAIM, plan, plan_text, played

import epsgauge as eg
from epsgauge.errors import InvalidInput
from epsgauge.reporting.redo import of_audit
from epsgauge.runner.schema import PARTS, TABLES
from epsgauge.runner.store import FILE

REFUTED = {**CLAIM, "claimed_eps": 0.5}


def planned(eps, n_models=60):
    return plan({"use": "randomised-response", "eps": eps}, n_models=n_models, audit={"fit_models": 10, **REFUTED})


@pytest.fixture(scope="module")
def leaky(tmp_path_factory):
    """Its claim is refuted."""
    return played(planned(6.0), tmp_path_factory.mktemp("leaky") / "run").path


@pytest.fixture(scope="module")
def quiet(tmp_path_factory):
    """The same plan with more noise, which keeps its claim."""
    return played(planned(0.3), tmp_path_factory.mktemp("quiet") / "run").path


@pytest.fixture
def run(leaky, tmp_path):
    return copied(leaky, tmp_path / "run")


def refused(run, words):
    """Also when the run has gone on, which may not read what is wrong, and seals nothing again."""
    with pytest.raises(InvalidInput, match=words):
        eg.audit(eg.Run.open(run))
    with suppress(InvalidInput):
        played(planned(6.0, n_models=62), run)
    assert re.search(words, told("audit", run).stderr)
    assert not eg.verify(run).intact


def test_a_store_without_seals_is_not_sealed_again(run):
    """As somebody does it who wants epsgauge to take it for one of an earlier version."""
    zeros = "UPDATE models SET signals = zeroblob(length(signals))"
    edit(run / FILE, "DROP TABLE sums", "PRAGMA user_version = 4", zeros)
    for command in ("audit", "verify"):
        assert "has schema 4, but this epsgauge only reads schema 6. Start again" in told(command, run).stderr
    edit(run / FILE, "PRAGMA user_version = 6")
    refused(run, "no such table: sums")


@pytest.mark.parametrize("identity", [False, True])
def test_rows_of_another_run_do_not_fit(run, quiet, identity):
    """Models and sums, and the entry that says which run it is as well."""
    sums = [f"DELETE FROM {name}" for name in ("models", "sums")]
    copies = [f"INSERT INTO {name} SELECT * FROM other.{name}" for name in ("models", "sums")]
    if identity:
        copies.append("REPLACE INTO meta SELECT * FROM other.meta WHERE key = 'identity'")
    attach(run / FILE, quiet / FILE, *sums, *copies)
    refused(run, "is not what was written")


def test_rows_of_a_run_of_the_same_plan_do_not_fit(run, tmp_path):
    """It may have had other code."""
    other = played(planned(6.0), tmp_path / "other").path
    attach(run / FILE, other / FILE, "REPLACE INTO models SELECT * FROM other.models WHERE idx = 3")
    refused(run, "row 3 of models is not what was written")


def attach(file, other, *statements):
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("ATTACH ? AS other", (str(other),))
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize("part", PARTS)
def test_no_table_can_be_emptied_by_editing_its_sum(run, part):
    name, _, state = part.partition(" ")
    where = f" WHERE state = '{state}'" if state else ""
    edit(run / FILE, f"DELETE FROM {name}{where}", f"UPDATE sums SET n = 0, total = zeroblob(32) WHERE part = '{part}'")
    found = eg.verify(run)
    empty = part in ("models failed", "rehearsals failed", "rankings")  # as it was
    assert found.intact == empty
    if not empty:
        refused(run, "is not what was written|does not say which run it is")


def test_every_table_is_summed_up():
    assert {part.partition(" ")[0] for part in PARTS} == {table.name for table in TABLES}


# without seals


def test_without_seals_every_bound_is_an_estimate_and_no_gate_counts_it(run):
    sealed = json.loads(ask("audit", run, "--fail-on", "violation", "--json", code=1))
    assert (sealed["verdict"]["kind"], sealed["verdict"]["promise"]) == ("violation", "guaranteed")
    edit(run / FILE, "DROP TABLE sums", "UPDATE models SET seconds = 1")
    assert told("audit", run).returncode == 2
    found = json.loads(ask("audit", run, "--unsealed", "--fail-on", "violation", "--json", code=4))
    assert found["verdict"]["bound"]["value"] == sealed["verdict"]["bound"]["value"]
    assert {row["promise"] for row in found["methods"]} == {found["verdict"]["promise"]} == {"estimate"}
    assert found["verdict"]["kind"] != "violation"
    reason = "the seals of the run's store were not checked (--unsealed)"
    assert reason in found["level_lost_because"]
    assert reason in " ".join(ask("audit", run, "--unsealed").split())
    opened = eg.Run.open(run, unsealed=True)
    assert opened.status()["digest"] is None
    assert eg.audit(opened).verdict.bound.promise == "estimate"
    assert ", unsealed=True))" in of_audit(eg.audit(opened))[-1]


def test_what_cannot_be_read_stays_what_it_is(run):
    (run / FILE).write_bytes(b"something else" * 1000)
    with pytest.raises(InvalidInput, match="file is not a database"):
        eg.Run.open(run, unsealed=True)


# digests


def test_a_run_has_a_digest_that_reading_does_not_change(run, leaky):
    digest = eg.Run.open(run).status()["digest"]
    assert len(digest) == 64
    eg.audit(eg.Run.open(run))
    assert played(planned(6.0), run).status()["digest"] == digest  # nothing was left to train
    found = eg.verify(run, digest=digest.upper())
    assert (found.intact, found.digest, found.checks[-1].name) == (True, digest, "digest")
    grown = played(planned(6.0, n_models=61), run)
    assert grown.status()["digest"] != digest


def test_a_forged_run_does_not_have_the_digest_that_was_published(run):
    published = json.loads(ask("status", run, "--json"))["digest"]
    assert published in ask("status", run)
    forge(run / FILE, "UPDATE models SET signals = zeroblob(length(signals)) WHERE idx = 3")
    assert eg.verify(run).intact  # its seals fit
    out = " ".join(ask("verify", run, "--digest", published, code=1).split())
    assert f"The run is not the published one: its digest is {eg.verify(run).digest}." in out
    assert "not the published one. Ask for the published run." in out
    assert json.loads(ask("verify", run, "--json"))["digest"] == eg.verify(run).digest != published


def test_verify_says_what_a_digest_is_for(run):
    out = " ".join(ask("verify", run).split())
    assert "Seals find accidents and edits by hand, not forgery" in out
    digest = eg.verify(run).digest
    assert f"digest {digest}" in out
    out = " ".join(ask("verify", run, "--digest", digest).split())
    assert "The run is as it was when its digest was published." in out
    for bad in ("12ab", "x" * 64):
        said = told("verify", run, "--digest", bad)
        assert said.returncode == 2
        assert f"digest must be the 64 hexadecimal digits that `epsgauge run` printed, but got '{bad}'." in said.stderr


def test_run_prints_the_digest(tmp_path):
    (tmp_path / "plan.toml").write_text(plan_text(n_models=70))
    out = ask("run", tmp_path / "plan.toml", "-o", tmp_path / "run", "--blind")
    assert eg.verify(tmp_path / "run").digest in out
