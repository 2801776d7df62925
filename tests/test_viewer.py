"""The viewer over HTTP: who may see what, what is logged as a look, what sliders show, and what is refused."""

import asyncio
import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import zipfile
from dataclasses import replace
from functools import partial
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import uvicorn
from patience import PATIENCE
from served import Client, Served, listed, looks
from tiny_runs import pairs_plan, plan, played, stopped
from uvicorn.server import ServerState

import epsgauge as eg
from epsgauge.auditing.audit import audit_run
from epsgauge.errors import InvalidInput, MissingExtra
from epsgauge.figures.narrowing import narrowing
from epsgauge.methods.counting import Counting
from epsgauge.methods.table import METHODS
from epsgauge.reporting.viewer import calculator, explore, timely, upload
from epsgauge.reporting.viewer.audits import Audits
from epsgauge.reporting.viewer.guard import HEADERS, PAGES
from epsgauge.reporting.viewer.pictures import Pictures
from epsgauge.reporting.viewer.runs import Folder
from epsgauge.reporting.viewer.seen import UNLOGGED
from epsgauge.reporting.viewer.server import Viewer, serve
from epsgauge.reporting.viewer.show import Show, _controls

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>"
STATIC = Path(explore.__file__).parent / "static"


def of_losses(name, seed, n_models=60, m=1, shift=1.5, **audit):
    return pairs_plan(m, shift=shift, name=name, seed=seed, n_models=n_models, audit={"attack": "percentile", **audit})


def judged_plan(name="rr", audit=None, **more):
    """By a method that takes no time."""
    return plan(name=name, audit={"verdict_method": "clopper-pearson", **(audit or {})}, **more)


def small(n_models=12):
    return judged_plan(n_models=n_models, audit={"rule": "given", "threshold": 0.0})


def play(a_plan, out, stop_after=None):
    return stopped(a_plan, out, stop_after) if stop_after else played(a_plan, out)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    play(judged_plan(), folder / "whole")
    play(judged_plan(HOSTILE, seed=1), folder / "deep" / 'a"b<i>&c')
    play(of_losses("percentile", 2, verdict_method="clopper-pearson"), folder / "percentile")
    play(judged_plan("other", adjacency="add-remove", seed=3), folder / "other")
    play(judged_plan("half"), folder / "half", stop_after=40)
    (folder / "broken").mkdir()
    (folder / "broken" / "store.sqlite").write_bytes(b"no database at all" * 100)
    return folder


@pytest.fixture(scope="module")
def served(runs):
    with Served(runs) as here:
        yield here


@pytest.fixture
def client(served):
    return served.client


@pytest.fixture(scope="module")
def declared(runs):
    return Audits().of(runs / "percentile")


# who may see what


def test_the_token_is_exchanged_once_and_leaves_the_address(tmp_path):
    with Served(tmp_path) as here:
        port, token = here.viewer.port, here.address.partition("token=")[2]
        assert here.address == f"http://127.0.0.1:{port}/?token={token}"
        assert len(token) >= 40
        assert token != here.viewer.keys.token  # another one already
        second = Client(port)
        refused = second.get("/", token=token)
        assert (refused.status, refused.cookies) == (403, [])
        assert "used already" in refused.text
        assert here.announced == [here.viewer.address]  # and the terminal has a new one
        assert here.client.get("/").status == 403  # whoever had the old one is out
        entered = second.enter(here.announced[0].replace("?", "calculator?tp=1&"))
        assert (entered.status, entered.headers["location"]) == (303, "/calculator?tp=1")
        assert re.fullmatch(rf"epsgauge-{port}=[\w-]{{40,}}; HttpOnly; Path=/; SameSite=strict", entered.cookies[0])
        again = second.get("/", token=here.announced[0].partition("token=")[2])
        assert (again.status, again.headers["location"]) == (303, "/")  # whoever is in just loses it from the address


def test_a_strict_cookie_reaches_the_page_also_from_another_page(tmp_path):
    with Served(tmp_path) as here:
        client = Client(here.viewer.port)
        answer = client.send("GET", f"/?token={here.viewer.keys.token}", {"Sec-Fetch-Site": "cross-site"})
        assert answer.status == 200
        assert '<meta http-equiv="refresh" content="0;url=/">' in answer.text
        assert "SameSite=strict" in answer.cookies[0]


@pytest.mark.parametrize(
    "path", ["/", "/run?id=whole", "/calculator", "/overlay", "/api/list", "/api/results?id=whole"]
)
def test_without_a_cookie_nothing_is_shown(served, path):
    for headers in ({}, {"Cookie": f"epsgauge-{served.viewer.port}=guess"}, {"Cookie": "epsgauge-1=; ;=;;"}):
        answer = Client(served.viewer.port).get(path, headers)
        assert answer.status == 403
        assert "whole" not in answer.text


def test_a_second_cookie_of_the_name_locks_nobody_out(client):
    name = client.cookie.partition("=")[0]
    for cookies in (f"{name}=planted; {client.cookie}", f"{client.cookie}; {name}=planted"):
        assert Client(client.port).get("/", {"Cookie": cookies}).status == 200


def test_the_browser_is_opened_by_a_file_that_only_its_owner_reads(tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda target: opened.append((target, Path(target[7:]).stat().st_mode)))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    text, said = [], []

    def served(viewer):
        file = next(tmp_path.glob("*/*.html"))
        text.append(file.read_text(encoding="utf-8"))
        for thread in threading.enumerate():
            if thread.name == "opens a browser":
                thread.join(10)
        viewer._socket.close()

    monkeypatch.setattr(Viewer, "serve", served)
    serve(tmp_path, say=said.append)
    token = said[0].partition("token=")[2]
    assert f"url=http://127.0.0.1:{said[0].partition('127.0.0.1:')[2].partition('/')[0]}/?token={token}" in text[0]
    ((target, mode),) = opened
    assert target.startswith("file:///")
    assert token not in target
    assert mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == []  # it is gone with the viewer


@pytest.mark.parametrize("token", ["", "wrong", "%C3%A9", "%ED%A0%80", "%00", "a" * 5000])
def test_a_wrong_token_is_refused(served, token):
    answer = Client(served.viewer.port).send("GET", f"/?token={token}")
    assert (answer.status, answer.cookies) == (403, [])


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", ""]
)
def test_a_wrong_host_is_refused_also_with_the_cookie(client, host):
    answer = client.get("/", {"Host": host.format(port=client.port)})
    assert answer.status == 403
    assert "127.0.0.1" in answer.text
    assert client.get("/", {"Host": f"localhost:{client.port}"}).status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_pages_cannot_ask_for_ours(client, site):
    for path in ("/api/results?id=whole", "/run?id=whole"):
        assert client.get(path, {"Sec-Fetch-Site": site}).status == 403
    closed = client.get("/calculator?tp=1&tn=2", {"Sec-Fetch-Site": site})
    assert 'href="/calculator?tp=1&amp;tn=2"' in closed.text  # whoever wants it opens it from our own page
    posted = [{"Sec-Fetch-Site": site}, {"Origin": "http://evil.example"}, {}]
    assert [client.send("POST", "/api/open?id=half", headers).status for headers in posted] == [403] * 3
    assert client.send("POST", "/api/open?id=whole", {"Origin": f"http://127.0.0.1:{client.port}"}).status == 200


def test_every_answer_carries_the_headers(client):
    for path in ("/", "/run?id=whole", "/none", "/static/viewer.css", "/static/none", "/api/list", "/api/results?id=x"):
        for own in (client, Client(client.port)):
            answer = own.get(path)
            assert {name: answer.headers[name] for name in HEADERS} == HEADERS
            assert answer.headers.get_all("cache-control") == ["no-store"]
            assert "server" not in answer.headers
    policy = HEADERS["content-security-policy"]
    assert "unsafe" not in policy
    assert "*" not in policy
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")


class Elements(HTMLParser):
    """What a page is made of, as a browser reads it."""

    def __init__(self, text):
        super().__init__()
        self.found = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def test_no_page_has_the_token_or_a_script_or_style_of_its_own(served, client):
    tokens = {served.address.partition("token=")[2], served.viewer.keys.token, client.cookie.partition("=")[2]}
    pages = [client.get(path).text for path in (*PAGES, "/run?id=whole", "/overlay?id=whole&id=percentile")]
    pages += client.get("/api/explore", id="whole").json["parts"].values()
    pages += client.get("/api/results", id="whole").json["parts"].values()
    assert len(pages) > 15
    for text in pages:
        assert not [token for token in tokens if token in text]
        for tag, attributes in Elements(text).found:
            assert tag not in ("style", "iframe", "object", "base")
            assert tag != "script" or attributes["src"].startswith("/static/")
            assert not [name for name in attributes if name == "style" or name.startswith("on")]
            for name in ("src", "href", "action", "xlink:href"):
                assert attributes.get(name, "/")[:1] in "/#"


def test_a_redirect_stays_here(tmp_path):
    with Served(tmp_path) as here:
        fresh = Client(here.viewer.port)
        answer = fresh.send("GET", f"//evil.example/?token={here.viewer.keys.token}&next=//evil.example")
        assert (answer.status, answer.headers["location"]) == (303, "/?next=%2F%2Fevil.example")


# no path outside the folder


def test_only_listed_runs_are_opened(tmp_path):
    play(small(), tmp_path / "outside")
    folder = tmp_path / "folder"
    (folder / "leak").mkdir(parents=True)
    (folder / "link").symlink_to(tmp_path / "outside")
    (folder / "leak" / "store.sqlite").symlink_to(tmp_path / "outside" / "store.sqlite")
    play(small(), folder / "whole")
    (folder / "loop").symlink_to(folder)
    here = Folder(folder)
    assert "whole" in here.ids()
    assert not {"link", "leak", ".."} & set(here.ids())
    outside = ("..", "../outside", "whole/../whole", "whole/", "/whole", "deep/../../outside")
    for run_id in (*outside, "", "whole\0", "link", "leak"):
        with pytest.raises(InvalidInput, match="there is no run"):
            here.path(run_id)


def test_folders_that_are_not_searched_are_said(tmp_path, monkeypatch):
    (tmp_path / "a" / "b" / "c" / "d").mkdir(parents=True)
    with Served(tmp_path) as here:
        assert here.client.get("/api/list").json["leftOut"] is None
        (tmp_path / "a" / "b" / "c" / "d" / "e").mkdir()
        assert "Folders more than 4 levels below" in here.client.get("/").text
        monkeypatch.setattr("epsgauge.reporting.viewer.runs.MOST", 2)
        assert here.client.get("/api/list").json["leftOut"].startswith("Only the first 2 folders")


def test_a_log_of_looks_that_leads_elsewhere_is_not_read(tmp_path):
    folder, outside = tmp_path / "folder", tmp_path / "precious"
    play(small(), folder / "a")
    outside.write_text("mine")
    (folder / "a" / "looks.jsonl").unlink()
    (folder / "a" / "looks.jsonl").symlink_to(outside)
    assert Folder(folder).ids() == []


def test_paths_in_addresses_are_refused(client):
    for path in ("/run?id=../whole", "/run?id=%2e%2e%2fwhole", "/run?id=/etc", "/run"):
        answer = client.get(path)
        assert answer.status == 404
        assert "There is no run" in answer.text
    for path in ("/../etc/passwd", "/static/../server.py", "/static/%2e%2e/server.py", "/static//etc/passwd", "/whole"):
        assert client.get(path).status == 404
    assert client.get("/api/results", id="../whole").status == 400


# the list


def rows_of(text):
    return {unescape(row[0]): row[1] for row in re.findall(r'<tr data-id="([^"]*)">(.*?)</tr>', text, re.S)}


def test_the_list_shows_every_run_and_results_of_finished_ones_alone(client, runs):
    before = looks(runs / "half")
    text = listed(client)["parts"]["rows"]
    rows = rows_of(text)
    assert sorted(rows) == ["broken", 'deep/a"b<i>&c', "half", "other", "percentile", "whole"]
    assert '<span class="chip complete">complete</span>' in rows["whole"]
    assert "40 of 60" in rows["half"]
    assert '<span class="chip stopped">stopped</span>' in rows["half"]
    assert "open the run to see results" in rows["half"]
    assert "is damaged" in rows["broken"]
    assert HOSTILE not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in rows['deep/a"b<i>&c']
    assert "ε ≥" in rows["whole"]
    assert "ε ≥" not in rows["half"]
    assert looks(runs / "half") == before


def test_a_verdict_in_the_list_is_one_look_a_session(tmp_path):
    done = play(judged_plan(), tmp_path / "a")
    with Served(tmp_path) as here:
        row = rows_of(listed(here.client)["parts"]["rows"])["a"]
        found = audit_run(done)
        assert f">{found.verdict.kind}</span>" in row
        assert f">{found.claim.eps_text}</td>" in row
        listed(here.client)
        here.client.get("/api/results", id="a")
        assert looks(tmp_path / "a") == ["view"]


def test_an_empty_folder_and_a_run_that_vanishes_are_sentences(tmp_path):
    done = play(small(), tmp_path / "a")
    with Served(tmp_path) as here:
        assert here.client.get("/api/results", id="a").status == 200
        for file in done.path.iterdir():
            file.unlink()
        for path in ("/api/progress", "/api/results", "/api/explore"):
            answer = here.client.get(path, id="a")
            assert answer.status == 400
            assert "moved or deleted" in answer.json["error"]
        assert "There are no runs in this folder yet" in here.client.get("/").text


def test_the_folder_may_be_a_run_itself(tmp_path):
    play(small(), tmp_path)
    with Served(tmp_path) as here:
        assert here.client.get("/run", id=".").status == 200
        assert "verdict" in here.client.get("/api/results", id=".").json["parts"]


# results of a run that is not finished


def test_results_of_an_unfinished_run_are_asked_for_and_logged(tmp_path):
    play(judged_plan(), tmp_path / "a", stop_after=40)
    with Served(tmp_path) as here:
        client = here.client
        page = client.get("/run", id="a").text
        assert "Viewing results now is recorded as an early look" in page
        assert client.get("/api/progress", id="a").json["maySee"] is False
        for path in ("/api/results", "/api/explore"):
            assert client.get(path, id="a").status == 400
        assert "ε ≥" not in listed(client)["parts"]["rows"]
        assert "is not finished" in client.get("/overlay?id=a&id=a").text
        assert looks(tmp_path / "a") == []
        assert client.post("/api/open", id="a").json == {"opened": 1}
        assert client.get("/api/progress", id="a").json["maySee"] is True
        assert looks(tmp_path / "a") == []  # nothing was shown yet
        found = client.get("/api/results", id="a").json
        assert "anytime bound" in found["parts"]["verdict"]
        client.get("/api/explore", id="a", log_delta=-3)
        assert looks(tmp_path / "a") == ["view"]
        play(judged_plan(), tmp_path / "a", stop_after=10)
        client.get("/api/explore", id="a", log_delta=-4)
        assert looks(tmp_path / "a") == ["view"]  # sliders are about what the page shows
        client.get("/api/results", id="a")
        client.get("/api/results", id="a")
        assert looks(tmp_path / "a") == ["view", "view"]  # once for each number of models
        assert [look["n_done"] for look in eg.Run.open(tmp_path / "a").looks] == [40, 50]
        other = Client(here.viewer.port)
        other.enter(here.viewer.address)
        assert other.get("/api/progress", id="a").json["maySee"] is False  # another session has not asked


def test_too_few_models_to_judge_is_a_sentence(tmp_path):
    play(judged_plan(), tmp_path / "a", stop_after=8)
    with Served(tmp_path) as here:
        here.client.post("/api/open", id="a")
        answer = here.client.get("/api/results", id="a")
        assert answer.status == 200  # a page that waits for it asks again and again
        assert list(answer.json) == ["waiting"]
        assert answer.json["waiting"].startswith("The first 10 models choose the rule")
        assert here.client.get("/api/explore", id="a").status == 400
        assert looks(tmp_path / "a") == []


# sliders


def test_nothing_moved_is_the_declared_audit(declared):
    found = explore.quick(declared, explore.Moved())
    assert found.reading is declared.audit
    assert not found.pending


def test_a_moved_audit_is_that_of_the_library(declared):
    moved = explore.Moved(delta=1e-3, level=0.8, percentile=30.0, method="clopper-pearson")
    found = explore.quick(declared, moved)
    scores = declared.audit.judged.judged
    said = scores.score >= 70.0
    tally = eg.Tally.from_guesses(scores.bit, said.astype(int))
    assert found.reading.judged.tally == tally
    assert found.reading.judged.n_models == 50
    ours = eg.intervals(tally, delta=1e-3, level=0.8)
    for row in found.reading.rows[:3]:
        assert (row.low, row.high) == pytest.approx((ours[row.method].low, ours[row.method].high))
    assert {row.promise for row in found.reading.rows} == {"estimate"}
    whole = explore.late(declared, moved)
    assert not whole.pending
    exact = eg.intervals(tally, delta=1e-3, level=0.8, methods=["exact"])["exact"]
    assert whole.reading["exact"].low == pytest.approx(float(exact.low))
    assert [row.method for row in whole.reading.rows] == [row.method for row in found.reading.rows]
    assert whole.reading.bounds[0].value == pytest.approx(found.reading.bounds[0].value)


CLAIM = {"claimed_eps": 1.0, "claimed_delta": 1e-3, "claimed_adjacency": "substitute"}
MU = {"claimed_mu": 1.0, "claimed_adjacency": "substitute"}
CASES = {
    "split": (1, None, CLAIM, "weighted"),
    "same-data": (1, None, {"rule": "same-data"}, "weighted"),
    "unfinished": (1, 22, {}, "anytime"),
    "several": (2, None, {}, "weighted"),
    "pooled": (2, None, {"verdict_method": "pooled"}, "pooled"),
    "of some pairs": (2, None, {"rule": "split-pairs"}, "weighted"),
    "of μ": (2, None, MU, "one-run"),
}


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """Every kind of rule, with one pair per model and several, finished or not."""
    folder, audits = tmp_path_factory.mktemp("cases"), Audits()
    found = {}
    for name, (m, stop_after, audit, _) in CASES.items():
        play(of_losses(name, 2, 24, m, 6.0, **audit), folder / name, stop_after)
        found[name] = audits.of(folder / name)
    return found


@pytest.mark.parametrize("name", CASES)
def test_a_slider_judges_the_guesses_that_were_declared(cases, name):
    declared, base = cases[name], cases[name].audit
    assert base.verdict.method == CASES[name][-1]
    assert base.verdict.bound.value > 0
    there = explore.late(declared, explore.Moved(level=base.settings.level)).reading
    assert [(r.method, r.tally) for r in there.rows] == [(r.method, r.tally) for r in base.rows]
    both = [pair for pair in zip(there.rows, base.rows, strict=True) if pair[1].promise != "guaranteed"]
    assert [(r.low, r.high) for r, _ in both] == [(r.low, r.high) for _, r in both]
    assert {row.promise for row in there.rows} == {"estimate"}
    (bound,) = there.bounds
    assert (bound.tally, bound.delta) == (base.verdict.tally, base.verdict.delta)
    moved = explore.Moved(level=0.8)
    for found in (explore.quick(declared, moved), explore.late(declared, moved)):
        (bound,) = found.reading.bounds
        assert bound.value == pytest.approx(base.verdict.decided_by.value)
        assert (bound.method, bound.level, bound.promise) == (base.verdict.method, base.verdict.level, "estimate")
        assert [row.method for row in found.reading.rows] == [row.method for row in base.rows]


@pytest.mark.parametrize("name", ["same-data", "unfinished", "of some pairs", "of μ"])
def test_the_bound_is_by_the_method_that_is_chosen(cases, name):
    declared, base = cases[name], cases[name].audit
    for method, delta in (("exact", None), ("clopper-pearson", 1e-4)):
        (bound,) = explore.late(declared, explore.Moved(method=method, delta=delta)).reading.bounds
        assert bound.method == method
        at = {"delta": delta or base.verdict.delta, "level": base.verdict.level}
        assert bound.value == pytest.approx(METHODS[method].of(base.guaranteed_tally, **at))
        assert bound.mu is None
    exact = explore.late(declared, explore.Moved(delta=1e-4, method="exact")).reading
    assert exact.bounds[0].method == "exact"  # also at a δ that nobody declared
    assert "pending" not in [row.note for row in exact.rows]


def test_a_moved_threshold_leaves_which_guesses_count(cases, monkeypatch):
    declared = cases["pooled"]
    which = declared.audit.evidence.guesses
    monkeypatch.setattr(Counting, "which", lambda *args: pytest.fail("it was chosen again"))
    found = explore.late(declared, explore.Moved(percentile=60.0)).reading
    assert found.bounds[0].method == "pooled"
    guesses = found.evidence.guesses
    assert (guesses.n_guesses, guesses.n_bits, guesses.sides) == (which.n_guesses, which.n_bits, which.sides)


def words(declared, **moved):
    parts, _ = Pictures().explored(declared, explore.quick(declared, explore.Moved(**moved)))
    return {name.removeprefix("words-"): text for name, text in parts.items() if name.startswith("words-")}


def test_words_are_about_what_the_sliders_show(declared):
    now = words(declared)
    assert "90 %" in now["contours"]
    assert "chosen on 10 models" in now["percentiles"]
    assert "by hand" not in "".join(now.values())
    level = words(declared, level=0.8)
    assert "80 %" in level["contours"]
    assert "90 %" not in "".join(level.values())
    assert "chosen on 10 models" in level["percentiles"]
    assert "moved by hand" in level["density"]  # which promises nothing then
    rule = words(declared, percentile=50.0)
    for name in ("roc", "percentiles"):
        assert "was moved by hand" in rule[name]
        assert "chosen" not in rule[name]


def test_words_say_that_the_posterior_of_several_pairs_is_an_estimate(cases):
    assert "pairs of a model are not independent" in words(cases["pooled"])["density"]


@pytest.mark.parametrize(("level", "step"), [(0.9, "0.005"), (0.999, "0.001"), (0.9999, "0.0001"), (0.912345, "any")])
def test_the_slider_can_stand_at_the_declared_level(declared, level, step):
    settings = declared.audit.settings.model_copy(update={"level": level})
    values = _controls(replace(declared, audit=replace(declared.audit, settings=settings)))
    low, high, by, place = values["level"]
    assert low <= place <= high
    assert (place, str(by)) == (level, step)
    assert explore.Moved.parse({"level": str(high)}).level == high


def test_sliders_change_no_verdict(client):
    before = client.get("/api/results", id="percentile").json["parts"]["verdict"]
    answer = client.get("/api/explore", id="percentile", log_delta=-2, level=0.6, percentile=50, method="exact").json
    assert "exploratory" in answer["parts"]["said"]
    assert answer["pending"]
    assert "pending" in answer["parts"]["said"]
    assert answer["values"] == {"delta": "0.01", "level": "60 %", "percentile": "50", "method": "Exact"}
    late = client.get("/api/explore", id="percentile", log_delta=-2, level=0.6, percentile=50, late=1).json
    assert not late["pending"]
    assert "pending" not in late["parts"]["said"]
    assert client.get("/api/results", id="percentile").json["parts"]["verdict"] == before
    told = client.get("/api/explore", id="percentile").json
    assert "as declared" in told["parts"]["said"]


def test_only_pictures_that_depend_on_a_slider_change(client, declared):
    def parts(**moved):
        return client.get("/api/explore", id="percentile", **moved).json["parts"]

    base, delta, rule = parts(), parts(log_delta=-2), parts(percentile=20)
    assert base["fig-histogram"] == delta["fig-histogram"]
    for name in ("density", "bars", "percentiles", "narrowing", "contours"):
        assert base[f"fig-{name}"] != delta[f"fig-{name}"], name
        assert base[f"fig-{name}"] != rule[f"fig-{name}"], name
    for name in ("histogram", "roc", "roclog"):
        assert base[f"fig-{name}"] != rule[f"fig-{name}"], name
    # the words beside them come with them, and have a place on the page
    half = narrowing(explore.quick(declared, explore.Moved(percentile=20.0)).reading)
    assert half.half is not None
    assert f"{half.half} judged models" in rule["words-narrowing"]
    assert f" {half.n[-1]} now" in rule["words-narrowing"]
    assert "moved by hand" in rule["words-roc"]
    controls = client.get("/api/results", id="percentile").json["controls"]
    names = [name for name in base if name.startswith("words-")]
    assert len(names) == 7
    for name in names:
        assert f'id="{name}"' in controls
        assert base[name].startswith("<p>")


def test_what_came_too_late_is_not_computed(client):
    client.get("/api/explore", id="whole", turn=7, log_delta=-2)
    assert client.get("/api/explore", id="whole", turn=6, late=1, log_delta=-3).json == {"stale": True}
    assert not client.get("/api/explore", id="whole", turn=7, late=1, log_delta=-2).json["pending"]
    # another page of the same run has turns of its own
    other = client.get("/api/explore", id="whole", page="b", turn=1, late=1, log_delta=-2).json
    assert other["pending"] is False
    counts = {"tp": 3, "tn": 4, "fp": 1, "fn": 2}
    client.get("/api/calculator", page="c", turn=7, **counts)
    assert client.get("/api/calculator", page="c", turn=6, late=1, **counts).json == {"stale": True}
    assert client.get("/api/calculator", page="d", turn=1, late=1, **counts).json["pending"] is False


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("log_delta", "-99"),
        ("log_delta", "nan"),
        ("level", "1"),
        ("percentile", "x"),
        ("percentile", "1"),
        ("method", "<b>"),
    ],
)
def test_a_slider_out_of_reach_is_a_sentence(client, name, value):
    answer = client.get("/api/explore", id="percentile", **{name: value})
    assert answer.status == 400
    assert re.fullmatch(r"(Log_delta|Level|Percentile|Method) must be .*\.", answer.json["error"])


# several runs


def test_an_overlay_is_that_of_compare(client, runs):
    text = client.get("/overlay", id=["whole", 'deep/a"b<i>&c'], rule="best").text
    ours = eg.compare([eg.Run.open(runs / "whole"), eg.Run.open(runs / "deep" / 'a"b<i>&c')], rule="best")
    assert text.count("<svg") == 1
    assert HOSTILE not in text
    for run in ours.runs:
        assert f"{run.median:.3f}" in text


def test_an_overlay_is_a_look_of_each_session(tmp_path):
    play(small(), tmp_path / "a")
    play(small(), tmp_path / "b")
    with Served(tmp_path) as here:
        for _ in range(2):
            assert "<svg" in here.client.get("/overlay", id=["a", "b"]).text
        assert looks(tmp_path / "a") == ["compare"]
        other = Client(here.viewer.port)
        other.enter(here.viewer.address)
        for _ in range(2):
            assert "<svg" in other.get("/overlay", id=["a", "b"]).text
        assert looks(tmp_path / "a") == looks(tmp_path / "b") == ["compare", "view"]


def test_a_look_is_no_reason_to_judge_again(tmp_path):
    done, kept = play(small(), tmp_path / "a"), Audits()
    first = kept.of(done.path)
    assert done.log_look("view")
    assert kept.of(done.path) is first
    play(judged_plan(n_models=12, audit={"rule": "given", "threshold": 1.0}), done.path)
    assert kept.of(done.path) is not first


def test_a_look_that_cannot_be_logged_is_said_wherever_results_are(tmp_path, monkeypatch):
    for name in ("a", "b"):
        play(small(), tmp_path / name)
    monkeypatch.setattr("epsgauge.runner.view.log_look", lambda folder, look: False)
    with Served(tmp_path) as here:
        assert UNLOGGED in listed(here.client)["parts"]["rows"]
        assert UNLOGGED in here.client.get("/overlay", id=["a", "b"]).text
        assert UNLOGGED in here.client.get("/api/results", id="a").json["parts"]["verdict"]


def test_runs_that_cannot_be_overlaid_are_a_sentence(client):
    different = unescape(client.get("/overlay", id=["whole", "other"]).text)
    assert "must have one adjacency, but have substitute, add-remove" in different
    assert "needs two runs or more" in client.get("/overlay", id="whole").text
    assert "There is no run" in unescape(client.get("/overlay", id=["whole", "../x"]).text)
    assert "Delta must be a number" in unescape(client.get("/overlay", id=["whole", "other"], delta="x").text)
    assert "<svg" not in different


# the calculator


def test_the_calculator_is_the_library(client):
    counts = {"tp": 31, "tn": 996, "fp": 5, "fn": 968, "delta": "1e-5", "level": "0.9", "claimed": "2"}
    early, late = (client.get("/api/calculator", late=late, **counts).json for late in (0, 1))
    assert "[1.086, 2.655]" in early["parts"]["said"]
    assert "[0.600, 3.294]" in early["parts"]["said"]
    assert early["pending"]
    assert "[1.059, 3.294]" not in early["parts"]["said"]
    assert "[1.059, 3.294]" in late["parts"]["said"]
    post = eg.estimate(eg.Tally(tp=31, tn=996, fp=5, fn=968), delta=1e-5)
    assert f"{post.exceeds(2.0):.3g}" in late["parts"]["said"]
    assert {"fig-ruler", "fig-density", "fig-bars", "fig-contours"} <= set(late["parts"])


def test_the_address_fills_the_fields(client):
    text = client.get("/calculator", tp="7", tn='"><script>', fp="1", fn="2", delta="1e-6").text
    assert 'name="tp" inputmode="numeric" required value="7"' in text
    assert 'value="1e-6"' in text
    assert '"><script>' not in text


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"tp": "-1"}, "TP must be a whole number"),
        ({"tp": "1e3"}, "TP must be a whole number"),
        ({"tp": "9" * 40}, "TP must be a whole number"),
        ({"tp": "0" * 20 + "9" * 5000}, "TP must be a whole number"),
        ({"fn": ""}, "FN must be a whole number"),
        ({"delta": "1.5"}, "Delta must be in [0, 1)"),
        ({"level": "2"}, "Level must be in (0, 1)"),
        ({"claimed": "-1"}, "Claimed must be"),
        ({"delta": "x"}, "Delta must be a number"),
    ],
)
def test_a_wrong_count_is_a_sentence(client, changed, said):
    counts = {"tp": "3", "tn": "4", "fp": "1", "fn": "2", "delta": "1e-5", **changed}
    answer = client.get("/api/calculator", **counts)
    assert answer.status == 400
    assert answer.json["error"].startswith(said)


def test_a_count_may_begin_with_zeros():
    counts = {"tp": "0" * 30 + "12", "tn": "0", "fp": "000", "fn": "1000000000"}
    assert calculator.Question.parse(counts).tally == eg.Tally(tp=12, tn=0, fp=0, fn=10**9)


def test_counts_of_one_class_have_no_contour_but_an_answer(client):
    answer = client.get("/api/calculator", tp=5, tn=0, fp=0, fn=3, delta="1e-5").json
    assert "A contour needs at least one sample of each class" in answer["parts"]["fig-contours"]
    assert "<svg" in answer["parts"]["fig-density"]


def scores(n=16):
    rng = np.random.default_rng(0)
    return eg.Scores.from_in_out(
        rng.normal(1.5, 1, n), rng.normal(0, 1, n), adjacency="substitute", models="independent"
    )


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".parquet"])
def test_a_dropped_file_is_audited(client, tmp_path, suffix):
    scores().write(tmp_path / f"s{suffix}")
    raw = (tmp_path / f"s{suffix}").read_bytes()
    settings = {"delta": "1e-5", "level": "0.9", "claimed": "0.1"}
    answer = client.post("/api/scores", raw, name=f"<b>{suffix}", adjacency="", **settings).json
    ours = eg.audit(scores(), delta=1e-5, claimed_eps=0.1, claimed_delta=1e-5, claimed_adjacency="substitute")
    text = unescape(answer["parts"]["dropped"])
    assert ours.verdict.sentence in text
    assert f"<h2>&lt;b&gt;{suffix}" in answer["parts"]["dropped"]


def test_a_dropped_file_is_read_as_the_form_says(client):
    rng = np.random.default_rng(0)
    rows = [f"{b},{rng.normal(2.0 * b):.4f}" for b in rng.integers(0, 2, 240)]
    raw = "\n".join(["bit,score", *rows, ""]).encode()
    ask = partial(client.post, "/api/scores", raw, name="a.csv", adjacency="substitute")
    assert "does not say which rows share a model" in ask().json["error"]
    said = unescape(ask(models="one", bits="coins").json["parts"]["dropped"])
    assert "(Weighted, guaranteed, one-sided" in said
    assert "Bits coins: each is a fair coin of its own" in said
    assert "; all rows are taken as of one model." in said
    assert "it needs bits that are coins" not in said
    assert "it needs bits that are coins" in unescape(ask(models="one", bits="").json["parts"]["dropped"])
    form = client.get("/calculator").text
    for field in ("adjacency", "bits", "models"):
        assert f'<select id="{field}">' in form


def test_a_dropped_file_is_deleted(client, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    seen = []
    read = eg.Scores.read
    monkeypatch.setattr(upload.Scores, "read", lambda file, **kw: (seen.append(file), read(file, **kw))[1])
    client.post("/api/scores", b"bit,score\n1,2\n", name="a.csv", adjacency="substitute")
    assert len(seen) == 1
    assert seen[0].parent.parent == tmp_path
    assert list(tmp_path.iterdir()) == []


def archive(**arrays):
    out = io.BytesIO()
    np.savez_compressed(out, **arrays)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("a.csv", b"bit,score\n1,x\n", "score"),
        ("a.pkl", b"cos\nsystem\n", "A file of scores ends in .csv, .npz, .parquet"),
        ("a.npz", archive(bit=np.array([1, 0]), score=np.array([{}, 1], object)), "holds Python objects"),
        ("a.npz", archive(bit=np.zeros(9), score=np.zeros(9))[:200], "is damaged"),
        ("a.npz", archive(bit=np.zeros(30_000_000, np.int8), score=np.zeros(1)), "A dropped file may have 20 MB"),
        ("a.csv", b"bit,score\n1,2\n", "does not say its adjacency"),
        ("", b"", "A file of scores ends in"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_sentence(client, monkeypatch, name, raw, said):
    monkeypatch.setattr(upload, "MOST_INSIDE", 20 * 2**20)
    answer = client.post("/api/scores", raw, name=name)
    assert answer.status == 400
    assert said in answer.json["error"]
    assert "/tmp" not in answer.json["error"]
    assert "epsgauge-" not in answer.json["error"]


def header(shape):
    """An archive whose array says that it is larger than it is."""
    array = io.BytesIO()
    np.lib.format.write_array_header_1_0(array, {"descr": "<f8", "fortran_order": False, "shape": shape})
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as file:
        file.writestr("score.npy", array.getvalue())
        file.writestr("bit.npy", array.getvalue())
    return out.getvalue()


def rows_of_parquet(n):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    out = io.BytesIO()
    pq.write_table(pa.table({"bit": np.zeros(n, np.int8), "score": np.arange(n, dtype=np.float64)}), out)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "make", "rows", "inside"),
    [
        ("a.npz", lambda: archive(bit=np.zeros(2_000, np.int8), score=np.zeros(2_000, np.int8)), 1_999, 2**20),
        ("a.npz", lambda: header((1 << 50,)), 2_000, 2**20),
        ("a.npz", lambda: header((1 << 10, 1 << 10)), 2_000, 2**30),
        ("a.parquet", lambda: rows_of_parquet(2_000), 1_999, 2**20),
        ("a.parquet", lambda: rows_of_parquet(2_000), 2_000, 10_000),
        ("a.csv", lambda: b"bit,score\n" + b"1,2\n" * 2_000, 1_999, 2**20),
    ],
)
def test_a_small_file_with_much_in_it_is_refused_before_it_is_read(monkeypatch, name, make, rows, inside):
    monkeypatch.setattr(upload, "MOST_ROWS", rows)
    monkeypatch.setattr(upload, "MOST_INSIDE", inside)
    with pytest.raises(InvalidInput, match="A dropped file may have 20 MB and 2,000,000 rows"):
        upload.scores_of(make(), name, {"adjacency": "substitute"})


def test_a_file_within_the_limits_is_read(monkeypatch):
    monkeypatch.setattr(upload, "MOST_ROWS", 2_000)
    raw = archive(bit=np.arange(2_000) % 2, score=np.zeros(2_000))
    assert len(upload.scores_of(raw, "a.npz", {"adjacency": "substitute", "models": "one"})) == 2_000


def test_dropped_files_are_read_one_at_a_time(tmp_path, monkeypatch):
    show, inside, most = Show(Folder(tmp_path)), [], []

    def read(*args):
        inside.append(1)
        most.append(len(inside))
        started.set()
        go.wait(10)
        inside.pop()
        raise InvalidInput("enough")

    def drop():
        with pytest.raises(InvalidInput, match="enough"):
            show.scores(b"", "a.csv", {})

    started, go = threading.Event(), threading.Event()
    monkeypatch.setattr(upload, "scores_of", read)
    threads = [threading.Thread(target=drop) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert started.wait(10)
    assert show._reading.locked()
    go.set()
    for thread in threads:
        thread.join(10)
    assert most == [1, 1, 1]


def test_a_large_file_is_refused_before_it_is_read(client, monkeypatch):
    monkeypatch.setattr(upload, "MOST_BYTES", 1000)
    assert client.post("/api/scores", b"x" * 1001, name="a.csv").status == 400
    chunked = client.send(
        "POST", "/api/scores?name=a.csv", {"Sec-Fetch-Site": "same-origin"}, (b"x" * 500 for _ in range(3))
    )
    assert chunked.status == 400
    assert "may have" in chunked.json["error"]


# how it begins and ends


def test_a_folder_that_is_not_there_and_a_port_in_use_are_sentences(tmp_path):
    with pytest.raises(InvalidInput, match="there is no folder"):
        Viewer(tmp_path / "none")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(InvalidInput, match=f"port {port} is in use"):
            Viewer(tmp_path, port=port)


def test_without_the_extra_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingExtra, match=r"pip install '\.\[view\]'"):
        Viewer(tmp_path)


def break_off(client):
    """Send the head of an upload and a part of its file, and leave."""
    with socket.create_connection(("127.0.0.1", client.port), timeout=PATIENCE) as sender:
        head = f"POST /api/scores?name=a.csv HTTP/1.1\r\nHost: 127.0.0.1:{client.port}\r\nCookie: {client.cookie}\r\n"
        sender.sendall(f"{head}Sec-Fetch-Site: same-origin\r\nContent-Length: 1000\r\n\r\nbit,score\n1,".encode())


@pytest.mark.parametrize("broken_off", [False, True])
def test_ctrl_c_ends_it_quietly(tmp_path, broken_off):
    """Also after an upload whose sender left in the middle of it."""
    code = "import sys; from epsgauge.reporting.viewer.server import serve; serve(sys.argv[1], open_browser=False)"
    command = [sys.executable, "-u", "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8") as child:
        line = child.stdout.readline()
        address = line.split()[-1]
        client = Client(int(re.search(r":(\d+)/", address)[1]))
        assert client.enter(address).status == 303
        if broken_off:
            break_off(client)
        assert client.get("/").status == 200
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0
    assert err == ""
    assert address.partition("token=")[2] not in out


# colours


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


LETTERS = [
    *((ink, back) for ink in ("text", "quiet", "link") for back in ("page", "card")),
    *((ink, f"{ink}-back") for ink in ("bad", "good", "warn", "info", "hand")),
    *(("text", back) for back in ("plain-back",)),
    *((ink, "card") for ink in ("bad", "warn")),
    ("on-accent", "accent"),
]
MARKS = [(mark, back) for mark in ("focus", "edge", "accent") for back in ("page", "card")]


def colours():
    css = (STATIC / "viewer.css").read_text(encoding="utf-8")
    light, dark = (re.search(start + r"\s*:root\s*{(.*?)}", css, re.S)[1] for start in ("^", r"scheme: dark\)\s*{"))
    return [dict(re.findall(r"--([\w-]+):\s*(#[0-9a-f]{6})", part)) for part in (light, dark)]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast_is_that_of_wcag_aa(scheme):
    named = colours()[scheme]
    assert set(colours()[0]) == set(colours()[1])
    for pairs, least in ((LETTERS, 4.5), (MARKS, 3.0)):
        low = {pair: round(contrast(named[pair[0]], named[pair[1]]), 2) for pair in pairs}
        assert {pair: ratio for pair, ratio in low.items() if ratio < least} == {}


def test_every_colour_of_the_style_is_a_variable_that_was_checked():
    css = (STATIC / "viewer.css").read_text(encoding="utf-8")
    body = css[css.index("* {") :]
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b(?!:)", re.sub(r"#[a-z][\w-]*[\s{:>]", "", body))
    used = set(re.findall(r"(?<![-\w])color:\s*var\(--([\w-]+)\)", body))
    assert used <= {ink for ink, _ in LETTERS}


def test_a_run_that_goes_while_it_is_read_is_gone(tmp_path, monkeypatch):
    """Between the listing and the reading its files may be deleted, one by one."""
    played(plan(n_models=20), tmp_path / "a")
    folder = Folder(tmp_path)
    assert folder.ids() == ["a"]
    real = eg.Run.open

    def deleted_first(path):
        (path / "store.sqlite").unlink(missing_ok=True)
        return real(path)

    monkeypatch.setattr(eg.Run, "open", deleted_first)
    assert "moved or deleted" in folder.standing("a").trouble
    for read in (folder.open, folder.status):
        (tmp_path / "a" / "store.sqlite").touch()
        with pytest.raises(InvalidInput, match="there is no run 'a' here"):
            read("a")


# slow clients, strange names


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Long: "])
def test_a_client_that_says_nothing_is_dropped(tmp_path, monkeypatch, sent):
    monkeypatch.setattr(timely, "HEAD_WITHIN", 0.02)
    served = Served(tmp_path)
    try:
        with socket.create_connection(("127.0.0.1", served.viewer.port), timeout=PATIENCE) as slow:
            slow.sendall(sent)
            with contextlib.suppress(ConnectionResetError):
                assert slow.recv(1) == b""
    finally:
        served.viewer.stop()
        served.thread.join(PATIENCE)


def test_the_time_runs_until_the_head_is_there():
    """By the protocol alone, without waiting for anything."""

    async def speak():
        async def app(scope, receive, send):
            await receive()

        spoken = timely.Timely(uvicorn.Config(app, lifespan="off"), ServerState(), {})
        spoken.connection_made(mock.Mock(spec=asyncio.Transport, get_extra_info=lambda *_: None))
        first = spoken.late
        assert first is not None
        spoken.data_received(b"POST / HTTP/1.1\r\nHost: a\r\n")
        assert spoken.late is first  # a byte now and then gives no more time
        spoken.data_received(b"Content-Length: 5\r\n\r\nab")
        assert first.cancelled()
        assert spoken.late is None  # what is sent after the head may take its time
        spoken.data_received(b"cd")
        assert spoken.late is None
        spoken.cycle.response_complete = True  # but not what nobody waits for
        spoken.data_received(b"e")
        assert (last := spoken.late) is not None
        spoken.connection_lost(None)
        assert last.cancelled()

    asyncio.run(speak())


@pytest.mark.skipif(sys.platform != "linux", reason="names that are no UTF-8")
def test_names_of_folders_that_are_no_utf_8(tmp_path):
    root = tmp_path / os.fsdecode(b"caf\xe9")
    played(small(), root / os.fsdecode(b"r\xe9"))
    played(judged_plan("half"), root / os.fsdecode(b"b\xe9"))
    (root / os.fsdecode(b"b\xe9") / "store.sqlite").write_bytes(b"no database" * 100)
    with Served(root) as served:
        client = served.client
        ids = Folder(root).ids()
        assert len(ids) == 2
        pages = [client.get("/"), client.get("/api/list"), client.get("/overlay", id=ids)]
        for run_id in (*ids, os.fsdecode(b"none\xe9").encode("utf-8", "backslashreplace").decode()):
            pages += [client.get("/run", id=run_id)]
            pages += [client.get(f"/api/{what}", id=run_id) for what in ("verdict", "progress", "results")]
        pages += [client.get("/api/explore", id=ids[-1], delta="1e-5")]
        assert [page.status for page in pages if page.status >= 500] == []
        assert "caf\ufffd" in pages[0].text
        raw = b"bit,score\n1,2\n"
        assert client.post("/api/scores", raw, name="caf\ufffd\u202e.csv").status == 400
