"""Attacks: scores from signals, and the paper's percentile in its own words."""

import itertools
import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from epsgauge.attacks import percentile
from epsgauge.attacks.attack import Attack
from epsgauge.attacks.table import ATTACKS, attack_of
from epsgauge.errors import InvalidInput
from epsgauge.games.signals import Signals
from epsgauge.scores.rules import Given, judge


def signals(n=6, m=3, r=9, *, adjacency="substitute", sees="pair", seed=0, values=None, watched=False):
    """Losses with many ties where `values` is small."""
    rng = np.random.default_rng(seed)
    draw = (lambda *shape: rng.integers(0, values, shape).astype(float)) if values else rng.normal
    losses = [draw(n, m) if values else rng.normal(size=(n, m)) for _ in range(2)]
    reference = draw(n, r) if values else rng.normal(size=(n, r))
    return Signals(
        models=np.arange(n) * 2 + 5,
        bits=rng.integers(0, 2, (n, m)),
        pairs=np.zeros((n, m, 2), np.int64),
        channels={
            "loss": np.stack([np.full((n, m), np.nan) if adjacency == "add-remove" else losses[0], losses[1]], axis=-1),
            "reference": np.sort(reference, axis=1),
            **(dict.fromkeys(("llr", "displacement"), losses[0] - losses[1]) if watched else {}),
            **({"trajectory": rng.normal(size=(n, m, 2, 5)), "population": reference} if watched else {}),
        },
        adjacency=adjacency,
        sees=sees,
    )


def positive(seen):
    """With losses above 0, as cross-entropies are."""
    return replace(seen, channels={**seen.channels, "loss": np.abs(seen["loss"])})


def swapped(seen):
    """z0 and z1 exchanged."""
    return replace(seen, channels={**seen.channels, "loss": seen["loss"][..., ::-1]})


def guesses_in_the_papers_words(seen, alpha):
    """For each model take the percentile of its reference losses; a loss strictly below it is a member's."""
    out = []
    for i in range(len(seen)):
        reference = sorted(seen["reference"][i].tolist())
        k = math.floor(Fraction(str(alpha)) * (len(reference) + 1) / 100)
        out.append([int(loss < reference[k - 1]) for loss in seen["loss"][i, :, 1]])
    return np.array(out)


@pytest.mark.parametrize("name", ATTACKS)
def test_the_columns_of_an_attacks_scores(name):
    apart = positive(signals(n=8, watched=True))
    apart = replace(apart, bits=(np.arange(8)[:, None] + np.arange(3)) % 2)
    seen = replace(positive(signals(watched=True)), rehearsal=apart)
    scores = ATTACKS[name].scores(seen)
    assert scores.model.tolist() == [m for m in seen.models for _ in range(3)]
    assert scores.pair.tolist() == [0, 1, 2] * 6
    assert scores.bit.tolist() == seen.bits.ravel().tolist()
    assert (scores.adjacency, scores.id, scores.group) == ("substitute", None, None)
    assert ATTACKS[name].name == name
    assert len(ATTACKS[name].scores(replace(signals(n=0, watched=True), rehearsal=apart))) == 0


def test_attacks_by_name():
    assert attack_of("loss") is ATTACKS["loss"]
    sentence = "epsgauge.attacks.attack.Attack, but got 'percentil'. Did you mean \"percentile\"?"
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        attack_of("percentil")


def test_the_margin_attack():
    odds = np.random.default_rng(1).normal(0, 30, (6, 3, 2))  # −log p is from 1e-40 to 90
    seen = replace(signals(), channels={"loss": np.logaddexp(0.0, -odds)})
    margin = ATTACKS["margin"]
    np.testing.assert_allclose(margin.score(seen), odds[..., 1] - odds[..., 0], rtol=1e-12)
    np.testing.assert_allclose(margin.score(replace(seen, adjacency="add-remove")), odds[..., 1], rtol=1e-12)
    np.testing.assert_allclose(margin.score(replace(seen, sees="z0")), -odds[..., 0], rtol=1e-12)
    given = with_margin(signals(), odds)  # that the trainer gave, whatever its losses are
    assert np.array_equal(margin.score(given), odds[..., 1] - odds[..., 0])
    none = replace(seen, channels={"loss": np.zeros((6, 3, 2))})
    assert np.isfinite(margin.score(replace(none, adjacency="add-remove"))).all()
    with pytest.raises(InvalidInput, match=r"0 or more, but the smallest is -.*\. Use the attack loss or difference"):
        margin.scores(signals())


def test_what_loss_and_difference_score():
    seen = signals()
    assert ATTACKS["loss"].scores(seen).score.tolist() == (-seen["loss"][..., 1]).ravel().tolist()
    assert (
        ATTACKS["difference"].scores(seen).score.tolist()
        == (seen["loss"][..., 0] - seen["loss"][..., 1]).ravel().tolist()
    )
    assert ATTACKS["loss"].candidates(seen) is ATTACKS["difference"].candidates(seen) is None


def test_an_adversary_who_sees_z0_has_the_opposite_sign():
    seen = signals(sees="z0")
    assert ATTACKS["loss"].scores(seen).score.tolist() == seen["loss"][..., 0].ravel().tolist()
    for values in (None, 4):
        seen = signals(sees="z0", values=values)
        score = ATTACKS["percentile"].scores(seen).score
        for alpha in (10, 25, 50, 99):  # the same comparison of a loss with the percentile, and then guess 0
            below = guesses_in_the_papers_words(swapped(seen), alpha).ravel()
            assert (score >= percentile.threshold(alpha, 9, "z0")).astype(int).tolist() == (1 - below).tolist()
        assert set(percentile.candidates(9, "z0")) == {10.0 * k for k in range(1, 10)}
        assert percentile.percentile_of(percentile.threshold(25, 9, "z0"), "z0") == 20
    with pytest.raises(InvalidInput, match=re.escape("sees z0 only. Use the attack percentile or loss.")):
        ATTACKS["difference"].scores(seen)


def test_an_add_remove_game_has_no_z0():
    seen, other = signals(adjacency="add-remove"), signals()
    for name in ("loss", "percentile"):
        scores = ATTACKS[name].scores(seen)
        assert scores.adjacency == "add-remove"
        assert scores.score.tolist() == ATTACKS[name].scores(other).score.tolist()
    with pytest.raises(
        InvalidInput, match=re.escape("an add-remove game has no z0. Use the attack percentile or loss.")
    ):
        ATTACKS["difference"].scores(seen)


@pytest.mark.parametrize("values", [None, 3, 12])
@pytest.mark.parametrize("r", [1, 7, 99, 200])
def test_the_percentile_attack_in_the_papers_words(r, values):
    seen = signals(n=40, m=4, r=r, values=values)
    scores = ATTACKS["percentile"].scores(seen)
    for alpha in (0.5, 1, 2.5, 10, 29, 50, 57, 99, 99.9):
        if Fraction(str(alpha)) * (r + 1) < 100:
            continue
        threshold = percentile.threshold(alpha, r)
        expected = guesses_in_the_papers_words(seen, alpha)
        assert (scores.score >= threshold).astype(int).tolist() == expected.ravel().tolist()
        tally = judge(scores, Given(threshold), delta=1e-5).tally
        assert tally.tp == expected[seen.bits == 1].sum()
        assert tally.fp == expected[seen.bits == 0].sum()


@pytest.mark.parametrize("losses", [(1, 2, 3, 4, 5), (1, 1, 2, 3, 3), (1, 1, 1, 2, 2), (7, 7, 7, 7, 7)])
def test_the_fpr_of_an_exchangeable_non_member(losses):
    """Every order of r + 1 = 5 losses, the first of which is the point's: FPR k/(r + 1), or below it with ties."""
    r = len(losses) - 1
    orders = np.array(list(itertools.permutations(losses)), dtype=float)
    n = len(orders)
    zero = np.zeros((n, 1), np.int64)
    seen = Signals(
        np.arange(n), zero, np.zeros((n, 1, 2), np.int64),
        {"loss": np.stack([orders[:, :1]] * 2, axis=-1), "reference": np.sort(orders[:, 1:], axis=1)},
        "substitute", "pair",
    )  # fmt: skip
    score = ATTACKS["percentile"].scores(seen).score
    for k in range(1, r + 1):
        guessed = Fraction(int((score >= percentile.threshold(100 * k / (r + 1), r)).sum()), n)
        if len(set(losses)) == r + 1:
            assert guessed == Fraction(k, r + 1)
        else:
            assert guessed <= Fraction(k, r + 1)


@given(st.integers(1, 1500), st.integers(1, 99_999))
def test_the_threshold_against_exact_arithmetic(r, thousandths):
    """Percentiles as people write them, to three decimals."""
    alpha = thousandths / 1000
    k = math.floor(Fraction(thousandths, 1000) * (r + 1) / 100)
    if k == 0:
        with pytest.raises(InvalidInput, match="percentile must be at least"):
            percentile.threshold(alpha, r)
        return
    threshold = percentile.threshold(alpha, r)
    assert threshold == 100 * (r + 1 - k) / (r + 1)  # exactly the score of that rank
    assert percentile.percentile_of(threshold) == pytest.approx(100 * k / (r + 1), abs=1e-12)


@given(st.integers(1, 1500), st.data())
def test_every_rank_has_its_percentile(r, data):
    """A percentile computed as 100 k/(r + 1) is the k-th, although it may have been rounded down."""
    k = data.draw(st.integers(1, r))
    assert percentile.threshold(100 * k / (r + 1), r) == 100 * (r + 1 - k) / (r + 1)
    assert percentile.threshold(100 - 100 * (r + 1 - k) / (r + 1), r) == 100 * (r + 1 - k) / (r + 1)


@pytest.mark.parametrize("r", [1, 2, 9, 20, 49, 98, 99, 200, 1000])
def test_candidates_are_the_whole_percentiles_that_the_reference_allows(r):
    allowed = [alpha for alpha in range(1, 100) if alpha * (r + 1) >= 100]
    ranks = {alpha * (r + 1) // 100 for alpha in allowed}
    assert percentile.candidates(r).tolist() == sorted(100 * (r + 1 - k) / (r + 1) for k in ranks)
    assert set(percentile.candidates(r)) == {percentile.threshold(alpha, r) for alpha in allowed}
    assert ATTACKS["percentile"].candidates(signals(r=r)).tolist() == percentile.candidates(r).tolist()


@pytest.mark.parametrize("r", [1, 6, 10, 12, 200, 999])
def test_the_finest_percentile_is_named_and_allowed(r):
    with pytest.raises(
        InvalidInput, match=re.escape("percentile must be at least 100/(reference_size + 1) = ")
    ) as caught:
        percentile.threshold(99 / (r + 1), r)
    finest = float(re.search(r"= (\S+) with", str(caught.value)).group(1))
    assert percentile.threshold(finest, r) == 100 * r / (r + 1)
    assert finest - 100 / (r + 1) < 1e-4


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: percentile.threshold(0, 200), "percentile must be in (0, 100), but got 0.0."),
        (lambda: percentile.threshold(100, 200), "percentile must be in (0, 100), but got 100.0."),
        (lambda: percentile.threshold(math.nan, 200), "percentile must not be NaN"),
        (lambda: percentile.threshold(5, 0), "needs reference points, but reference_size is 0. Use the attack loss"),
        (lambda: percentile.candidates(0), "needs reference points, but reference_size is 0."),
        (lambda: ATTACKS["percentile"].scores(signals(r=0)), "needs reference points, but reference_size is 0."),
    ],
)
def test_percentiles_that_are_refused(make, sentence):
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        make()


def test_scores_are_ranks():
    """Without ties, a point exchangeable with 4 reference points has each of 5 scores; with equality the lower one."""
    seen = signals(n=1, m=5, r=4)
    reference = np.array([[1.0, 2.0, 3.0, 4.0]])
    seen = replace(seen, channels={"loss": np.stack([np.arange(0.5, 5, 1)[None]] * 2, axis=-1), "reference": reference})
    assert Counter(ATTACKS["percentile"].scores(seen).score.tolist()) == Counter([80.0, 60.0, 40.0, 20.0, 0.0])
    equal = replace(seen, channels={**seen.channels, "loss": seen["loss"] + 0.5})
    assert ATTACKS["percentile"].scores(equal).score.tolist() == [60.0, 40.0, 20.0, 0.0, 0.0]


# attacks of one's own


class Own(Attack):
    name = "own"
    needs = ("margin",)

    def score(self, signals):
        return signals["margin"][..., 1]


@dataclass(frozen=True)
class Powered(Attack):
    power: float = 2.0
    name = "powered"
    meaning = "a power of the loss"

    def score(self, signals):
        return -(np.abs(signals["loss"][..., 1]) ** self.power)


def with_margin(seen, margin):
    return replace(seen, channels={**seen.channels, "margin": margin})


def test_an_attack_of_ones_own_has_a_name_and_a_score():
    seen = signals()
    margin = np.arange(36.0).reshape(6, 3, 2)
    scores = Own().scores(with_margin(seen, margin))
    assert scores.score.tolist() == margin[..., 1].ravel().tolist()
    assert Own().sees(seen) == "sees the channel margin"
    assert (Own().axis, Own().candidates(seen), Own().percentile_of(0.5, seen)) == ("score", None, None)
    assert Powered(3.0).scores(seen).score.tolist() == (-(np.abs(seen["loss"][..., 1]) ** 3)).ravel().tolist()


def test_what_the_built_in_attacks_see_in_words():
    pair, z0 = signals(), signals(sees="z0")
    assert ATTACKS["loss"].sees(pair) == "black box: the loss of z1"
    assert ATTACKS["loss"].sees(z0) == "black box: the loss of z0 only"
    assert ATTACKS["difference"].sees(pair) == "black box: the losses of z0 and z1"
    assert ATTACKS["margin"].sees(pair) == "black box: the margins of z0 and z1"
    assert ATTACKS["margin"].sees(z0) == "black box: the margin of z0 only"
    assert ATTACKS["margin"].sees(signals(adjacency="add-remove")) == "black box: the margin of z1"
    assert ATTACKS["percentile"].sees(pair) == "black box: the loss of z1 and 9 reference losses"
    assert ATTACKS["percentile"].sees(z0) == "black box: the loss of z0 only and 9 reference losses"
    for seen in (pair, z0):
        threshold = ATTACKS["percentile"].threshold_at(20, seen)
        assert ATTACKS["percentile"].percentile_of(threshold, seen) == pytest.approx(20)
    assert (
        len({attack.axis for attack in ATTACKS.values()}) == len({a.meaning for a in ATTACKS.values()}) == len(ATTACKS)
    )
    assert ATTACKS["trajectory"].sees(pair).endswith("the losses of the pair, their mean over all iterates")
    assert ATTACKS["updates"].sees(pair) == "white box: every noisy update, and the gradients of the pair's records"


def scoring(value):
    attack = Own()
    object.__setattr__(attack, "needs", ())
    object.__setattr__(attack, "score", lambda signals: value() if callable(value) else value)
    return lambda: attack.scores(signals())


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: Own().scores(signals()),
            "the attack own needs the channel 'margin', but this run has only loss, reference. Let the trainer give "
            "it beside its losses, and run with a new --out.",
        ),
        (lambda: signals()["gradient"], "needs the channel 'gradient', but this run has only loss, reference."),
        (
            lambda: Own().scores(replace(signals(n=0), channels={})),
            "needs the channel 'margin', but no model of this run is done. Run it first.",
        ),
        (
            scoring(np.zeros(6)),
            "the attack own must give one score per pair, an array of shape (6, 3), but gave (6,).",
        ),
        (
            scoring(np.where(np.arange(18).reshape(6, 3) == 4, np.nan, 0.0)),
            "the attack own must give finite scores, but 1 of 18 are not (the first is nan, of model 7, pair 1).",
        ),
        (scoring(lambda: 1 / 0), "the attack own failed with ZeroDivisionError: division by zero."),
        (scoring("high"), "the score of the attack own must be a number or an array of numbers, but got 'high'."),
        (
            lambda: ATTACKS["loss"].threshold_at(5, signals()),
            "percentile goes with an attack that has percentiles, which loss has not, but got 5. Use threshold.",
        ),
    ],
)
def test_what_an_attack_is_refused_for(make, sentence):
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        make()


def test_an_attack_from_a_name_a_reference_a_class_or_an_object(tmp_path, monkeypatch):
    lines = [
        "from epsgauge.attacks.attack import Attack",
        "class Mine(Attack):",
        "    name = 'mine'",
        "    def score(self, signals):",
        "        return -signals['loss'][..., 1]",
        "mine = Mine()",
        "other = 5",
    ]
    (tmp_path / "my_attacks.py").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    for value in ("my_attacks:Mine", "my_attacks:mine"):
        found = attack_of(value)
        assert found.name == "mine"
        assert found.scores(signals()).score.tolist() == ATTACKS["loss"].scores(signals()).score.tolist()
    assert attack_of("loss") is ATTACKS["loss"]
    assert attack_of(ATTACKS["percentile"]) is ATTACKS["percentile"]
    assert isinstance(attack_of(Own), Own)
    assert attack_of(Powered(3.0)) == Powered(3.0)
    for value, sentence in (
        ("my_attacks:mein", "attack = 'my_attacks:mein': my_attacks has no 'mein'. Did you mean \"mine\"?"),
        ("my_attacks:other", "extends epsgauge.attacks.attack.Attack, but got my_attacks:other."),
        (5, "extends epsgauge.attacks.attack.Attack, but got 5."),
        (Attack, "must have a text as its name, but has ''."),
        (type("Fake", (Own,), {"name": "loss"}), "must not be called 'loss', which is built in."),
    ):
        with pytest.raises(InvalidInput, match=re.escape(sentence)):
            attack_of(value)
