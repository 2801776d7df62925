"""Label DP: pairs that differ in the label alone, claims that say so, and trainers whose ε for labels is known."""

import math
from dataclasses import dataclass

import numpy as np
import pytest
from command_line import ask

import epsgauge as eg
from epsgauge.adjacency import ADJACENCIES, LABEL_DP, implies
from epsgauge.auditing.claim import promises
from epsgauge.data.canaries.table import CANARIES, canaries_of
from epsgauge.data.canaries.wrong_labels import wrong_labels
from epsgauge.data.labels import unlabelled
from epsgauge.data.points import Arrays, Mapped
from epsgauge.games.experiment import draw
from epsgauge.mechanisms.accounting import accountant_eps
from epsgauge.mechanisms.label_response import LabelRandomisedResponse
from epsgauge.mechanisms.privacy import DPSGD, KnownPrivacy
from epsgauge.runner import play
from epsgauge.runner.executors import InProcess
from epsgauge.settings import AuditSettings
from epsgauge.trainers.label_response import LabelResponse

NEAREST = {"estimator": f"{__name__}:Nearest"}
# What a claim says of a game, written out: to replace is to remove and to add, and a label is part of a record.
IMPLIED = {
    ("add-remove", "add-remove"),
    ("add-remove", "substitute"),
    ("add-remove", "label-only"),
    ("substitute", "substitute"),
    ("substitute", "label-only"),
    ("label-only", "label-only"),
}


class Nearest:
    """One nearest neighbour."""

    def fit(self, x, y):
        self.x, self.y, self.classes_ = x, y, np.unique(y)
        return self

    def predict_proba(self, x):
        nearest = np.argmin(((x[:, None] - self.x) ** 2).sum(axis=2), axis=1)
        return (self.y[nearest][:, None] == self.classes_).astype(float)


def plan(trainer=None, *, n_models=300, game=None, audit=None):
    return eg.Plan(
        name="labels",
        n_models=n_models,
        data="digits",
        trainer=trainer or {"use": "label-response", "eps": 1.0, "n_classes": 10, **NEAREST},
        game={"train_size": 30, "reference_size": 5, "adjacency": "label-only", "control_models": 0, **(game or {})},
        audit={"attack": "difference", "delta": 0.0, **(audit or {})},
    )


def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(60, 4)), np.arange(60) % 3


# Adjacency and claims


def test_which_claims_say_anything():
    assert {(a, b) for a in ADJACENCIES for b in ADJACENCIES if implies(a, b)} == IMPLIED


@pytest.mark.parametrize("game", ADJACENCIES)
@pytest.mark.parametrize("claimed", ADJACENCIES)
def test_stated_claims(claimed, game):
    settings = AuditSettings(claimed_eps=1.0, claimed_delta=1e-5, claimed_adjacency=claimed)
    if (claimed, game) not in IMPLIED:
        with pytest.raises(eg.InvalidInput, match="implies nothing about"):
            promises(settings, None, game)
        return
    found = promises(settings, None, game)
    twice = claimed == "add-remove" and game != "add-remove"
    assert found.claim.eps == (2.0 if twice else 1.0)
    assert found.claim.adjacency == game
    assert (LABEL_DP in found.notes) == (game == "label-only")


@pytest.mark.parametrize("game", ADJACENCIES)
@pytest.mark.parametrize("known", ADJACENCIES)
def test_what_is_known(known, game):
    eps = accountant_eps(KnownPrivacy(eps=1.0, adjacency=known), delta=0.0, adjacency=game)
    twice = known == "add-remove" and game != "add-remove"
    assert eps == (None if (known, game) not in IMPLIED else 2.0 if twice else 1.0)


def test_dpsgd_promises_for_labels_what_it_does_for_records():
    trained = DPSGD(sample_rate=0.1, noise_multiplier=1.0, steps=100)
    as_label, as_record = (accountant_eps(trained, delta=1e-5, adjacency=a) for a in ("label-only", "substitute"))
    assert as_label == as_record
    found = promises(AuditSettings(), trained, "label-only")
    assert found.claim.note.startswith("The claim is about replacing a record")
    assert set(found.accountant) == set(ADJACENCIES)
    assert set(promises(AuditSettings(), trained, "substitute").accountant) == {"substitute", "add-remove"}


# The game


KINDS = {
    "numbers": lambda: eg_digits(),
    "tokens": lambda: (np.arange(120).reshape(40, 3) % 17, np.arange(40) % 3),
    "text": lambda: (np.array([f"word {i} and {i * i}" for i in range(40)]), np.arange(40) % 3),
}


@pytest.mark.parametrize("kind", KINDS)
def test_canaries_of_a_label_are_those_that_say_so(kind):
    """Every canary of the table, made: its features are equal exactly where it says that they are."""
    made = {name: canary for name, canary in CANARIES.items() if kind in canary.kinds}
    for name, canary in made.items():
        _, zeros, ones = canaries_of(name, KINDS[kind]())
        assert np.array_equal(zeros[0], ones[0]) == canary.of_label, name
    of_label = set(canaries_of("auto", KINDS[kind](), of_label=True)[0])
    assert of_label
    assert of_label <= {name for name, canary in made.items() if canary.of_label and canary.tried}


def eg_digits():
    from epsgauge.data.digits import digits

    return digits()


def test_wrong_labels():
    x, y = data()
    (x0, y0), (x1, y1) = wrong_labels((x, y))
    assert np.array_equal(x0, x1)
    assert len(x0) == 30
    assert (y0 != y1).all()
    own = {row.tobytes(): label for row, label in zip(x, y, strict=True)}
    for row, a, b in zip(x0, y0, y1, strict=True):
        assert own[row.tobytes()] not in (a, b)
    (_, y0), (_, y1) = wrong_labels((x, y % 2))
    assert ((y0 == 1 - y1) & np.isin(y0, (0, 1))).all()
    with pytest.raises(eg.InvalidInput, match="two labels or more"):
        wrong_labels((x, 0 * y))


def test_places_of_arrays_and_of_datasets():
    x, y = data()
    doubled = (np.concatenate([x, x]), np.concatenate([y, (y + 1) % 3]))
    places = unlabelled(Arrays(doubled))
    assert np.array_equal(places[:60], places[60:])
    assert len(set(places.tolist())) == 60
    items = list(zip(*doubled, strict=True))
    of_dataset = unlabelled(Mapped(items))
    assert np.array_equal(of_dataset[:60], of_dataset[60:])
    of_dicts = unlabelled(Mapped([{"x": a, "y": b} for a, b in items]))
    assert len(set(of_dicts.tolist())) == 60
    with pytest.raises(eg.InvalidInput, match="needs points with a label"):
        unlabelled(Arrays((x,)))


def test_no_training_set_has_a_canary_under_another_label():
    game = {"pairs_per_model": 40, "train_size": 100}
    given = plan(game=game, n_models=20)
    assert (given.game.challenge, given.game.canaries) == ("explicit", "wrong-labels")
    (roles,) = play.cut(given, None)
    points = play.table(given).points
    places, full = unlabelled(points), points.keys()
    for index in range(6):
        drawn = draw(given.game, roles, 0, index)
        zero, one = drawn.pairs.T
        assert (places[zero] == places[one]).all()
        assert (full[zero] != full[one]).all()
        assert len(set(places[drawn.training].tolist())) == 100
        assert (full[drawn.training[-40:]] == full[np.where(drawn.bits, one, zero)]).all()


def elsewhere(given):
    """Canaries that differ in more than the label."""
    x, y = given
    return (x[:1], y[:1]), (x[1:2], y[1:2])


def test_pairs_that_differ_elsewhere_are_refused():
    given = plan(game={"challenge": "explicit", "canaries": f"{__name__}:elsewhere"})
    with pytest.raises(eg.InvalidInput, match=r"pair 0 must differ in the label alone in a label-only\s+game"):
        play.table(given)
    with pytest.raises(eg.InvalidInput, match="needs two labels at one place"):
        plan(game={"challenge": "average"})
    with pytest.raises(eg.InvalidInput, match="belongs to no label"):
        eg.Plan(
            name="a",
            n_models=30,
            data="digits",
            trainer="dpsgd",
            game={"train_size": 30, "adjacency": "label-only"},
            adversary={"preset": "white-box"},
        )
    with pytest.raises(eg.InvalidInput, match="a probe is about whole records"):
        eg.probe(object(), None, adjacency="label-only")


# Randomised response of labels


@pytest.mark.parametrize(("eps", "k"), [(0.0, 2), (1.0, 2), (1.0, 10), (4.0, 3)])
def test_randomised_response_of_labels(eps, k):
    mechanism = LabelRandomisedResponse(eps, k)
    other = (1 - mechanism.keeps) / (k - 1)
    assert math.log(mechanism.keeps / other) == pytest.approx(eps, abs=1e-12)
    assert mechanism.keeps == pytest.approx(math.exp(eps) / (math.exp(eps) + k - 1), rel=1e-14)
    n = 20_000
    for label in (0, k - 1):
        seen = np.bincount(mechanism.sample(np.full(n, label), np.random.default_rng(1)), minlength=k) / n
        wanted = np.full(k, other)
        wanted[label] = mechanism.keeps
        assert np.abs(seen - wanted).max() < 5 * math.sqrt(0.25 / n)


def test_labels_must_be_known_beforehand():
    with pytest.raises(eg.InvalidInput, match="below n_classes = 2"):
        LabelRandomisedResponse(1.0, 2).sample(np.array([0, 2]), np.random.default_rng(0))
    assert LabelResponse(eps=1.0, n_classes=3).privacy(7) == KnownPrivacy(eps=1.0, adjacency="label-only")


@dataclass(frozen=True, kw_only=True)
class OfTwo(LabelResponse):
    """As if there were two labels: of ten it keeps e^ε/(1 + e^ε), which spends ε + log 9."""

    @property
    def mechanism(self):
        return LabelRandomisedResponse(self.eps + math.log(self.n_classes - 1), self.n_classes)

    def privacy(self, n):
        return KnownPrivacy(eps=self.eps, adjacency="label-only")


@pytest.mark.parametrize("game", [{}, {"pairs_per_model": 15, "canaries": "wrong-labels"}])
def test_what_is_true_is_not_refuted_and_what_is_false_is(tmp_path, game):
    """One neighbour sees the noisy label itself, so that the audit is about randomised response and nothing else."""
    given = {"canaries": "label", **game}
    n = 200 if "pairs_per_model" not in game else 30
    right = eg.audit(eg.run(plan(n_models=n, game=given), out=tmp_path / "right", executor=InProcess()))
    assert right.verdict.kind == "no objection"
    assert 0.3 < right.verdict.bound.value <= 1.0
    assert right.verdict.promise == "guaranteed"
    assert LABEL_DP in right.warnings
    broken = OfTwo(eps=1.0, n_classes=10, **NEAREST)
    wrong = eg.audit(eg.run(plan(broken, n_models=n, game=given), out=tmp_path / "wrong", executor=InProcess()))
    assert wrong.verdict.kind == "violation"
    assert 1.0 < wrong.verdict.bound.value <= 1.0 + math.log(9)
    said = ask("audit", tmp_path / "wrong")
    assert "(label-only)" in said
    assert "This is label DP" in said
    assert "Every claim of label DP covers this" in " ".join(said.split())


def test_no_curve_of_dpsgd_judges_labels(tmp_path):
    trainer = {"use": "dpsgd", "model": "logistic", "epochs": 1, "batch_size": 15, "noise_multiplier": 2.0}
    run = eg.run(plan(trainer, n_models=12, game={"canaries": "label"}), out=tmp_path / "a", executor=InProcess())
    audit = eg.audit(run, rule="given", threshold=0.0, delta=1e-5)
    assert audit.claim.adjacency == "label-only"
    assert audit.privacy is None
    assert not any(row.method == "curve" for row in audit.rows)
    with pytest.raises(eg.InvalidInput, match="this game is label-only: a label may move an update less"):
        eg.audit(run, rule="given", threshold=0.0, delta=1e-5, verdict_method="curve")
