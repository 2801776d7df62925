"""The viewer's list: what is kept between two starts, what is computed anew, and what an address asks for."""

import json
import os
import re
import shutil
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from served import Served, listed, looks
from tiny_runs import plan, played, stopped

import epsgauge as eg
from epsgauge.auditing.audit import audit_run
from epsgauge.reporting.viewer import audits, cache
from epsgauge.reporting.viewer.apart import Apart
from epsgauge.reporting.viewer.audits import Audits, judged
from epsgauge.reporting.viewer.board import Board
from epsgauge.reporting.viewer.cache import Cache, Facts, Known, KnownBound
from epsgauge.reporting.viewer.listing import COLUMNS, RULINGS, Row, Wanted
from epsgauge.reporting.viewer.runs import Folder
from epsgauge.reporting.viewer.seen import Seen
from epsgauge.reporting.viewer.standing import Standing, content_of
from epsgauge.reporting.viewer.verdicts import Verdicts

MANY = 200


def small(seed=0, n_models=12, **more):
    quick = {"verdict_method": "clopper-pearson", "rule": "given", "threshold": 0.0}
    return plan(n_models=n_models, seed=seed, audit=quick, name=f"run {seed}").changed(**more)


class Started:
    """A viewer that has just begun, with this folder for its cache; it counts audits."""

    def __init__(self, root, kept):
        self.audited = []
        self.folder = Folder(root, Cache(kept))
        self.seen = Seen()
        self.verdicts = Verdicts(self.folder, Audits(self._judged))
        self.board = Board(self.folder, self.seen, self.verdicts)

    def _judged(self, key, path):
        self.audited.append(path.name)
        return judged(key, path)

    def rows(self, session="s", **wanted):
        """Once nothing is pending."""
        while True:
            found = self.board.listed(session, Wanted(**wanted))
            if not found.n_pending:
                return {row.id: row for row in found.rows}
            self.verdicts.wait(1.0)


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    root = tmp_path_factory.mktemp("three")
    for seed in range(3):
        played(small(seed, tags=["even"] if seed % 2 == 0 else []), root / str(seed))
    return root


def test_a_second_start_shows_200_runs_without_an_audit(tmp_path):
    first, root = tmp_path / "first" / "0", tmp_path / "runs"
    played(small(), first)
    for number in range(MANY):  # one content, many runs: each has a log of looks of its own
        shutil.copytree(first, root / str(number))
    begun = Started(tmp_path / "first", tmp_path / "kept")
    (row,) = begun.rows().values()
    assert begun.audited == ["0"]
    assert row.verdict == Known.of(audit_run(eg.Run.open(first)))
    again = Started(root, tmp_path / "kept")
    rows = again.rows()
    assert len(rows) == MANY
    assert {each.verdict for each in rows.values()} == {row.verdict}
    assert again.audited == []
    assert looks(first) == looks(root / "7") == ["view"]  # a kept verdict is a look like any


def test_a_kept_verdict_is_a_look_of_each_session(three, tmp_path):
    Started(three, tmp_path / "kept").rows()
    again, before = Started(three, tmp_path / "kept"), len(looks(three / "0"))
    for session in ("a", "a", "b"):
        again.rows(session)
    assert (again.audited, len(looks(three / "0"))) == ([], before + 2)


def test_a_run_that_changed_is_judged_anew(tmp_path):
    root, kept = tmp_path / "runs", tmp_path / "kept"
    for seed in (1, 2):
        played(small(seed), root / str(seed))
    before = Started(root, kept).rows()
    played(small(1, n_models=13), root / "1")  # it gained a model
    grown = Started(root, kept)
    after = grown.rows()
    assert grown.audited == ["1"]
    assert (before["1"].verdict.n_judged, after["1"].verdict.n_judged) == (12, 13)
    assert before["2"].verdict == after["2"].verdict
    played(small(2).with_audit(threshold=1.0), root / "2")  # it is judged by other settings
    changed = Started(root, kept)
    changed.rows()
    assert changed.audited == ["2"]
    while_open = changed.rows()["1"].verdict
    played(small(1, n_models=14), root / "1")  # and one that goes on under the eyes of a viewer
    for _ in range(100):
        now = changed.rows()["1"]
        if now.standing.n_done == 14:
            break
        changed.verdicts.wait(1.0)
    assert (while_open.n_judged, now.verdict.n_judged) == (13, 14)


def test_a_look_changes_no_content_and_all_else_does(tmp_path):
    done = played(small(), tmp_path / "a")
    content, n_looks = content_of(done.path)
    done.log_look("view")
    assert content_of(done.path) == (content, n_looks + 1)
    contents = {content}
    for changed in (small(n_models=13), small(n_models=13).with_audit(threshold=1.0)):
        played(changed, done.path)
        contents.add(content_of(done.path)[0])
    assert len(contents) == 3


def entries(kept):
    return sorted(kept.iterdir())


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(b""),
        lambda file: file.write_bytes(os.urandom(500)),
        lambda file: file.write_bytes(file.read_bytes()[:-20]),
        lambda file: file.write_text("[" * 30_000),
        lambda file: file.write_text(file.read_text(encoding="utf-8") + " " * cache.MOST_BYTES),
        lambda file: file.write_text(
            json.dumps({**json.loads(file.read_text(encoding="utf-8")), "made_by": "1 0.0.0 another"})
        ),
        lambda file: file.write_text(
            json.dumps({**json.loads(file.read_text(encoding="utf-8")), "content": "of another run"})
        ),
        lambda file: file.write_text(file.read_text(encoding="utf-8").replace('"value":', '"value":-1')),
        lambda file: file.write_text(
            re.sub(r'"kind":"[^"]*"', '"kind":"<b>fine</b>"', file.read_text(encoding="utf-8"))
        ),
        lambda file: (file.rename(file.parent / "elsewhere"), file.symlink_to(file.parent / "elsewhere")),
        lambda file: (file.unlink(), file.mkdir()),
        lambda file: (file.unlink(), os.mkfifo(file)),
    ],
)
def test_a_damaged_or_foreign_file_is_as_good_as_none(three, tmp_path, damage):
    kept = tmp_path / "kept"
    before = Started(three, kept).rows()
    damage(max(entries(kept), key=lambda file: '"name":"run 1"' in file.read_text(encoding="utf-8")))
    again = Started(three, kept)
    assert {name: row.verdict for name, row in again.rows().items()} == {n: row.verdict for n, row in before.items()}
    assert again.audited == ["1"]


def test_the_cache_is_bounded_private_and_never_in_a_run(three, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "MOST_FILES", 2)
    kept, facts = (
        Cache(tmp_path / "kept"),
        Facts(name="a", n_models=1, n_done=1, n_failed=0, over=True, as_planned=True),
    )
    for number in range(120):
        kept.keep(f"content {number}", facts)
    assert len(entries(tmp_path / "kept")) <= 2 + 50
    assert (tmp_path / "kept").stat().st_mode & 0o777 == 0o700
    assert kept.facts("content 119") == facts
    inside = three / "0" / "cache"
    Cache(inside).keep("content", facts)
    assert not inside.exists()
    blocked = tmp_path / "file"
    blocked.write_text("no folder")
    Cache(blocked / "kept").keep("content", facts)  # what cannot be kept is no error
    assert Cache(blocked / "kept").facts("content") is None


def test_another_version_keeps_its_own(three, tmp_path, monkeypatch):
    Started(three, tmp_path / "kept").rows()
    monkeypatch.setattr(cache, "_maker", lambda: "another")
    again = Started(three, tmp_path / "kept")
    again.rows()
    assert sorted(again.audited) == ["0", "1", "2"]


def test_a_bound_that_is_infinite_comes_back(tmp_path, three):
    kept, verdict = Cache(tmp_path / "kept"), Known.of(audit_run(eg.Run.open(three / "0")))
    facts = Facts(name="a\N{BLACK STAR}", n_models=1, n_done=1, n_failed=0, over=True, as_planned=True)
    endless = verdict.model_copy(update={"bound": float("inf"), "claimed": None})
    kept.keep("a", facts, endless)
    assert (kept.verdict("a"), kept.facts("a")) == (endless, facts)


def test_results_of_an_unfinished_run_are_never_judged_for_the_list(tmp_path):
    stopped(small(n_models=30), tmp_path / "runs" / "half", 20)
    here = Started(tmp_path / "runs", tmp_path / "kept")
    assert here.rows()["half"].verdict is None
    assert (here.audited, looks(tmp_path / "runs" / "half")) == ([], [])


def test_what_is_filtered_out_is_no_look(three, tmp_path):
    here, before = Started(three, tmp_path / "kept"), {name: len(looks(three / name)) for name in "012"}
    here.rows()  # now all are read
    shown = here.rows(session="b", tags=("even",))
    assert sorted(shown) == ["0", "2"]
    assert [len(looks(three / name)) - before[name] for name in "012"] == [2, 1, 2]


def test_an_audit_by_another_process_is_the_same(three, tmp_path):
    path, apart = three / "0", Apart(1)
    ours, theirs = judged(("k",), path), apart(("k",), path)
    assert theirs.audit.to_json() == ours.audit.to_json()
    assert theirs.audit.judge is ours.audit.judge
    with pytest.raises(eg.InvalidInput, match="there is no run"):
        apart(("k",), tmp_path / "none")
    connection = apart._idle.get()
    connection.close()
    apart._idle.put(connection)
    with pytest.raises(eg.InvalidInput, match="ended before it was done"):
        apart(("k",), path)
    assert apart._idle.get() is None  # the next one begins a new process


def test_one_audit_does_not_wait_for_another(three, monkeypatch):
    """While one run is judged, another one is: the first waits for the second here."""
    order = []

    def nested(key, path):
        if path.name == "0":
            kept.of(three / "1")
        order.append(path.name)
        return judged(key, path)

    kept = Audits(nested)
    kept.of(three / "0")
    assert order == ["1", "0"]


# what an address asks for


def row(name, **more):
    """A run with these values, as a list has it."""
    verdict = more.pop("verdict", None)
    if verdict is not None:
        kind, value = verdict
        bound = KnownBound(value=value, promise="guaranteed", short_scope="any training", sentence="")
        rest = {"claimed": more.get("claimed"), "claimed_text": "", "adjacency": "", "sentence": "", "n_judged": 1}
        verdict = Known(kind=kind, bounds=(bound,), **rest)
    numbers = {"n_models": 1, "n_done": 1, "n_failed": 0, "over": True, "as_planned": True}
    return Row(name, Standing(name, Facts(name=name, **{**numbers, **more}), False, 0, ""), verdict)


ROWS = [
    row("b", begun="2026-03-01T10:00:00", attack="lira", n_models=5, verdict=("violation", 3.0), claimed=1.0),
    row("A", begun="2026-01-01T10:00:00", attack="percentile", n_models=7, verdict=("no objection", 0.5), claimed=9.0),
    row("c", tags=("x", "y"), n_models=6),
    row("d", begun="2026-02-01T10:00:00", tags=("x",), n_models=5, verdict=("violation", float("inf")), claimed=2.0),
]


def names(rows, **wanted):
    asked = Wanted(**wanted)
    return "".join(each.id for each in asked.shown([r for r in rows if asked.may_show(r)]))


@pytest.mark.parametrize(
    ("sort", "up", "down"),
    [
        ("name", "Abcd", "dcbA"),
        ("date", "Adbc", "bdAc"),
        ("models", "bdcA", "Acbd"),
        ("attack", "bAcd", "Abcd"),
        ("verdict", "bdAc", "Abdc"),
        ("bound", "Abdc", "dbAc"),
        ("claim", "bdAc", "Adbc"),
        ("state", "Abcd", "Abcd"),
    ],
)
def test_every_column_sorts_both_ways_and_gaps_come_last(sort, up, down):
    assert (names(ROWS, sort=sort), names(ROWS, sort=sort, down=True)) == (up, down)
    assert set(COLUMNS) == {"name", "date", "models", "attack", "verdict", "bound", "claim", "state"}


def test_filters():
    assert names(ROWS, text="LIRA") == "b"
    assert names(ROWS, text="y c") == "c"
    assert names(ROWS, verdict="violation") == "bd"
    assert names(ROWS, tags=("x",)) == "cd"
    assert names(ROWS, tags=("x", "y")) == "c"
    assert names(ROWS, tags=("z",)) == ""
    assert names([*ROWS, Row("unread", None)], text="unread") == "unread"


def test_an_address_carries_all_of_it_and_what_it_does_not_know_is_left_out():
    wanted = Wanted("a b", "violation by an estimate", ("x&y", "z"), "bound", True)
    query = {"q": "a b", "verdict": "violation by an estimate", "sort": "bound", "down": "1"}
    assert Wanted.parse(query, ["x&y", "z"]) == wanted
    assert wanted.address == "/?q=a+b&verdict=violation+by+an+estimate&tag=x%26y&tag=z&sort=bound&down=1"
    assert Wanted.parse({"sort": "<b>", "verdict": "fine", "down": "x"}) == Wanted()
    assert Wanted().address == "/"
    assert wanted.sorted_by("bound") == replace(wanted, down=False)
    assert wanted.sorted_by("name") == replace(wanted, sort="name", down=False)
    assert Wanted().sorted_by("claim").down
    assert wanted.toggled("z").tags == ("x&y",)
    assert wanted.toggled("n").tags == ("x&y", "z", "n")


def test_the_page_itself_has_rows_filters_and_links_for_who_has_no_script(three):
    with Served(three) as here:
        listed(here.client)
        page = here.client.get("/", tag="even", sort="date", down=1, verdict="").text
        ids = re.findall(r'<tr data-id="([^"]*)">', page)
        assert sorted(ids) == ["0", "2"]
        assert 'aria-sort="descending"' in page
        assert '<a href="/?tag=even&amp;sort=date" data-list>' in page  # another click turns it round
        assert '<input type="hidden" name="tag" value="even">' in page
        assert [kind in page for kind in RULINGS] == [True] * len(RULINGS)
        assert "2 of 3 runs" in page
        empty = here.client.get("/", q="</script><b>").text
        assert 'value="&lt;/script&gt;&lt;b&gt;"' in empty
        assert "0 of 3 runs" in empty
        assert re.search(r"\d{4}-\d\d-\d\d", page)
        assert unescape(page).count("data-list") > 8


def test_tags_are_part_of_a_plan_and_of_no_fingerprint(tmp_path):
    done = played(small(tags=["a", "b", "a"]), tmp_path / "a")
    assert done.plan.tags == ("a", "b")
    assert "tags" not in small().tables()
    assert played(small(tags=["c"]), tmp_path / "a").plan.tags == ("c",)  # it is the same run
    for wrong in ("x", [1], [""], ["a" * 41], ["a"] * 21, None):
        with pytest.raises(eg.InvalidInput, match="tags: they must be a list of up to 20 texts of 1 to 40"):
            small(tags=wrong)


def test_the_users_cache_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    played(small(), tmp_path / "runs" / "a")
    with Served(tmp_path / "runs") as here:
        listed(here.client)
    (file,) = (tmp_path / "cache" / "epsgauge" / "runs").iterdir()
    assert json.loads(file.read_text(encoding="utf-8"))["verdict"]["kind"] in RULINGS
    monkeypatch.setattr(audits, "audit_run", None)  # nobody asks for it
    with Served(tmp_path / "runs") as here:
        assert "chip" in listed(here.client)["parts"]["rows"]
    assert looks(Path(tmp_path, "runs", "a")) == ["view", "view"]
