"""Cohorts: each group is judged by itself, at levels that hold together, and the groups are compared."""

import json
import re
from html import unescape

import numpy as np
import pytest
from command_line import ask, refused, told
from scipy import stats
from tiny_runs import Breaks, Pairs, plan, played

import epsgauge as eg
from epsgauge.auditing.cohorts import cohorts_of
from epsgauge.errors import InvalidInput
from epsgauge.figures.charts import CHARTS
from epsgauge.reporting.report import written
from epsgauge.scores.groups import read_groups

SHIFT = {"old": 3.0, "other": 0.0, "young": 1.0}


def table(n=900, seed=0, m=1):
    """The attack sees much of the old, less of the young and nothing of others."""
    rng = np.random.default_rng(seed)
    bits, group = rng.integers(0, 2, n), np.array(sorted(SHIFT))[rng.integers(0, 3, n)]
    score = rng.normal(bits * np.array([SHIFT[name] for name in group]), 1)
    return eg.Scores(np.arange(n) // m, np.arange(n) % m, bits, score, "substitute", group=group, bits="coins")


def test_each_group_is_judged_by_itself_at_a_divided_level():
    scores = table()
    found = eg.cohorts(scores, level=0.94, verdict_level=0.97)
    assert [cohort.name for cohort in found.cohorts] == ["old", "other", "young"]
    for cohort in found.cohorts:
        alone = eg.audit(scores[scores.group == cohort.name], level=0.98, verdict_level=0.99)
        assert cohort.audit.verdict.level == pytest.approx(0.99)
        assert cohort.audit.verdict.bound.value == pytest.approx(alone.verdict.bound.value)
        assert cohort.audit.judged.tally == alone.judged.tally
    assert (found.family.n, found.family.together) == (3, pytest.approx(0.97))
    assert "all hold together at 97 % or more, if this set of groups was fixed" in found.family.sentence
    old, other, _ = found.cohorts
    assert old.audit.verdict.bound.value > 1.5
    assert other.audit.verdict.bound.value < 0.2


def test_advantages_are_within_the_limits_of_two_rates_at_once():
    found = eg.cohorts(table(), level=0.94)
    assert (found.level, found.promise) == (pytest.approx(0.94), "guaranteed")
    for cohort in found.cohorts:
        tally, tail = cohort.audit.judged.tally, 0.06 / 3 / 2 / 2  # of three groups, two rates and two sides

        def limits(k, n, tail=tail):
            return stats.beta.ppf(tail, k, n - k + 1) if k else 0.0, stats.beta.isf(
                tail, k + 1, n - k
            ) if k < n else 1.0

        hit_low, hit_high = limits(tally.tp, tally.tp + tally.fn)
        alarm_low, alarm_high = limits(tally.fp, tally.fp + tally.tn)
        assert cohort.low == pytest.approx(hit_low - alarm_high)
        assert cohort.high == pytest.approx(hit_high - alarm_low)
        assert cohort.low < cohort.advantage < cohort.high
    old, other, _ = found.cohorts
    assert found.disparity == pytest.approx(old.low - other.high)
    assert found.sentence.startswith("Group old is attacked better than group other: TPR − FPR is larger by 0.")


def test_groups_that_do_not_differ_are_not_said_to():
    scores = table()
    same = eg.Scores(scores.model, scores.pair, scores.bit, scores.score, "substitute", group=scores.model % 3)
    found = eg.cohorts(same)
    assert found.disparity == 0.0
    assert found.sentence.startswith("No group is shown to be attacked better than another")


def test_of_several_rows_of_a_model_one_counts_for_its_advantage():
    found = eg.cohorts(table(m=6))
    assert found.promise == "guaranteed"
    for cohort in found.cohorts:
        counted, judged = (int(tally.n_samples) for tally in (cohort.audit.guaranteed_tally, cohort.audit.judged.tally))
        assert 0 < counted < judged
        assert cohort.high - cohort.low > 0.3


def test_a_rule_chosen_on_the_judged_rows_makes_advantages_an_estimate():
    assert eg.cohorts(table(), rule="same-data").promise == "estimate"


@pytest.mark.parametrize(
    ("scores", "words"),
    [
        (
            eg.Scores.from_in_out([1.0, 2.0], [0.0, 0.1], adjacency="substitute", models="independent"),
            "cohorts need scores with the column",
        ),
        (table()[table().group == "old"], "cohorts need two groups or more, but all rows are of 'old'"),
        ([1, 2], "cohorts are those of Scores, but got list"),
    ],
)
def test_what_has_no_cohorts_is_refused(scores, words):
    with pytest.raises(InvalidInput, match=words):
        eg.cohorts(scores)


@pytest.mark.parametrize("cut", ["bit", "other way", "right"])
def test_groups_cut_by_what_is_guessed_are_refused(cut):
    """Nothing leaks, but among the rows that were guessed rightly every attack is perfect."""
    rng = np.random.default_rng(4)
    bits, score = rng.integers(0, 2, 300), rng.normal(size=300)
    group = {"bit": bits, "other way": 1 - bits, "right": (score > 0.3) == bits}[cut].astype(int).astype(str)
    scores = eg.Scores(np.arange(300), np.zeros(300, int), bits, score, "substitute", group=group, bits="coins")
    words = "must not depend on guesses" if cut == "right" else "each group has rows of one bit only"
    with pytest.raises(InvalidInput, match=f"{words}.*Groups may depend on the points alone"):
        eg.cohorts(scores, direction="kept")


def test_what_groups_may_depend_on_is_said_with_the_level():
    assert "groups depend on the points alone, not on bits, scores or guesses" in eg.cohorts(table()).family.sentence


def test_a_group_that_cannot_be_judged_is_named():
    scores = table(40)
    few = eg.Scores(
        scores.model,
        scores.pair,
        scores.bit,
        scores.score,
        "substitute",
        group=np.where(scores.model < 1, "one", "rest"),
    )
    with pytest.raises(InvalidInput, match="group 'one': scores must have two models or more"):
        eg.cohorts(few)


def test_by_the_command_line(tmp_path):
    table().write(tmp_path / "scores.csv")
    words = ("scores", tmp_path / "scores.csv", "--cohorts")
    claim = ("--claimed-eps", 1, "--claimed-delta", 1e-5, "--claimed-adjacency", "substitute")
    out = ask(*words)
    assert [line.split()[0] for line in out.splitlines()[2:5]] == ["old", "other", "young"]
    assert "disparity  Group old is attacked better" in out
    done = told(*words, *claim, "--fail-on", "violation")
    assert done.returncode == 1
    assert "gate: group old: Violation" in done.stderr
    assert "gate: group other" not in done.stderr
    found = json.loads(ask(*words, "--json"))
    assert [cohort["name"] for cohort in found["cohorts"]] == ["old", "other", "young"]
    assert found["promise"] == "guaranteed"
    ask(*words, "--report", tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Are some groups attacked better than others?" in page
    assert found["sentence"] in unescape(page)


def test_a_declaration_of_all_scores_is_none_of_groups_found_later(tmp_path):
    """Groups could be cut so that one of them shows what the others do not."""
    table().write(tmp_path / "scores.csv")
    eg.declare(tmp_path / "d.json", adjacency="substitute", bits="coins")
    words = ("scores", tmp_path / "scores.csv", "--cohorts", "--declared", tmp_path / "d.json")
    refused("a declaration does not fix groups", *words)
    sentences = [cohort.audit.verdict.sentence for cohort in eg.cohorts(table()).cohorts]
    assert all("Not declared beforehand" in sentence for sentence in sentences)


# in a report


def test_a_report_shows_groups_beside_the_audit():
    scores, found = table(), eg.cohorts(table())
    audit = eg.audit(scores)
    page = written(audit, "html", cohorts=found)
    assert page.index('id="attack"') < page.index('id="cohorts"') < page.index('id="narrowing"')
    assert "Group by group" in page
    assert len(re.findall("<th>(?:old|other|young)</th>", page)) == 3
    assert "Are some groups" not in written(audit, "html")
    text = written(audit, "md", cohorts=found)
    assert "| group | N | ε at least |" in text
    assert found.family.sentence in text
    assert json.loads(written(audit, "json", cohorts=found))["cohorts"]["disparity"] == found.disparity


def test_the_picture_of_groups_says_what_the_bars_promise():
    sure, guess = eg.cohorts(table()), eg.cohorts(table(), rule="same-data")
    drawn = [CHARTS["groups"].drawn(found) for found in (sure, guess)]
    assert "All bars contain their true values together in at least 90 %" in drawn[0].words.shows
    assert "The bars are estimates" in drawn[1].words.shows
    assert drawn[0].shown.groups[0].low == sure.cohorts[0].low
    assert drawn[0].svgs[0].count("<circle") == 3


def test_groups_that_are_not_of_what_is_reported_are_refused():
    found, scores = eg.cohorts(table()), table()
    other = eg.Scores(scores.model, scores.pair, scores.bit, scores.score, "add-remove", bits="coins")
    with pytest.raises(InvalidInput, match="whose adjacency is add-remove, but theirs is substitute"):
        written(eg.audit(other), "md", cohorts=found)
    with pytest.raises(InvalidInput, match="cohorts go with the report of an audit"):
        written(eg.estimate(eg.Tally(tp=3, tn=3, fp=1, fn=1), delta=1e-5), "md", cohorts=found)
    with pytest.raises(InvalidInput, match="groups of points are those of a run, but this audit is of scores"):
        cohorts_of(eg.audit(scores), {0: "a"})


def test_a_report_of_a_run_with_groups_of_its_points(tmp_path):
    own = {"pairs_per_model": 4, "challenge": "average", "canaries": None, "train_size": 20}
    kw = {"data": {"use": "zeros", "size": 200}, "audit": {"attack": "percentile"}, **own}
    done = played(plan(Pairs(2.0), **kw), tmp_path / "run")
    groups = tmp_path / "groups.csv"
    groups.write_text("point,group\n" + "".join(f"{i},{'odd' if i % 2 else 'even'}\n" for i in range(200)))
    ask("report", done.path, "-o", tmp_path / "r.json", "--groups", groups)
    found = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
    assert [cohort["name"] for cohort in found["cohorts"]["cohorts"]] == ["even", "odd"]
    levels = {cohort["audit"]["verdict"]["level"] for cohort in found["cohorts"]["cohorts"]}
    assert levels == {1 - (1 - found["verdict"]["level"]) / 2}
    broken = played(plan(Breaks(1.0), n_models=30), tmp_path / "broken")
    with pytest.raises(InvalidInput, match="has 26 done and 4 failed"):
        cohorts_of(eg.audit(broken), {})


# groups of a run's points


def test_a_run_is_exported_with_the_groups_of_its_points(tmp_path):
    own = {"pairs_per_model": 4, "challenge": "average", "canaries": None, "train_size": 20}
    done = played(
        plan(Pairs(2.0), data={"use": "zeros", "size": 200}, audit={"attack": "percentile"}, **own), tmp_path / "run"
    )
    (tmp_path / "groups.csv").write_text(
        "point,group\n" + "".join(f"{i},{'odd' if i % 2 else 'even'}\n" for i in range(200))
    )
    ask("export", done.path, "-o", tmp_path / "s.csv", "--groups", tmp_path / "groups.csv")
    scores, signals = eg.Scores.read(tmp_path / "s.csv"), done.signals()
    ones = dict(zip(signals.models.tolist(), signals.pairs[..., 1].tolist(), strict=True))
    expected = [
        "odd" if ones[model][pair] % 2 else "even" for model, pair in zip(scores.model, scores.pair, strict=True)
    ]
    assert scores.group.tolist() == expected
    assert {cohort.name for cohort in eg.cohorts(scores).cohorts} == {"odd", "even"}
    (tmp_path / "groups.csv").write_text("point,group\n0,a\n")
    looks = len(eg.Run.open(done.path).looks)
    refused(
        "every z1 must have a group, but point",
        "export",
        done.path,
        "-o",
        tmp_path / "s.csv",
        "--groups",
        tmp_path / "groups.csv",
    )
    assert len(eg.Run.open(done.path).looks) == looks


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("index,group\n1,a\n", "must have the columns point and group, but has no point"),
        ("point,group\n", "has a header and no rows"),
        ("point,group\nx,a\n", "line 2: a row must have the index of a point and the name of its group, but got 'x'"),
        ("point,group\n1,\n", "line 2: a row must have the index"),
        ("point,group\n1\n", "line 2: a row must have the index"),
        ("point,group\n1,a\n1,b\n", "line 3: point 1 is in two groups"),
        ("", "must have the columns point and group"),
    ],
)
def test_a_bad_file_of_groups_is_one_sentence(tmp_path, text, words):
    (tmp_path / "g.csv").write_text(text)
    with pytest.raises(InvalidInput, match=words):
        read_groups(tmp_path / "g.csv")
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        read_groups(tmp_path / "none.csv")
