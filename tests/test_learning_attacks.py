"""Attacks that learn on models set apart, against slow twins and known answers; and runs that train for them."""

import math
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from command_line import ask
from scipy.optimize import linprog, minimize
from stores import forge
from tiny_runs import pairs_plan, plan, plan_text, played

import epsgauge as eg
from epsgauge.attacks.quantile import _fitted as fitted_quantile
from epsgauge.attacks.table import ATTACKS
from epsgauge.auditing.audit import audit_run
from epsgauge.auditing.forecast import forecast
from epsgauge.errors import InvalidInput
from epsgauge.games.experiment import bits_of
from epsgauge.games.rehearsal import canary_of, is_quiet, number_of
from epsgauge.games.seeds import Branch, training_seed
from epsgauge.games.settings import GameSettings
from epsgauge.games.signals import Signals
from epsgauge.runner.executors import InProcess
from epsgauge.runner.store import FILE, Store

LEARNING = [name for name, attack in ATTACKS.items() if attack.learns]
OF_PAIRS = [name for name in LEARNING if ATTACKS[name].same_pairs]


def margins_to_signals(margins, bits, rehearsal=None, adjacency="substitute"):
    """Of margins [n, m, 2]: with the losses −log p that have them."""
    n, m = bits.shape
    pairs = np.tile(np.arange(2 * m).reshape(m, 2), (n, 1, 1))
    losses = np.logaddexp(0.0, -margins)
    if adjacency == "add-remove":
        losses[..., 0] = np.nan
    population = np.random.default_rng(n).gamma(1.0, size=(n, 30))
    seen = {"loss": losses, "reference": np.sort(population, axis=1), "population": population}
    return Signals(np.arange(n), bits, pairs, seen, adjacency, "pair", rehearsal)


def gaussian_game(n, k, m, *, seed=0, adjacency="substitute", shift=1.5):
    """Margins of members are higher by a shift; each point has a mean and a spread of its own. Judged and apart."""
    rng = np.random.default_rng(seed)
    mean, spread = rng.normal(0, 3, (m, 2)), rng.uniform(0.5, 2, (m, 2))

    def draw(bits):
        inside = np.stack([bits == 0, bits == 1], axis=-1)
        return mean + spread * rng.normal(size=(*bits.shape, 2)) + shift * inside

    apart = (np.arange(k)[:, None] + rng.integers(0, 2, (1, m))) % 2
    bits = rng.integers(0, 2, (n, m))
    known = margins_to_signals(draw(apart), apart, adjacency=adjacency)
    return margins_to_signals(draw(bits), bits, known, adjacency), spread


def auc(scores, bits):
    ones, zeros = scores[bits == 1], scores[bits == 0]
    return float(np.mean(ones[:, None] > zeros[None, :]) + np.mean(ones[:, None] == zeros[None, :]) / 2)


# slow twins: loops over models and points, in plain Python


def margin_of(loss):
    p = math.exp(-max(loss, 1e-45))
    return math.log(p) - math.log(-math.expm1(-max(loss, 1e-45)))


def by_point(seen, number):
    """Score of each pair: z1's number minus z0's."""
    sides = (1,) if seen.adjacency == "add-remove" else (1, 0)
    n, m = seen.bits.shape
    out = [[sum((1 if s else -1) * number(seen, i, j, s) for s in sides) for j in range(m)] for i in range(n)]
    return np.array(out)


def normal(values, all_values):
    """Mean and standard deviation for the values of one point; those of all points are at hand."""
    mean = sum(values) / len(values)
    if min(map(len, all_values)) >= 32:
        return mean, math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1))
    within = sum((v - sum(of) / len(of)) ** 2 for of in all_values for v in of)
    return mean, math.sqrt(within / sum(len(of) - 1 for of in all_values))


def margins_apart(seen, s, inside):
    """For each point, the margins in models set apart that have it, or that have it not."""
    apart = seen.rehearsal
    return [
        [margin_of(apart["loss"][i, j, s]) for i in range(len(apart)) if (apart.bits[i, j] == s) == inside]
        for j in range(apart.bits.shape[1])
    ]


def slow_lira(seen, i, j, s):
    at, found = margin_of(seen["loss"][i, j, s]), 0.0
    for inside, sign in ((True, 1), (False, -1)):
        known = margins_apart(seen, s, inside)
        mean, std = normal(known[j], known)
        found += sign * (-((at - mean) ** 2) / (2 * std**2) - math.log(std))
    return found


def slow_offline(seen, i, j, s):
    known = margins_apart(seen, s, False)
    mean, std = normal(known[j], known)
    return (margin_of(seen["loss"][i, j, s]) - mean) / std


def slow_attack_r(seen, i, j, s):
    apart = seen.rehearsal
    others = [apart["loss"][k, j, s] for k in range(len(apart)) if apart.bits[k, j] != s]
    return 100 * sum(loss > seen["loss"][i, j, s] for loss in others) / (len(others) + 1)


def slow_rmia(seen, i, j, s):
    def mean(values):
        return sum(values) / len(values)

    apart = seen.rehearsal
    p = [[math.exp(-apart["loss"][k, j, s]) for k in range(len(apart)) if (apart.bits[k, j] == s) == w] for w in (0, 1)]
    ratio, beaten = math.exp(-seen["loss"][i, j, s]) / mean([mean(p[0]), mean(p[1])]), 0
    for z in range(30):
        others = mean([math.exp(-apart["population"][k, z]) for k in range(len(apart))])
        beaten += ratio >= math.exp(-seen["population"][i, z]) / others
    return 100 * beaten / 30


TWINS = {"lira": slow_lira, "lira-offline": slow_offline, "attack-r": slow_attack_r, "rmia": slow_rmia}


@pytest.mark.parametrize("name", TWINS)
@pytest.mark.parametrize("adjacency", ["substitute", "add-remove"])
@pytest.mark.parametrize("k", [7, 64])
def test_an_attack_is_its_slow_twin(name, adjacency, k):
    seen, _ = gaussian_game(3, k, 4, adjacency=adjacency, seed=k)
    np.testing.assert_allclose(ATTACKS[name].score(seen), by_point(seen, TWINS[name]), rtol=1e-8, atol=1e-9)


def slow_features(seen, i, j, s):
    loss, own = seen["loss"][i, j, s], seen["reference"][i].tolist()
    mean = sum(own) / len(own)
    spread = math.sqrt(sum((x - mean) ** 2 for x in own) / len(own))
    return [loss, margin_of(loss), sum(x < loss for x in own), (loss - mean) / spread]


@pytest.mark.parametrize("adjacency", ["substitute", "add-remove"])
def test_shadow_is_a_logistic_regression_on_all_points_of_models_set_apart(adjacency):
    """Its twin minimises the penalised loss with SciPy's BFGS, whose gradient tolerance is 1e-9."""
    seen, _ = gaussian_game(3, 12, 4, adjacency=adjacency)
    sides, apart = (1,) if adjacency == "add-remove" else (0, 1), seen.rehearsal
    rows = [(i, j, s) for i in range(12) for j in range(4) for s in sides]
    x = np.array([slow_features(apart, *row) for row in rows])
    inside = np.array([apart.bits[i, j] == s for i, j, s in rows], float)
    mean, std = x.mean(axis=0), x.std(axis=0)

    def loss(w):
        odds = w[0] + (x - mean) / std @ w[1:]
        return np.sum(np.logaddexp(0, odds) - inside * odds) + np.sum(w[1:] ** 2) / 2

    w = minimize(loss, np.zeros(5), options={"gtol": 1e-9}).x
    twin = by_point(seen, lambda *row: w[0] + (np.array(slow_features(*row)) - mean) / std @ w[1:])
    np.testing.assert_allclose(ATTACKS["shadow"].score(seen), twin, atol=1e-4)


def test_shadow_learns_on_other_pairs_and_finds_one_threshold_for_all(tmp_path):
    seen, _ = gaussian_game(60, 64, 40, adjacency="add-remove")
    others = replace(seen, rehearsal=replace(seen.rehearsal, pairs=seen.rehearsal.pairs + 1000))
    found = {name: auc(ATTACKS[name].score(others), seen.bits) for name in ("loss", "shadow")}
    assert found["shadow"] > found["loss"] - 0.01  # what it knows of a point is its loss
    full = gaussian_game(60, 64, 40, shift=4)[0]
    alone = replace(full, sees="z0")
    assert auc(ATTACKS["shadow"].score(alone), full.bits) > 0.6
    run = played(pairs_plan(n_models=30, shift=3.0, audit={"attack": "shadow"}, rehearsal_models=10), tmp_path / "a")
    audit = eg.audit(run)
    assert audit.verdict.adversary.attack == "shadow"
    assert audit.verdict.promise == "guaranteed"


def test_quantile_regression_is_the_linear_programme():
    """Weights of the least check loss, by HiGHS; the fast one counts residuals below 1e-4 of the spread as that."""
    rng = np.random.default_rng(0)
    x = np.column_stack([np.ones(60), rng.normal(size=(60, 2))])
    y = x @ [1.0, 2.0, -1.0] + rng.gamma(1.0, size=60)
    for level in (0.5, 0.9):
        costs = np.concatenate([np.zeros(6), np.full(60, level), np.full(60, 1 - level)])
        equal = np.hstack([x, -x, np.eye(60), -np.eye(60)])
        found = linprog(costs, A_eq=equal, b_eq=y)

        def loss(w, level=level):
            left = y - x @ w
            return np.sum(np.where(left > 0, level * left, (level - 1) * left))

        assert loss(fitted_quantile(x, y, level, float(y.std()))) < found.fun * 1.001


def test_quantiles_of_points_are_those_that_were_fitted():
    """Of points that no model has, half are above the median, and a tenth above the upper quantile."""
    seen, _ = gaussian_game(200, 64, 40, adjacency="add-remove", shift=0.0)
    score = ATTACKS["quantile"].score(seen)
    assert np.mean(score > 0) == pytest.approx(0.5, abs=0.05)
    assert np.mean(score > 1) == pytest.approx(0.1, abs=0.03)


def test_lira_is_the_likelihood_ratio_of_two_gaussians():
    seen, spread = gaussian_game(40, 8000, 3)
    margins = -seen["loss"] - np.log(-np.expm1(-seen["loss"]))
    known = -seen.rehearsal["loss"] - np.log(-np.expm1(-seen.rehearsal["loss"]))
    without = np.stack([[known[seen.rehearsal.bits[:, j] != s, j, s].mean() for s in (0, 1)] for j in range(3)])
    exact = (1.5 / spread**2 * (margins - without - 0.75)) @ [-1.0, 1.0]  # of a shift by 1.5
    assert np.abs(ATTACKS["lira"].score(seen) - exact).max() < 0.6
    assert np.corrcoef(ATTACKS["lira"].score(seen).ravel(), exact.ravel())[0, 1] > 0.999


def test_learned_scores_come_near_the_ideal_and_thresholds_for_all_points_do_not():
    seen, spread = gaussian_game(60, 64, 40, adjacency="add-remove")
    ideal = float(np.mean(0.5 * (1 + np.vectorize(math.erf)(1.5 / (2 * spread[:, 1])))))  # of each point by itself
    found = {name: auc(ATTACKS[name].score(seen), seen.bits) for name in ("loss", *LEARNING)}
    assert found["lira"] > ideal - 0.03
    assert all(found[name] > found["loss"] + (0.05 if name == "rmia" else 0.1) for name in OF_PAIRS)


def test_few_models_share_a_variance_and_two_are_enough():
    seen, _ = gaussian_game(60, 2, 40, adjacency="add-remove", shift=4)
    found = {name: auc(ATTACKS[name].score(seen), seen.bits) for name in ("loss", *LEARNING)}
    assert min(found["lira"], found["lira-offline"]) > found["loss"]
    assert found["attack-r"] > 0.7  # whose score has two values then
    alone = replace(seen, rehearsal=seen.rehearsal[np.array([0])])
    with pytest.raises(InvalidInput, match=r"with and without each point, but of the 1 of this run none has b = "):
        ATTACKS["lira"].scores(alone)


def test_lira_takes_the_margins_that_a_trainer_gives_and_any_scale_of_them():
    seen, _ = gaussian_game(5, 12, 3)
    base = ATTACKS["lira"].score(seen)

    def with_margins(scale, shift):
        def of(s):
            margins = -s["loss"] - np.log(-np.expm1(-s["loss"]))
            return replace(s, channels={**s.channels, "margin": scale * margins + shift})

        return replace(of(seen), rehearsal=of(seen.rehearsal))

    np.testing.assert_allclose(ATTACKS["lira"].score(with_margins(1, 0)), base, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(ATTACKS["lira"].score(with_margins(3, 5)), base, rtol=1e-6, atol=1e-9)


def test_attack_r_depends_on_the_order_of_losses_alone_and_its_fpr_is_known():
    seen, _ = gaussian_game(400, 40, 20, adjacency="add-remove", shift=0.0)  # no point leaks
    score = ATTACKS["attack-r"].score(seen)

    def cubed(s):
        return replace(s, channels={**s.channels, "loss": s["loss"] ** 3})

    assert np.array_equal(ATTACKS["attack-r"].score(replace(cubed(seen), rehearsal=cubed(seen.rehearsal))), score)
    counts = np.unique(score, return_counts=True)[1]  # of 20 models without a point: each of 21 ranks as often
    assert len(counts) == 21
    rank = np.abs(np.cumsum(counts) / score.size - np.arange(1, 22) / 21).max()
    assert rank < 0.06  # the same 20 models for all


@pytest.mark.parametrize("name", LEARNING)
def test_losses_of_any_kind_have_finite_scores(name):
    seen, _ = gaussian_game(5, 12, 3)
    for change in (lambda x: 0 * x, lambda x: x - 9, lambda x: np.round(x), lambda x: 1e6 * x):

        def of(s, change=change):
            return replace(s, channels={**s.channels, "loss": change(s["loss"])})

        assert np.isfinite(ATTACKS[name].scores(replace(of(seen), rehearsal=of(seen.rehearsal))).score).all()
    assert not ATTACKS[name].score(replace(seen, channels={k: 0 * v for k, v in seen.channels.items()})).std() > 1e9


@pytest.mark.parametrize("name", LEARNING)
def test_a_model_is_scored_by_itself_and_exchanged_points_turn_the_sign(name):
    seen, _ = gaussian_game(6, 12, 3)
    score = ATTACKS[name].score(seen)
    assert np.array_equal(ATTACKS[name].score(seen[np.array([4])]), score[[4]])

    def swapped(s):
        return replace(s, bits=1 - s.bits, channels={**s.channels, "loss": s["loss"][..., ::-1]})

    np.testing.assert_allclose(ATTACKS[name].score(replace(swapped(seen), rehearsal=swapped(seen.rehearsal))), -score)


@pytest.mark.parametrize("name", LEARNING)
def test_what_a_learning_attack_refuses(name):
    seen, _ = gaussian_game(5, 12, 3)
    without = rf'{name} learns on models set apart, but this run has none. Declare attack = "{name}" in \[audit\]'
    for none in (None, seen.rehearsal[np.array([], int)]):
        with pytest.raises(InvalidInput, match=without):
            ATTACKS[name].scores(replace(seen, rehearsal=none))
    if name not in OF_PAIRS:
        return
    with pytest.raises(InvalidInput, match=r'the pairs of this run differ. Set pairs = "fixed" in \[game\], and run'):
        ATTACKS[name].scores(replace(seen, pairs=seen.pairs + 1))
    with pytest.raises(InvalidInput, match=rf'attack = "{name}" learns .* game.pairs is "fresh". Set pairs = "fixed"'):
        pairs_plan(audit={"attack": name})


def test_rmia_needs_reference_points_one_by_one(tmp_path):
    words = r'audit.attack = "rmia" compares with each reference point, .* Set population = true in \[game\]'
    with pytest.raises(InvalidInput, match=words):
        learning_plan("rmia", population=None)
    run = played(learning_plan(population=None), tmp_path / "a")
    with pytest.raises(
        InvalidInput, match=r"needs the channel 'population', .* Set population = true in \[game\], and"
    ):
        eg.audit(run, attack="rmia")
    kept = played(learning_plan(), tmp_path / "b").signals()
    assert np.array_equal(np.sort(kept["population"], axis=1), kept["reference"])
    assert not np.array_equal(kept["population"], kept["reference"])


# bits of models set apart


def test_of_two_models_set_apart_each_has_the_opposite_bits_of_the_other():
    game = GameSettings(train_size=50, pairs_per_model=6)
    numbers = [number_of(0, i, quiet=False) for i in range(40)]
    bits = np.stack([bits_of(game, 3, number, Branch.rehearsal) for number in numbers])
    assert (bits[::2] + bits[1::2] == 1).all()
    assert len(np.unique(bits, axis=0)) > 20  # and not the same two sets again and again
    assert bits[:, 0].tolist() == [0, 1] * 20
    one = GameSettings(train_size=50)
    assert [bits_of(one, 3, number, Branch.rehearsal).item() for number in numbers] == [0, 1] * 20


# runs


def learning_plan(name="lira", m=4, n_models=30, **kw):
    game = {"pairs": "fixed", "rehearsal_models": 10, "population": True, **kw}
    return pairs_plan(m, n_models=n_models, shift=3.0, audit={"attack": name}, **game)


def apart(run):
    with Store.read(run.path / FILE) as store:
        found = store.signals(run.plan.game, rehearsal=True)
    return found[is_quiet(found.models) == 0]


@pytest.mark.parametrize("name", LEARNING)
def test_a_plan_with_a_learning_attack_trains_models_for_it(tmp_path, name):
    run = played(learning_plan(name), tmp_path / "a")
    assert apart(run).models.tolist() == list(range(10))
    assert (apart(run).bits.mean(axis=0) == 0.5).all()
    found = audit_run(run)
    assert found.verdict.adversary.attack == name
    assert "here and in 10 models that it learned on" in found.verdict.adversary.access
    assert found.evidence.scores.model.min() >= 8  # those before it choose the rule, and none is one set apart
    assert len(found.evidence.scores) == 22 * 4
    assert eg.verify(run.path).intact


def test_resuming_changes_no_bit_of_models_set_apart(tmp_path):
    whole, run = (played(learning_plan(), tmp_path / name) for name in ("whole", "run"))
    forge(run.path / FILE, "DELETE FROM models WHERE idx > 7", "DELETE FROM rehearsals WHERE idx % 3")
    back = played(learning_plan(), run.path)
    assert apart(back)["loss"].tobytes() == apart(whole)["loss"].tobytes()
    assert back.signals()["loss"].tobytes() == whole.signals()["loss"].tobytes()
    assert np.array_equal(audit_run(back).evidence.scores.score, audit_run(whole).evidence.scores.score)


def test_models_set_apart_that_are_trained_together_resume_bit_for_bit(tmp_path):
    pytest.importorskip("torch")
    game = {"train_size": 60, "pairs_per_model": 4, "challenge": "average", "pairs": "fixed", "rehearsal_models": 10}
    trainer = {"use": "sgd", "model": "logistic", "epochs": 2, "engine": "stacked"}
    p = eg.Plan(name="a", n_models=12, data="digits", trainer=trainer, game=game, audit={"attack": "lira"})
    whole, run = (played(p, tmp_path / name) for name in ("whole", "run"))
    forge(run.path / FILE, "DELETE FROM models WHERE idx > 7", "DELETE FROM rehearsals WHERE idx % 3")
    back = played(p, run.path)
    assert len(apart(back)) == 10
    assert apart(back)["loss"].tobytes() == apart(whole)["loss"].tobytes()
    assert back.signals()["loss"].tobytes() == whole.signals()["loss"].tobytes()


def test_the_benchmark_counts_members_above_so_many_others(monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parent.parent / "benchmarks")
    from attacks import auc as fast
    from attacks import found_at

    bits = np.repeat([0, 1], 100)
    scores = np.concatenate([np.arange(100), np.arange(100) + 50]).astype(float)
    assert found_at(0.01, scores, bits) == 0.51  # above 98, which one other is
    assert found_at(0.001, scores, bits) == 0.5
    assert found_at(0.01, np.zeros(200), bits) == 0.0
    ties = np.round(scores / 7)
    assert fast(ties, bits) == pytest.approx(auc(ties, bits))


def test_a_run_without_models_set_apart_says_what_to_do(tmp_path):
    run = played(learning_plan("percentile", rehearsal_models=None), tmp_path / "a")
    with pytest.raises(InvalidInput, match="the attack lira learns on models set apart, but this run has none"):
        eg.audit(run, attack="lira")
    other = played(learning_plan("percentile"), tmp_path / "b")  # its plan has rehearsal_models
    assert eg.audit(other, attack="lira").verdict.adversary.attack == "lira"


def test_where_no_model_can_be_learned_on_the_run_says_so_before_it_plays(tmp_path):
    @dataclass(frozen=True)
    class Broken:
        fails: int  # models that fail, of 4 that are set apart

        def train(self, data, *, seed, size=None):
            if seed in [training_seed(0, Branch.rehearsal, number) for number in range(self.fails)]:
                raise RuntimeError("no disk")
            return 0

        def losses(self, model, points):
            return np.zeros(len(points[0]))

    def broken(fails):
        game = {"train_size": 20, "pairs_per_model": 2, "pairs": "fixed", "rehearsal_models": 4, "reference_size": 10}
        data = {"use": "zeros", "size": 60}
        return eg.Plan(name="a", n_models=9, data=data, trainer=Broken(fails), game=game, audit={"attack": "lira"})

    with pytest.raises(
        InvalidInput, match=r"all 4 models set apart for it failed. .* RuntimeError: no disk Mend it, and"
    ):
        played(broken(4), tmp_path / "a")
    assert not eg.Run.open(tmp_path / "a").n_done
    assert len(apart(played(broken(2), tmp_path / "b"))) == 2


def test_a_canary_is_chosen_first_and_the_attack_learns_on_the_one_that_was_taken(tmp_path):
    rng = np.random.default_rng(0)
    data = rng.normal(size=(120, 5)) * [1, 1, 1, 1, 0], rng.integers(0, 3, 120)

    @dataclass(frozen=True)
    class Sum:
        noise_multiplier: float = 1.0

        def train(self, data, *, seed, size):
            return np.clip(data[0], -1, 1).sum(axis=0) + np.random.default_rng(seed).normal(size=5)

        def losses(self, model, points):
            return -(points[0] @ model) / 100

    game = {"train_size": 50, "reference_size": 20, "rehearsal_models": 40}
    p = eg.Plan(name="a", n_models=60, data=lambda: data, trainer=Sum(), game=game, audit={"attack": "lira"})
    run = eg.run(p, out=tmp_path / "a", executor=InProcess())
    known = apart(run)
    assert (canary_of(known.models) == run.canary["number"]).sum() == 40
    assert audit_run(run).verdict.adversary.attack == "lira"


def test_check_counts_the_models_that_an_attack_learns_on(tmp_path):
    plain, learning = plan(), plan(audit={"attack": "lira"})
    assert (plain.n_learning, learning.n_learning) == (0, 64)
    assert forecast(learning).n_trained == forecast(plain).n_trained + 64
    file = tmp_path / "plan.toml"
    file.write_text(plan_text(attack="lira"))
    assert "after 64 that the attack learns on" in " ".join(ask("check", file).split())
    file.write_text(plan_text(attack="lira", challenge='canaries = "auto"').replace('"zeros"', '"digits"', 1))
    file.write_text(file.read_text(encoding="utf-8").replace("size = 60\n", "", 1))
    assert "more try canaries, teach the attack, or have no noise as a control" in " ".join(ask("check", file).split())
