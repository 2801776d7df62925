"""Games: who is trained on what, with which randomness, and which way the scores point."""

import subprocess
import sys
from dataclasses import dataclass, replace

import numpy as np
import pytest

from epsgauge.attacks.table import ATTACKS
from epsgauge.data.points import Arrays, as_points, digest, first_of_each
from epsgauge.errors import InvalidInput
from epsgauge.games.experiment import draw, experiment
from epsgauge.games.ranking import Ranking, rank_with, worst_first
from epsgauge.games.roles import assign, candidates, gaps, ranked
from epsgauge.games.seeds import Branch, Stream, generator, training_seed
from epsgauge.games.settings import GameSettings
from epsgauge.games.signals import SKETCH_SIZE, Signals, sketch
from epsgauge.scores.rules import Given, judge
from epsgauge.trainers.protocol import as_trainer, knows_size


def points_of(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return Arrays((rng.normal(size=(n, 3)), rng.integers(0, 2, size=n)))


NO_CANARIES = np.empty((0, 2), np.int64)


def roles_of(game, points, seed=0, canaries=NO_CANARIES, n_canary_points=0, worst=None):
    reference, others = candidates(game, points.keys(), seed, n_canary_points)
    return assign(game, reference, others, canaries, worst)


@dataclass(frozen=True)
class Memoriser:
    """Knows every training point by heart: the loss is the distance to the nearest one. It also keeps what it saw."""

    def train(self, data, *, seed):
        return data[0]

    def losses(self, model, points):
        return np.sqrt(((points[0][:, None] - model[None]) ** 2).sum(-1)).min(1)


@pytest.mark.parametrize("adjacency", ["substitute", "add-remove"])
@pytest.mark.parametrize("challenge", ["average", "worst"])
@pytest.mark.parametrize("base", ["fixed", "resampled"])
@pytest.mark.parametrize("m", [1, 5])
def test_nobody_has_two_roles(adjacency, challenge, base, m):
    game = GameSettings(
        train_size=40, pairs_per_model=m, adjacency=adjacency, base=base, challenge=challenge, reference_size=20,
        pool_size=12 if challenge == "worst" else None,
    )  # fmt: skip
    points = points_of()
    _, others = candidates(game, points.keys(), 3, 0)
    roles = roles_of(game, points, seed=3, worst=ranked(game, others)[::-1] if challenge == "worst" else None)
    for index in range(30):
        drawn = draw(game, roles, 3, index)
        in_pairs = drawn.pairs[drawn.pairs >= 0]
        assert len(np.unique(in_pairs)) == m * game.points_per_pair
        assert np.isin(in_pairs, roles.pool).all()
        assert not np.isin(drawn.training, roles.reference).any()
        assert len(np.unique(drawn.training)) == len(drawn.training)
        n_out = 0 if adjacency == "substitute" else int((drawn.bits == 0).sum())
        assert len(drawn.training) == 40 - n_out
        # the point of each pair that the bit names is in, the other is out
        members = drawn.pairs[np.arange(m), drawn.bits]
        others_of = drawn.pairs[np.arange(m), 1 - drawn.bits]
        assert np.isin(members[members >= 0], drawn.training).all()
        assert not np.isin(others_of[others_of >= 0], drawn.training).any()


def test_the_point_of_a_pair_stands_at_the_same_place_whichever_the_bit():
    game = GameSettings(train_size=40, challenge="average", pairs="fixed", reference_size=20)
    roles = roles_of(game, points_of())
    by_bit = {int(d.bits[0]): d for d in (draw(game, roles, 0, i) for i in range(20))}
    assert set(by_bit) == {0, 1}
    zero, one = by_bit[0], by_bit[1]
    assert np.array_equal(zero.training[:-1], one.training[:-1])
    assert (zero.training[-1], one.training[-1]) == tuple(zero.pairs[0])
    assert np.array_equal(zero.pairs, one.pairs)


def test_fresh_pairs_fixed_base():
    game = GameSettings(train_size=40, pairs_per_model=4, reference_size=20)
    roles = roles_of(game, points_of())
    drawn = [draw(game, roles, 0, i) for i in range(40)]
    assert len({d.pairs.tobytes() for d in drawn}) == 40
    assert len({d.training[:36].tobytes() for d in drawn}) == 1
    bits = np.array([d.bits for d in drawn])
    assert 0.3 < bits.mean() < 0.7
    assert len({b.tobytes() for b in bits}) > 10


def test_resampled_base_is_fresh_for_each_model():
    game = GameSettings(train_size=40, base="resampled", pairs="fresh", sees="z0", reference_size=20)
    roles = roles_of(game, points_of())
    assert game.experiment == "MIA"
    assert len({draw(game, roles, 0, i).training[:39].tobytes() for i in range(20)}) == 20


def test_the_pool_is_the_same_for_every_m():
    pools = []
    for m in (1, 5, 20):
        game = GameSettings(train_size=60, pairs_per_model=m, challenge="average", pool_size=60, reference_size=20)
        pools.append(roles_of(game, points_of()).pool)
    assert all(np.array_equal(pools[0], p) for p in pools)


def test_streams_are_separate_and_depend_on_seed_branch_and_index():
    keys = [(s, b, st, i) for s in (0, 1) for b in Branch for st in Stream for i in (0, 1)]
    first = {generator(*key).integers(0, 2**62) for key in keys}
    assert len(first) == len(keys)
    assert len({training_seed(s, b, i) for s in (0, 1) for b in Branch for i in range(50)}) == 100 * len(Branch)
    assert all(0 <= training_seed(7, Branch.audited, i) < 2**63 for i in range(50))


def test_the_bit_changes_no_other_stream():
    """Model i of two games that differ only in the number of pairs has the same training seed."""
    points = points_of()
    a = GameSettings(train_size=40, pairs_per_model=1, challenge="average", reference_size=20)
    b = GameSettings(train_size=40, pairs_per_model=9, reference_size=20)
    assert draw(a, roles_of(a, points), 5, 3).seed == draw(b, roles_of(b, points), 5, 3).seed


@pytest.mark.parametrize("sees", ["pair", "z0"])
@pytest.mark.parametrize("adjacency", ["substitute", "add-remove"])
def test_orientation_of_an_overfit_model(sees, adjacency):
    """TPR > FPR without folding: low loss of z1 says b = 1; for who sees z0 only, low loss says b = 0."""
    if sees == "z0" and adjacency == "add-remove":
        pytest.skip("there is no z0 in an add-remove game")
    more = {"base": "resampled", "pairs": "fresh", "sees": "z0"} if sees == "z0" else {}
    game = GameSettings(train_size=40, adjacency=adjacency, challenge="average", reference_size=20, **more)
    points = points_of()
    roles = roles_of(game, points)
    played = [experiment(game, Memoriser(), points, roles, 0, i) for i in range(60)]
    assert all(p.error is None for p in played)
    signals = Signals.of(played, adjacency, sees)
    thresholds = {
        "percentile": 10.0 if sees == "z0" else 90.0,
        "loss": 1e-9 if sees == "z0" else -1e-9,
        "difference": 0.0,
    }
    for name in thresholds:
        attack = ATTACKS[name]
        if name == "difference" and (sees == "z0" or adjacency == "add-remove"):
            continue
        tally = judge(attack.scores(signals), Given(thresholds[name]), delta=1e-5, level=0.9).tally
        assert tally.fnr + tally.fpr < 0.4, name


def test_losses_stand_where_they_belong():
    points = points_of()
    game = GameSettings(train_size=40, pairs_per_model=3, reference_size=20)
    roles = roles_of(game, points)
    outcome = experiment(game, Memoriser(), points, roles, 0, 1)
    drawn = draw(game, roles, 0, 1)
    twin = Memoriser()
    model = twin.train(points.take(drawn.training), seed=0)
    assert np.array_equal(outcome.channels["loss"][:, 0], twin.losses(model, points.take(drawn.pairs[:, 0])))
    assert np.array_equal(outcome.channels["loss"][:, 1], twin.losses(model, points.take(drawn.pairs[:, 1])))
    assert np.array_equal(outcome.channels["reference"], np.sort(twin.losses(model, points.take(roles.reference))))
    assert (outcome.channels["loss"][np.arange(3), drawn.bits] == 0).all()


def test_a_trainer_that_fails_is_an_outcome_with_its_bit():
    class Broken(Memoriser):
        def train(self, data, *, seed):
            raise RuntimeError("no more memory")

    class Leaves(Memoriser):
        def train(self, data, *, seed):
            raise SystemExit("usage: train.py")

    class Nan(Memoriser):
        def losses(self, model, points):
            return np.full(len(points[0]), np.nan)

    class Short(Memoriser):
        def losses(self, model, points):
            return np.zeros(3)

    game, points = GameSettings(train_size=40, challenge="average", reference_size=20), points_of()
    roles = roles_of(game, points)
    good = experiment(game, Memoriser(), points, roles, 0, 2)
    for trainer, text in (
        (Broken(), "no more memory"),
        (Leaves(), "usage: train.py"),
        (Nan(), "must be finite, but 22 of 22"),
        (Short(), "shape (3,)"),
    ):
        bad = experiment(game, trainer, points, roles, 0, 2)
        assert text in bad.error
        assert bad.channels is None
        assert np.array_equal(bad.bits, good.bits)
        assert np.array_equal(bad.pairs, good.pairs)


def test_duplicates_go_by_content():
    points = points_of(100)
    twice = Arrays(tuple(np.concatenate([c, c[:30]]) for c in points.columns))
    assert len(first_of_each(twice.keys())) == 100
    game = GameSettings(train_size=60, challenge="average", reference_size=20)
    roles = roles_of(game, twice)
    used = np.concatenate([roles.reference, roles.base, roles.pool])
    assert len({bytes(k) for k in twice.keys()[used]}) == len(used) == 100
    # a point equal to a canary plays no other part
    extended = points.extended(points.take(np.array([7])))
    roles = roles_of(game, extended, n_canary_points=1)
    assert 7 not in np.concatenate([roles.reference, roles.base, roles.pool])


def test_points_of_different_kinds_have_the_same_content():
    arrays = points_of(20)
    listed = as_points([(x, y) for x, y in zip(*arrays.columns, strict=True)], "list")
    assert len(first_of_each(listed.keys())) == 20
    assert listed.keys()[0] == as_points([(arrays.columns[0][0].copy(), arrays.columns[1][0])], "one").keys()[0]
    assert digest(arrays.keys()) != digest(Arrays(tuple(c[::-1] for c in arrays.columns)).keys())
    assert as_points([("a", 1), ("b", 1), ("a", 1)], "text").keys()[0] != as_points([("a1", 0)], "t").keys()[0]


def test_map_style_data_is_given_as_a_subset():
    torch = pytest.importorskip("torch")
    dataset = torch.utils.data.TensorDataset(torch.arange(12.0).reshape(6, 2), torch.arange(6))
    points = as_points(dataset, "tensors").extended([(torch.tensor([9.0, 9.0]), torch.tensor(1))])
    part = points.take(np.array([1, 6]))
    assert isinstance(part, torch.utils.data.Subset)
    assert [int(label) for _, label in part] == [1, 1]
    assert len(set(points.keys().tolist())) == 7


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"train_size": 190},
            r"at least 211 distinct points \(189 for the base, 20 for the reference, 2 for the pairs\)",
        ),
        ({"pool_size": 150}, r"150 for the pool\), but has 200"),
        (
            {"pairs_per_model": 10, "pool_size": 15},
            "game.pool_size must be at least 20, for 10 pairs per model, but got 15",
        ),
    ],
)
def test_too_few_points(changes, sentence):
    game = GameSettings(**{"train_size": 40, "reference_size": 20, "challenge": "average", **changes})
    with pytest.raises(InvalidInput, match=sentence):
        roles_of(game, points_of())


def test_gaps_against_a_loop():
    rng = np.random.default_rng(0)
    members, losses = rng.random((40, 7)) < 0.5, rng.normal(size=(40, 7))
    for i, gap in enumerate(gaps(members, losses)):
        assert gap == pytest.approx(losses[~members[:, i], i].mean() - losses[members[:, i], i].mean(), abs=1e-12)
    members[:, 2] = True
    assert gaps(members, losses)[2] == -np.inf


def test_the_worst_points_are_found_with_seeds_of_their_own():
    @dataclass(frozen=True)
    class Knows(Memoriser):
        """Remembers far-out points only."""

        def losses(self, model, points):
            far = np.abs(points[0]).max(1) > 1.5
            return np.where(far, super().losses(model, points), 1.0)

    points, among = points_of(), np.arange(100)
    rankings = [rank_with(Knows(), points, among, 0, i) for i in range(64)]
    assert {r.seed for r in rankings}.isdisjoint(training_seed(0, Branch.audited, i) for i in range(1000))
    assert all(len(r.members) == 50 for r in rankings)
    far = np.flatnonzero(np.abs(points.columns[0][:100]).max(1) > 1.5)
    assert set(worst_first(among, rankings)[: len(far)]) == set(far)
    failed = [replace(r, error="Traceback\nValueError: x") for r in rankings[:40]]
    with pytest.raises(InvalidInput, match=r"only 24 of 64 trained\. The first error: ValueError: x"):
        worst_first(among, failed + rankings[40:])
    assert isinstance(rankings[0], Ranking)


def test_a_large_reference_is_kept_as_order_statistics():
    losses = np.random.default_rng(0).permutation(np.arange(5005.0))
    kept = sketch(losses)
    assert len(kept) == SKETCH_SIZE
    assert np.abs(kept + 1 - np.arange(1, 1001) * 5006 / 1001).max() <= 0.5
    assert np.array_equal(sketch(losses[:1000]), np.sort(losses[:1000]))


def test_a_function_is_told_the_nominal_size():
    seen = []

    def observe(data, points, *, seed, size=None):
        seen.append((len(data[0]), size))
        return np.zeros(len(points[0])) + np.arange(len(points[0]))

    game = GameSettings(train_size=40, adjacency="add-remove", challenge="average", reference_size=20)
    points = points_of()
    trainer = as_trainer(observe, "observe")
    for index in range(12):
        assert experiment(game, trainer, points, roles_of(game, points), 0, index).error is None
    assert set(seen) == {(39, 40), (40, 40)}
    assert knows_size(trainer)
    assert not knows_size(as_trainer(lambda data, points, *, seed: 0, "f"))


def test_a_library_that_training_imports_is_seeded_too():
    """torch is loaded by the first model of a process: its draws are those of any other process."""
    code = """
import sys
from epsgauge.trainers.protocol import Function, observed

def observe(data, points, *, seed):
    import torch
    return torch.rand(3)

assert "torch" not in sys.modules
print(*[observed(Function(observe), None, None, 3, seed=s, size=1)["loss"].tolist() for s in (5, 5)], sep="|")
"""
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True).stdout
    first, second = out.strip().split("|")
    assert first == second


def test_a_canary_is_never_changed_to_fit():
    texts = Arrays((np.array(["ab", "cd"]), np.array([1, 2])))
    longer = texts.extended((np.array(["a very long canary"]), np.array([3])))
    assert longer.columns[0][2] == "a very long canary"
    with pytest.raises(InvalidInput, match="must fit the type of the data's points, int64, but canary 0 does not"):
        texts.extended((np.array(["x"]), np.array([1.9])))
    with pytest.raises(InvalidInput, match="uint8, but canary 1 does not"):
        Arrays((np.zeros(3, np.uint8),)).extended((np.array([5, 300]),))
    assert Arrays((np.zeros(3, np.float32),)).extended((np.array([0.1]),)).columns[0].dtype == np.float32
