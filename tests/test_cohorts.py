"""Cohorts: each group is judged by itself, at levels that hold together, and the groups are compared."""

import json

import numpy as np
import pytest
from command_line import ask, refused, told
from scipy import stats
from tiny_runs import Pairs, plan, played

import epsgauge as eg
from epsgauge.errors import InvalidInput
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
        assert cohort.audit.gauge.bound == pytest.approx(alone.gauge.bound)
        assert cohort.audit.judged.tally == alone.judged.tally
    assert (found.family.n, found.family.together) == (3, pytest.approx(0.97))
    assert "all hold together at 97 % or more, if this set of groups was fixed" in found.family.sentence
    old, other, _ = found.cohorts
    assert old.audit.gauge.bound > 1.5
    assert other.audit.gauge.bound < 0.2


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
        (eg.Scores.from_in_out([1.0, 2.0], [0.0, 0.1], adjacency="substitute"), "cohorts need scores with the column"),
        (table()[table().group == "old"], "cohorts need two groups or more, but all rows are of 'old'"),
        ([1, 2], "cohorts are those of Scores, but got list"),
    ],
)
def test_what_has_no_cohorts_is_refused(scores, words):
    with pytest.raises(InvalidInput, match=words):
        eg.cohorts(scores)


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
    assert "group other" not in done.stderr
    found = json.loads(ask(*words, "--json"))
    assert [cohort["name"] for cohort in found["cohorts"]] == ["old", "other", "young"]
    assert found["promise"] == "guaranteed"
    refused("a report shows one audit, but --cohorts makes several", *words, "--report", tmp_path / "r.html")


def test_a_declaration_of_all_scores_is_none_of_groups_found_later(tmp_path):
    """Groups could be cut so that one of them shows what the others do not."""
    table().write(tmp_path / "scores.csv")
    eg.declare(tmp_path / "d.json", adjacency="substitute", bits="coins")
    words = ("scores", tmp_path / "scores.csv", "--cohorts", "--declared", tmp_path / "d.json")
    refused("a declaration does not fix groups", *words)
    sentences = [cohort.audit.verdict.sentence for cohort in eg.cohorts(table()).cohorts]
    assert all("Not declared beforehand" in sentence for sentence in sentences)


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
