"""What is said of a table of scores: where its bits come from, and which rows share a model."""

import json
import re
from functools import partial

import numpy as np
import pytest
from command_line import ask, refused
from scipy import stats
from tiny_runs import pairs_plan, played, responses

import epsgauge as eg
from epsgauge.auditing import audit as module
from epsgauge.methods.coins import UNFAIR, repeated, too_even, too_uneven, unfair
from epsgauge.methods.evidence import Evidence
from epsgauge.methods.facts import Facts, left
from epsgauge.methods.table import default_method
from epsgauge.reporting.report import written
from epsgauge.scores.table import Scores
from epsgauge.settings import AuditSettings

GIVEN = {"rule": "given", "threshold": 0.0}
CLAIM = {"claimed_delta": 1e-5, "claimed_adjacency": "substitute"}
SAY_SO = 'nothing says that these are (if they are, say so: --bits coins, or bits="coins")'


def table(bit, score, m=1, **said):
    rows = np.arange(len(bit))
    return Scores(rows // m, rows % m, bit, score, "substitute", **said)


def promises(scores, **settings):
    return {row.method: row.promise for row in eg.audit(scores, **{**GIVEN, **settings}).rows}


# Where bits come from


def test_bits_that_are_no_coins_refute_nothing_more_often_than_the_level_says():
    """200 pairs of one model, Pr[b = 1] = 0.62 and scores that know nothing of it: nothing leaks."""
    rng, ruled = np.random.default_rng(0), []
    asked = AuditSettings(**GIVEN).asked(200, coins=False)
    for _ in range(300):
        scores = table(rng.random(200) < 0.62, rng.normal(1.0, 1.0, 200), 200)
        evidence, judge = Evidence.of_scores(scores, 0.0), default_method(asked)
        form = judge.form(evidence, by_mu=False)
        kept = left(judge, Facts(200, bits=scores.bits), evidence, form=form)
        ruled.append((form.lower_bound(evidence, delta=1e-5, level=0.99) > 0, kept.promise))
    assert ruled.count((True, "guaranteed")) <= 0.01 * len(ruled)
    assert ruled.count((True, "estimate")) > 0.05 * len(ruled)  # which were called guaranteed
    whole = eg.audit(scores, claimed_eps=0.0, **GIVEN, **CLAIM)
    assert (whole.verdict.promise, whole.verdict.bound.value > 0) == (kept.promise, ruled[-1][0])


def test_bits_that_were_dealt_within_one_model_are_estimates():
    rng = np.random.default_rng(0)
    bits = rng.permutation(np.arange(1000) % 2)
    score = rng.normal(2.0 * bits, 1.0)
    for said in ("dealt", "unknown"):
        a = eg.audit(table(bits, score, 1000, bits=said), rule="split-pairs", claimed_eps=0.1, **CLAIM)
        assert (a.verdict.method, a.verdict.kind) == ("pooled", "violation by an estimate")
        assert (SAY_SO in a.verdict.sentence) == (SAY_SO in a["pooled"].note) == (said == "unknown")
        assert "The bound promises nothing here: it needs bits that are coins" in a.verdict.sentence
    a = eg.audit(table(bits, score, 1000, bits="coins"), rule="split-pairs", claimed_eps=0.1, **CLAIM)
    assert a.verdict.kind == "violation"  # whoever says so vouches for it


def test_one_pair_of_each_model_shows_too_much_where_bits_were_dealt():
    """Two bits of each model, one of them 1. The mechanism answers 1 with p for (1, 0), 1 − p for (0, 1) and ½ for
    others, which is ε-DP for p = 1 − e^−ε / 2; but the first bit never changes alone.
    """
    eps, n, rng = 1.0, 2000, np.random.default_rng(0)
    p = 1.0 - np.exp(-eps) / 2
    first = rng.integers(0, 2, n)
    answer = rng.random(n) < np.where(first == 1, p, 1.0 - p)
    score = np.repeat(np.where(answer, 1.0, -1.0), 2)
    bits = np.stack([first, 1 - first], axis=1).ravel()
    for said in ("coins", "dealt", "unknown"):
        a = eg.audit(table(bits, score, 2, bits=said), verdict_method="exact", claimed_eps=eps, **GIVEN, **CLAIM)
        assert a.verdict.bound.value > eps
        assert a.verdict.kind == "violation by an estimate"
        assert {a[name].promise for name in ("clopper-pearson", "exact", "pooled")} == {"estimate"}


@pytest.mark.parametrize("said", ["dealt", "unknown"])
def test_bounds_of_one_pair_per_model_need_no_coins(said):
    bits = np.arange(120) % 2
    scores = table(bits, np.random.default_rng(0).normal(bits, 1.0), bits=said)
    proven = {"clopper-pearson": "guaranteed", "exact": "guaranteed", "bayes": "credible"}
    assert proven.items() <= promises(scores).items()
    for name in ("anytime", "clopper-pearson"):
        assert promises(scores, verdict_method=name)[name] == "guaranteed"
    assert promises(scores, rule="same-data", threshold=None)["simultaneous"] == "guaranteed"
    mu = {"claimed_mu": 1.0, "claimed_adjacency": "substitute"}
    assert promises(scores, **mu)["gaussian"] == "guaranteed"
    for name in ("pooled", "one-run"):
        assert promises(scores, verdict_method=name)[name] == "estimate"


def test_who_judges_is_told_whether_bits_are_coins(monkeypatch):
    asked, real = [], module.default_method
    monkeypatch.setattr(module, "default_method", lambda one: (asked.append(one.coins), real(one))[1])
    for said in ("coins", "dealt", "unknown"):
        eg.audit(table([0, 1], [0.0, 1.0], bits=said), **GIVEN)
        assert set(asked) == {said == "coins"}
        asked.clear()


def test_the_bits_of_a_run_are_coins(tmp_path):
    run = played(pairs_plan(n_models=40), tmp_path / "a")
    a = eg.audit(run)
    assert (a.evidence.scores.bits, a.facts.bits, a["pooled"].promise) == ("coins", "coins", "guaranteed")
    assert a.to_json()["scores"] is None
    ask("export", tmp_path / "a", "-o", tmp_path / "s.csv")
    assert Scores.read(tmp_path / "s.csv").bits == "coins"


def test_coins_are_doubted_at_most_once_in_ten_thousand_tables():
    n = 200
    ones = np.arange(n + 1)
    models, rows = np.arange(n), np.arange(n)
    why = [unfair(models, 0 * rows, (rows < k).astype(np.int64), 0, 0) for k in ones]
    chance = stats.binom.pmf(ones, n, 0.5)
    assert UNFAIR / 20 < chance[[said is not None for said in why]].sum() <= UNFAIR / 2
    assert why[130] == "it needs bits that are coins, but 130 of 200 are 1"


def grid(bits):
    """The columns model, pair and bit of a table with a row for each model."""
    model, pair = np.indices(bits.shape).reshape(2, -1)
    return model, pair, bits.ravel()


def test_each_doubt_is_as_rare_as_it_says():
    """By enumeration of all 512 tables of three models with three pairs each."""
    tables = (np.arange(512)[:, None] >> np.arange(9) & 1).reshape(-1, 3, 3)
    found = [np.array([repeated(*grid(bits)) for bits in tables])]
    for axis in (1, 2):
        sums, of = np.unique(tables.sum(axis), axis=0, return_inverse=True)
        coins = np.full(sums.shape[1], tables.shape[axis])
        found += [np.array([doubt(ones, coins) for ones in sums])[of.ravel()] for doubt in (too_even, too_uneven)]
    for chance in found:
        assert chance.min() < 0.8
        assert all(np.mean(chance <= t) <= t + 1e-12 for t in np.unique(chance))


def test_bits_that_repeat_between_models_are_no_coins():
    rng = np.random.default_rng(0)
    one, other = rng.permuted(np.tile(np.arange(60) < 27, (2, 1)), axis=1).astype(int)  # the number is not in doubt
    some, few = rng.integers(0, 2, (20, 60)), rng.integers(0, 2, (20, 10))
    doubted = {
        "agree in the bits of a pair": [np.tile(one, (20, 1)), np.tile(one[:10], (20, 1)), np.stack([one, one])],
        "differ in the bits of a pair": [np.concatenate([few, 1 - few]), np.stack([one, 1 - one])],
        "the same bits, or opposite ones": [
            np.concatenate([some, some[:1]]),
            np.concatenate([some, 1 - some[:1]]),
            np.stack([one, one, other, 1 - other]),
        ],
        "mostly ones and others mostly zeros": [np.repeat(rng.integers(0, 2, (40, 1)), 6, axis=1)],
    }
    for said, tables in doubted.items():
        assert all(said in unfair(*grid(bits), 0, 0) for bits in tables)
    assert not any(unfair(*grid(rng.integers(0, 2, shape)), 0, 0) for shape in ((20, 60), (200, 3), (2, 500), (500, 1)))


def test_memberships_that_are_the_same_in_all_models_prove_nothing():
    """Scores know the points and nothing of the models, so that ε = 0."""
    rng = np.random.default_rng(1)
    bits, score = np.tile(rng.integers(0, 2, 60), 20), np.tile(rng.normal(size=60), 20)
    a = eg.audit(table(bits, score, 60, bits="coins"), **GIVEN)
    assert a.verdict.promise == "estimate"
    assert "in the bits of a pair more often than coins do" in a.verdict.sentence


def test_the_check_of_coins_takes_little_time_for_many_models():
    """It would take minutes and gigabytes to compare every two of them bit by bit."""
    rng = np.random.default_rng(0)
    for shape in ((100_000, 1), (20_000, 40), (1000, 100)):
        assert unfair(*grid(rng.integers(0, 2, shape)), 0, 0) is None


# In files


@pytest.mark.parametrize("name", ["a.csv", "a.npz", pytest.param("a.parquet", marks=pytest.mark.long)])
def test_a_file_says_where_its_bits_come_from(tmp_path, name):
    path = tmp_path / name
    table([1, 0], [1.0, 0.0], bits="coins").write(path)
    assert Scores.read(path).bits == Scores.read(path, bits="coins").bits == "coins"
    assert Scores.read(path)[:1].bits == Scores.read(path)[np.array([1])].bits == "coins"
    with pytest.raises(eg.InvalidInput, match=r"says that its bits are coins, but bits are dealt\. Leave bits out"):
        Scores.read(path, bits="dealt")
    table([1, 0], [1.0, 0.0]).write(path)
    assert Scores.read(path).bits == "unknown"
    assert Scores.read(path, bits="dealt").bits == "dealt"


def test_other_words_about_bits_are_no_origin(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("# bits = 1 for members, adjacency=substitute\nmodel,bit,score\n0,1,2\n")
    assert Scores.read(path).bits == "unknown"
    np.savez(tmp_path / "a.npz", adjacency="substitute", model=[0, 1], bit=[0, 1], score=[0, 1], bits=[0, 1])
    assert Scores.read(tmp_path / "a.npz").bits == "unknown"
    path.write_text("# epsgauge scores, adjacency=substitute, bits=fair\nmodel,bit,score\n0,1,2\n")
    with pytest.raises(eg.InvalidInput, match=re.escape('a.csv must be "coins" (fair ones, drawn before training)')):
        Scores.read(path)
    with pytest.raises(eg.InvalidInput, match=r'bits must be "coins" .*, but got \'fair\'\.'):
        table([1], [1.0], bits="fair")


# Which rows share a model


def plain(tmp_path, n=240):
    rng = np.random.default_rng(0)
    path = tmp_path / "plain.csv"
    rows = [f"{b},{s:.4f}" for b, s in ((b, rng.normal(2.0 * b)) for b in rng.integers(0, 2, n))]
    path.write_text("\n".join(["# epsgauge scores, adjacency=substitute", "bit,score", *rows]) + "\n")
    return path


def test_rows_without_a_model_are_not_guessed(tmp_path):
    path = plain(tmp_path)
    with pytest.raises(eg.InvalidInput, match=r"does not say which rows share a model\. .* pass --one-model"):
        Scores.read(path)
    one, each = (Scores.read(path, models=said) for said in ("one", "independent"))
    assert (len(one.models), len(each.models)) == (1, 240)
    assert (one.taken_as, each.taken_as, each[:9].taken_as) == ("one", "independent", "independent")
    with pytest.raises(eg.InvalidInput, match='models must be "one", "independent" or "orthogonal", but got \'many\''):
        Scores.read(path, models="many")
    each.write(tmp_path / "full.csv")
    assert Scores.read(tmp_path / "full.csv").taken_as is None
    with pytest.raises(eg.InvalidInput, match="has a column model, which says which rows share a model, but models is"):
        Scores.read(tmp_path / "full.csv", models="one")
    path.write_text("pair,bit,score\n4,1,2\n9,0,1\n")
    assert Scores.read(path, adjacency="substitute", models="one").pair.tolist() == [4, 9]
    with pytest.raises(eg.InvalidInput, match="has a column pair and none that says of which model"):
        Scores.read(path, adjacency="substitute", models="independent")


def test_the_command_asks_and_says_which(tmp_path):
    path = plain(tmp_path)
    said = refused("scores", path)
    assert "--one-model" in said
    assert "--independent" in said
    assert "only one of --one-model and --independent" in refused("scores", path, "--one-model", "--independent")
    assert 'bits must be "coins"' in refused("scores", path, "--independent", "--bits", "fair")
    assert "--fit-pairs" in said
    alone = json.loads(ask("scores", path, "--one-model", "--json"))
    assert alone["rule"]["chosen"] == "split-pairs"  # no other model can choose the rule
    found = partial(ask, "scores", path, "--threshold", 1)
    assert "each row is taken as a model of its own" in " ".join(found("--independent").split())
    shown = " ".join(found("--one-model", "--bits", "coins").split())
    assert "bits coins: each is a fair coin of its own, drawn before training" in shown
    assert "all rows are taken as of one model" in shown
    told = json.loads(found("--one-model", "--bits", "coins", "--json"))
    assert told["scores"] == {"bits": "coins", "models": "one", "lower_is_in": False, "direction": None}
    assert (told["verdict"]["method"], told["verdict"]["promise"]) == ("weighted", "guaranteed")
    assert json.loads(found("--one-model", "--json"))["verdict"]["promise"] == "estimate"


@pytest.mark.parametrize("kind", ["html", "md"])
def test_a_report_says_both_and_how_to_make_it_again(tmp_path, kind):
    scores = Scores.read(plain(tmp_path), models="independent", bits="dealt")
    page = written(eg.audit(scores), kind)
    assert "bits dealt: how many are 1 was fixed beforehand" in page
    assert "each row is taken as a model of its own" in page
    assert f"epsgauge scores {scores.origin.file} --adjacency substitute --bits dealt --independent" in page
    in_python = written(eg.audit(scores, search="bayes"), kind)
    assert "bits=" in in_python
    assert "models=" in in_python


def test_print_and_notebook_say_it():
    a = eg.audit(responses(1.0, 60), **{**GIVEN, "threshold": 0.5})
    for said in (str(a), a._repr_html_()):
        assert "bits coins: each is a fair coin of its own" in said
