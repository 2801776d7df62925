"""Scores as other tools write them: names of columns, labels, and which way scores point."""

import json

import numpy as np
import pytest
from command_line import ask, refused
from scipy.stats import binom

import epsgauge as eg
from epsgauge.auditing.direction import points_down
from epsgauge.errors import InvalidInput
from epsgauge.methods.table import SHARPEST
from epsgauge.stats.counts import Counts

CLAIM = {"claimed_eps": 0.5, "claimed_delta": 1e-5, "claimed_adjacency": "substitute"}
RNG = np.random.default_rng(1)
BITS = RNG.integers(0, 2, 400)
SCORES = RNG.normal(1.5 * BITS, 1.0)


def table(score=SCORES, **said):
    return eg.Scores(np.arange(len(BITS)), np.zeros(len(BITS)), BITS, score, "substitute", **said)


def csv(path, labels=("0", "1"), header="bit,score", score=SCORES):
    rows = [f"{labels[bit]},{value!r}" for bit, value in zip(BITS.tolist(), score.tolist(), strict=True)]
    path.write_text("\n".join([header, *rows, ""]))
    return path


READ = {"adjacency": "substitute", "models": "independent"}


@pytest.mark.parametrize(
    "labels",
    [
        ("out", "in"),
        ("False", "True"),
        ("non-member", "member"),
        ("NonMember", "Member"),
        ("no", "yes"),
        ("0.0", "1.0"),
    ],
)
def test_labels_of_other_tools_are_bits(tmp_path, labels):
    assert eg.Scores.read(csv(tmp_path / "s.csv", labels), **READ).bit.tolist() == BITS.tolist()
    np.savez(tmp_path / "s.npz", bit=np.array(labels)[BITS], score=SCORES)
    if not labels[0].startswith("0"):
        assert eg.Scores.read(tmp_path / "s.npz", **READ).bit.tolist() == BITS.tolist()
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    if not labels[0].startswith("0"):
        pq.write_table(pa.table({"bit": np.array(labels)[BITS], "score": SCORES}), tmp_path / "s.parquet")
        assert eg.Scores.read(tmp_path / "s.parquet", **READ).bit.tolist() == BITS.tolist()


def test_an_unknown_label_is_one_sentence(tmp_path):
    with pytest.raises(InvalidInput, match=r"line 2: bit must be 0 or 1 \(or in/out, .*\), but got '(cat|dog)'"):
        eg.Scores.read(csv(tmp_path / "s.csv", ("cat", "dog")), **READ)
    np.savez(tmp_path / "s.npz", bit=np.array(["cat", "dog"])[BITS], score=SCORES)
    with pytest.raises(InvalidInput, match=r"bit must be 0 or 1 .* but row 0 \(the first is 0\) has '(cat|dog)'"):
        eg.Scores.read(tmp_path / "s.npz", **READ)


def test_columns_of_other_names(tmp_path):
    names = {"bit_column": "label", "score_column": "mia"}
    named = eg.Scores.read(csv(tmp_path / "s.csv", header="label,mia"), **READ, **names)
    assert named.score.tolist() == SCORES.tolist()
    np.savez(tmp_path / "s.npz", label=BITS, mia=SCORES, bit=1 - BITS, score=-SCORES)  # ours are not asked for
    again = eg.Scores.read(tmp_path / "s.npz", **READ, **names)
    assert (again.bit.tolist(), again.score.tolist()) == (BITS.tolist(), SCORES.tolist())
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"label": BITS, "mia": SCORES, "score": -SCORES}), tmp_path / "s.parquet")
    assert eg.Scores.read(tmp_path / "s.parquet", **READ, **names).score.tolist() == SCORES.tolist()
    assert "must have a column bit, but has: label, mia. Name yours with --bit-column" in refused(
        "scores", tmp_path / "s.csv", "--adjacency", "substitute"
    )
    assert "must have a column lable, but has: label, mia. Did you mean" in refused(
        "scores", tmp_path / "s.csv", "--adjacency", "substitute", "--bit-column", "lable"
    )
    with pytest.raises(InvalidInput, match="must be two columns"):
        eg.Scores.read(tmp_path / "s.csv", **READ, bit_column="label", score_column="label")


def test_a_file_without_models_is_told_what_to_pass(tmp_path):
    said = refused("scores", csv(tmp_path / "s.csv"), "--adjacency", "substitute")
    assert "--one-model" in said
    assert "--fit-pairs" in said
    assert "--independent" in said
    one = json.loads(ask("scores", tmp_path / "s.csv", "--adjacency", "substitute", "--one-model", "--json"))
    assert one["rule"]["chosen"] == "split-pairs"  # one model has no other to pick its threshold


def test_reversed_scores_are_an_error_with_remedies(tmp_path):
    with pytest.raises(InvalidInput, match=r"lower score in 8\d % of cases\. If a lower score .* pass --lower-is-in"):
        eg.audit(table(-SCORES), **CLAIM)
    with pytest.raises(InvalidInput, match=r"must be lower where b = 1.* leave out --lower-is-in"):
        eg.audit(eg.Scores.read(csv(tmp_path / "s.csv"), lower_is_in=True, **READ), **CLAIM)
    with pytest.raises(InvalidInput, match="point the other way"):
        eg.cohorts(table(-SCORES, group=np.where(np.arange(len(BITS)) % 2, "a", "b")))
    lost = csv(tmp_path / "loss.csv", score=-SCORES)
    right, turned = eg.audit(table(), **CLAIM), eg.audit(eg.Scores.read(lost, lower_is_in=True, **READ), **CLAIM)
    assert turned.verdict.bound.value == right.verdict.bound.value
    assert "a lower score means" in turned.said_of_scores[-1]


def test_scores_that_tell_nothing_are_no_error():
    for seed in range(20):
        noise = np.random.default_rng(seed).normal(size=len(BITS))
        assert not points_down(table(noise))[0]
    few = eg.Scores(range(6), [0] * 6, [1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], "substitute")
    assert not points_down(few)[0]  # six rows may do so by chance


def test_both_ways_are_paid_for():
    either = eg.audit(table(-SCORES), direction="either", **CLAIM)
    paid = eg.audit(table(), verdict_level=0.995, level=0.95, **CLAIM)
    assert (either.verdict.level, either.settings.level) == (pytest.approx(0.995), pytest.approx(0.95))
    assert either.verdict.bound.value == paid.verdict.bound.value < eg.audit(table(), **CLAIM).verdict.bound.value
    assert eg.audit(table(), direction="either", **CLAIM).verdict.bound.value == paid.verdict.bound.value
    assert "each of the two directions has half of 1 − level" in either.verdict.sentence
    assert either.to_json()["scores"]["direction"] == "either"


def test_the_level_of_both_ways_holds_where_nothing_leaks():
    """All outcomes of an attack that guesses: who turns scores as they point, and does not pay, misses too often."""
    n, level = 10, 0.8
    k = np.arange(n + 1)
    wrong = np.stack([each.ravel() for each in np.meshgrid(k, k, indexing="ij")])
    mass = np.outer(binom.pmf(k, n, 0.5), binom.pmf(k, n, 0.5)).ravel()
    fn, fp = (each.astype(float) for each in wrong)
    counts = Counts(tp=n - fn, tn=n - fp, fp=fp, fn=fn), Counts(tp=fn, tn=fp, fp=n - fp, fn=n - fn)
    points_up = fn + fp <= n

    def missed(at):
        up, down = (SHARPEST.lower_bounds(each, delta=0.0, level=at) > 0 for each in counts)
        return mass @ np.where(points_up, up, down)

    assert missed(1 - (1 - level) / 2) <= 1 - level < missed(level)


def test_as_they_are():
    kept = eg.audit(table(-SCORES), direction="kept", **CLAIM)
    assert kept.verdict.kind in ("cannot decide", "no objection")
    with pytest.raises(InvalidInput, match='direction must be "kept" or "either"'):
        eg.audit(table(), direction="lower")


def test_a_direction_can_be_declared(tmp_path):
    lost = csv(tmp_path / "loss.csv", score=-SCORES)
    said = ("--adjacency", "substitute", "--independent")
    ask("declare", tmp_path / "d.json", *said, "--lower-is-in")
    found = json.loads(ask("scores", lost, "--declared", tmp_path / "d.json", "--json"))
    assert found["scores"]["lower_is_in"] is True
    ask("declare", tmp_path / "e.json", *said, "--either-way")
    assert json.loads(ask("scores", lost, "--declared", tmp_path / "e.json", "--json"))["verdict"]["level"] == 0.995
    ask("declare", tmp_path / "f.json", *said)
    words = refused("scores", lost, "--declared", tmp_path / "f.json", "--lower-is-in")
    assert "direction is 'lower' here, but 'higher' in" in words
    assert "direction is 'either' here" in refused("scores", lost, "--declared", tmp_path / "f.json", "--either-way")
