"""Adversaries who see more than losses: gradient canaries and records in every update, and the last model."""

import re
import shutil
import sqlite3
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from opacus import PrivacyEngine
from scipy.stats import kstest
from stores import forge
from tiny_runs import played, stopped
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import epsgauge as eg
from epsgauge.data.digits import digits
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.reporting.record import of_run
from epsgauge.runner.fingerprint import fingerprint
from epsgauge.runner.store import FILE
from epsgauge.runner.trial import attempt
from epsgauge.trainers.coordinates import Coordinates
from epsgauge.trainers.watches import GradientCanaries, RecordCanaries

N, BATCH, STEPS = 40, 10, 8  # of a training: each point is in a batch with probability 1/4
TRAINER = {"use": "dpsgd", "model": "logistic", "epochs": 2, "batch_size": BATCH, "noise_multiplier": 1.0}
ATTACKS = {"white-box": "updates", "hidden-state": "displacement"}
RECORDS = {"sees": "updates", "inserts": "record"}


def plan(adversary="white-box", *, trainer=None, n_models=7, control=False, audit=None, data="digits", **game):
    preset = isinstance(adversary, str)
    if isinstance(trainer, dict) and "use" not in trainer:
        trainer = {**TRAINER, **trainer}
    return eg.Plan(
        name="watched",
        n_models=n_models,
        probe=False,
        control=control,
        data=data,
        trainer=TRAINER if trainer is None else trainer,
        game={"train_size": N, "reference_size": 15, "challenge": "average", **game},
        adversary={"preset": adversary} if preset else adversary,
        audit={"attack": ATTACKS[adversary] if preset else "updates", **(audit or {})},
    )


@pytest.fixture
def groups_of_three(monkeypatch):
    monkeypatch.setattr("epsgauge.trainers.stacked.group._MOST_FLAT", 3)


def rows(folder):
    query = "SELECT idx, seed, bits, pairs, signals FROM models ORDER BY idx"
    return sqlite3.connect(folder / FILE).execute(query).fetchall()


def array(name, folder):
    found = sqlite3.connect(folder / FILE).execute("SELECT data FROM arrays WHERE name = ?", (name,)).fetchone()
    return np.frombuffer(found[0], "<i8")


@pytest.mark.parametrize("adversary", ["white-box", "hidden-state", RECORDS], ids=str)
@pytest.mark.parametrize(("model", "adjacency"), [("logistic", "substitute"), ("mlp", "add-remove")])
def test_both_engines_show_the_same(tmp_path, groups_of_three, adversary, adjacency, model):
    game = {"adjacency": adjacency, "pairs_per_model": 2}
    seen = [
        played(plan(adversary, trainer={"model": model, "engine": engine}, **game), tmp_path / engine).signals()
        for engine in ("stacked", "opacus")
    ]
    names = ("displacement",) if adversary == "hidden-state" else ("llr", "alignment")
    for name in names:
        assert seen[0][name].shape == (7, 2)
        np.testing.assert_allclose(seen[0][name], seen[1][name], rtol=0, atol=1e-4)
        assert np.ptp(seen[0][name]) > 0.1
    gradients = adversary != RECORDS
    assert np.isnan(seen[0]["loss"][..., 1]).all() == gradients
    assert (seen[0].pairs == -1).all() == gradients


def ideal(n, adjacency, seed=1):
    """Ratios of an adversary who is shown the canary and the noise alone, by the densities themselves."""
    rng, q = np.random.default_rng(seed), BATCH / N
    in_batch, noise = rng.random((2, n, STEPS)) < q, rng.normal(size=(2, n, STEPS))
    zero = -1.0 if adjacency == "substitute" else 0.0
    x = noise + in_batch * np.array([zero, 1.0])[:, None, None]

    def density(mean):
        return (1 - q) * np.exp(-(x**2) / 2) + q * np.exp(-((x - mean) ** 2) / 2)

    return np.log(density(1.0) / density(zero)).sum(axis=2)


@pytest.mark.parametrize("adjacency", ["substitute", "add-remove"])
def test_gradient_canaries_give_the_ratios_of_the_ideal_adversary(tmp_path, adjacency):
    signals = played(plan(n_models=40, pairs_per_model=20, adjacency=adjacency), tmp_path / "a").signals()
    known = ideal(20_000, adjacency)
    for bit in (0, 1):
        assert kstest(signals["llr"][signals.bits == bit], known[bit]).pvalue > 0.01
    assert signals["llr"][signals.bits == 1].mean() > signals["llr"][signals.bits == 0].mean() + 0.5


def test_each_canary_draws_on_its_own(tmp_path):
    signals = played(plan(n_models=60, pairs_per_model=10, control=True), tmp_path / "a").signals()
    count = np.abs(signals["alignment"]) / 2  # without noise: how often a canary took part
    np.testing.assert_allclose(count, np.round(count), atol=1e-4)
    assert abs(count.mean() - STEPS * BATCH / N) < 4 * np.sqrt(STEPS * 0.25 * 0.75 / count.size)
    assert abs(np.corrcoef(count.T) - np.eye(10)).max() < 0.5
    assert (np.sign(signals["alignment"]) == np.where(signals.bits == 1, 1, -1))[count > 0].all()


def test_the_survey_takes_coordinates_that_no_record_uses(tmp_path):
    given = {"rule": "given", "threshold": 0.0}
    played(plan(trainer={"batch_size": N}, n_models=1, pairs_per_model=30, audit=given), tmp_path / "a")
    found, base = array("directions", tmp_path / "a"), array("base", tmp_path / "a")
    assert len(set(found.tolist())) == 30
    assert len(base) == N - 30
    assert found.max() < 640  # weights of 10 classes by 64 pixels; after them come biases, which every record uses
    assert not digits()[0].reshape(-1, 64)[base][:, found % 64].any()
    assert not np.array_equal(found, np.sort(found))  # in random order


@pytest.mark.parametrize("adversary", ["white-box", RECORDS], ids=str)
def test_neither_groups_nor_interruptions_change_what_is_seen(tmp_path, groups_of_three, adversary):
    played(plan(adversary), tmp_path / "whole")
    whole = rows(tmp_path / "whole")
    stopped(plan(adversary), tmp_path / "stopped", 2)
    played(plan(adversary), tmp_path / "stopped")
    assert rows(tmp_path / "stopped") == whole
    shutil.copytree(tmp_path / "whole", tmp_path / "gaps")
    forge(tmp_path / "gaps" / FILE, "DELETE FROM models WHERE idx IN (1, 3, 4)")
    played(plan(adversary), tmp_path / "gaps")
    assert rows(tmp_path / "gaps") == whole


def convolutions():
    return nn.Sequential(nn.Conv2d(1, 2, 3, stride=2), nn.GroupNorm(1, 2), nn.Tanh(), nn.Flatten(), nn.Linear(18, 10))


def with_dropout():
    return nn.Sequential(nn.Linear(64, 8), nn.Tanh(), nn.Dropout(0.3), nn.Linear(8, 10))


def images():
    x, y = digits()
    return x.reshape(-1, 1, 8, 8), y


def test_both_engines_agree_on_records_that_are_images(tmp_path):
    trainers = [{"model": "test_white_box:convolutions", "epochs": 1, "engine": e} for e in ("stacked", "opacus")]
    runs = [played(plan(RECORDS, trainer=t, n_models=2, data=images), tmp_path / t["engine"]) for t in trainers]
    first, second = (run.signals()["llr"] for run in runs)
    np.testing.assert_allclose(first, second, atol=1e-3)


@pytest.mark.parametrize("engine", ["stacked", "opacus"])
def test_who_watches_records_changes_no_model(tmp_path, engine):
    """Dropout draws nothing for the gradients of records."""
    kw = {"trainer": {"model": "test_white_box:with_dropout", "engine": engine}, "audit": {"attack": "loss"}}
    black, white = (played(plan(a, **kw), tmp_path / str(len(a))).signals() for a in ({}, RECORDS))
    assert np.array_equal(black["loss"], white["loss"])
    assert np.ptp(white["llr"]) > 0.1


def test_hidden_state_a_full_batch_moves_the_canary_by_a_gaussian(tmp_path):
    trainer = {"batch_size": N, "epochs": 5, "learning_rate": 0.8, "noise_multiplier": 3.0, "max_grad_norm": 0.5}
    signals = played(plan("hidden-state", trainer=trainer, n_models=50, pairs_per_model=20), tmp_path / "a").signals()
    unit, steps = 0.8 * 0.5 / N, 5  # what a canary moves its weight in one step
    sign = np.where(signals.bits == 1, 1.0, -1.0)
    standard = (signals["displacement"] - sign * steps * unit) / (unit * 3.0 * np.sqrt(steps))
    assert kstest(standard.ravel(), "norm").pvalue > 0.01


# A user's own loops.


@dataclass(frozen=True)
class Opacus:
    """A loop with PrivacyEngine, and the one line that shows it to the adversary."""

    noise_multiplier: float = 1.0
    batch_size: int = BATCH
    records: bool = False

    def train(self, data, *, seed, watch=None):
        x, y = (torch.from_numpy(np.asarray(part)) for part in data)
        model = nn.Linear(64, 10)
        nn.init.zeros_(model.weight)
        nn.init.zeros_(model.bias)
        model, optimizer, loader = PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.5),
            data_loader=DataLoader(TensorDataset(x.float(), y), batch_size=self.batch_size),
            noise_multiplier=self.noise_multiplier,
            max_grad_norm=1.0,
        )
        if watch is not None:
            optimizer.attach_step_hook(watch.of(model) if self.records else watch)
        for _ in range(2):
            for images, labels in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(images), labels).backward()
                optimizer.step()
        return model

    def losses(self, model, points):
        x, y = (torch.from_numpy(np.asarray(part)) for part in points)
        with torch.no_grad():
            return nn.functional.cross_entropy(model(x.float()), y, reduction="none")

    def privacy(self, n):
        return DPSGD(sample_rate=self.batch_size / n, noise_multiplier=1.0, steps=2 * n // self.batch_size)


@pytest.mark.filterwarnings("ignore:Full backward hook:UserWarning", "ignore:Secure RNG:UserWarning")
@pytest.mark.parametrize("adversary", ["white-box", "hidden-state"])
def test_one_line_in_a_loop_of_opacus_shows_what_the_engine_shows(tmp_path, adversary):
    """Without noise nothing but the canary moves its coordinate, and when it takes part is up to the watch."""
    ours = played(plan(adversary, n_models=4, control=True), tmp_path / "ours").signals()
    own = played(plan(adversary, trainer=Opacus(), n_models=4, control=True), tmp_path / "own").signals()
    name = "llr" if adversary == "white-box" else "displacement"
    # Opacus divides by 9: 39 points at a rate of 1/4, rounded down
    divisor = 1.0 if adversary == "white-box" else BATCH / 9
    np.testing.assert_allclose(own[name], divisor * ours[name], atol=1e-5)
    assert np.ptp(own[name]) > 0.01


@pytest.mark.filterwarnings("ignore:Full backward hook:UserWarning", "ignore:Secure RNG:UserWarning")
def test_records_in_a_loop_of_opacus_are_those_of_the_engine(tmp_path):
    """With full batches and no noise both loops do the same."""
    kw = {"n_models": 4, "control": True}
    ours = played(plan(RECORDS, trainer={"batch_size": N}, **kw), tmp_path / "ours").signals()
    own = played(plan(RECORDS, trainer=Opacus(batch_size=N, records=True), **kw), tmp_path / "own").signals()
    for name in ("llr", "alignment", "loss"):
        np.testing.assert_allclose(own[name], ours[name], atol=1e-4)


@pytest.mark.filterwarnings("ignore:Full backward hook:UserWarning", "ignore:Secure RNG:UserWarning")
@pytest.mark.parametrize("hook", [lambda watch, model: watch, lambda watch, model: watch.of(model)])
def test_the_accountant_of_opacus_goes_on_counting(hook):
    engine, watch, replaced = PrivacyEngine(), canaries([0]), canaries([1])
    model, optimizer, batches = two_steps(engine, nn.Linear(3, 2))
    optimizer.attach_step_hook(replaced)
    optimizer.attach_step_hook(hook(watch, model))
    stepped(model, optimizer, batches)
    assert engine.accountant.history[0][2] == watch.n_steps == 2
    assert replaced.n_steps == 0
    optimizer.attach_step_hook(len)  # another hook takes the place of all, as ever
    assert optimizer.step_hook is len


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("accountant", ["rdp", "prv", "gdp"])
def test_a_training_without_noise_has_an_infinite_epsilon(accountant):
    canaries([0])
    for noise, (low, high) in {1.0: (0.01, 10.0), 0.0: (np.inf, np.inf)}.items():
        engine = PrivacyEngine(accountant=accountant)
        engine.accountant.step(noise_multiplier=noise, sample_rate=0.1)
        assert low <= engine.get_epsilon(1e-5) <= high


@pytest.mark.filterwarnings("ignore:Full backward hook:UserWarning", "ignore:Secure RNG:UserWarning")
@pytest.mark.parametrize(
    ("hook", "sentence"),
    [
        (lambda watch, net: watch, "Use optimizer.attach_step_hook(watch.of(model))."),
        (lambda watch, net: watch.of(net), "needs the model that make_private returned, but got Linear."),
    ],
)
def test_records_need_the_model_that_opacus_trains(hook, sentence):
    net, watch = nn.Linear(3, 2), records("substitute")
    model, optimizer, batches = two_steps(PrivacyEngine(), net)
    optimizer.attach_step_hook(hook(watch, net))
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        stepped(model, optimizer, batches)


def two_steps(engine, net):
    torch.manual_seed(0)  # of the batches
    return engine.make_private(
        module=net,
        optimizer=torch.optim.SGD(net.parameters(), lr=0.1),
        data_loader=DataLoader(TensorDataset(torch.ones(6, 3), torch.zeros(6, dtype=torch.int64)), batch_size=3),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
    )


def stepped(model, optimizer, batches):
    for images, labels in batches:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()


@dataclass(frozen=True)
class Loop:
    """Least squares in NumPy on means of clipped gradients; the class of a digit is its target."""

    noise_multiplier: float = 1.0
    records: bool = False
    calls: bool = True
    ends: bool = True
    gives: str = ""

    def train(self, data, *, seed, size=None, watch=None):
        rng, weights = np.random.default_rng(seed), np.zeros((8, 8))
        x, y = np.asarray(data[0], float), np.asarray(data[1])

        def clipped(x, y):
            g = (x @ weights.ravel() - y)[:, None] * x
            return g / np.maximum(1, np.linalg.norm(g, axis=1) / 2.0)[:, None]

        if watch is not None and self.ends:
            watch.start(weights)
        for step in range(STEPS):
            rows = rng.random(len(x)) < BATCH / size
            update = clipped(x[rows], y[rows]).sum(axis=0) + rng.normal(0, 2.0 * self.noise_multiplier, 64)
            update = update.reshape(8, 8) / BATCH
            if watch is not None and self.calls:
                more = {"gradients": list(clipped(*map(np.asarray, watch.records)))} if self.records else {}
                update = watch(step, update, max_grad_norm=2.0, divisor=BATCH, **more)
            weights = weights - 0.1 * update
        if watch is not None and self.ends:
            watch.end(weights)
        return weights

    def losses(self, model, points):
        found = (np.asarray(points[0], float) @ model.ravel() - np.asarray(points[1])) ** 2
        return {"loss": found, self.gives: [1.0]} if self.gives else found

    def privacy(self, n):
        return DPSGD(sample_rate=BATCH / n, noise_multiplier=1.0, steps=STEPS)


@pytest.mark.parametrize("adversary", ["white-box", "hidden-state"])
def test_a_loop_in_numpy(tmp_path, adversary):
    signals = played(plan(adversary, trainer=Loop(), n_models=100, pairs_per_model=9), tmp_path / "a").signals()
    if adversary == "white-box":
        known = ideal(20_000, "substitute")
        for bit in (0, 1):
            assert kstest(signals["llr"][signals.bits == bit], known[bit]).pvalue > 0.01
    else:
        mean = 0.1 * 2.0 / BATCH * STEPS * BATCH / N  # how far a canary moves its weight
        moved = signals["displacement"] * np.where(signals.bits == 1, 1, -1)
        assert moved.mean() == pytest.approx(mean, abs=4 * moved.std() / np.sqrt(moved.size))


class OnlyTrains:
    """The loop without `losses`."""

    def __init__(self, loop):
        self.train, self.privacy = loop.train, loop.privacy
        if loop.noise_multiplier:
            self.without_noise = lambda: OnlyTrains(Loop(noise_multiplier=0.0, records=loop.records))


@pytest.mark.parametrize("adversary", ["white-box", "hidden-state", RECORDS], ids=str)
def test_who_watches_needs_no_losses(tmp_path, adversary):
    loop = Loop(records=adversary == RECORDS)
    a_plan = plan(adversary, trainer=OnlyTrains(loop), n_models=30)
    ours, theirs = played(a_plan, tmp_path / "a"), played(plan(adversary, trainer=loop, n_models=30), tmp_path / "b")
    watched = theirs.signals().channels.keys() - {"loss", "reference"}
    assert ours.signals().channels.keys() == watched
    assert all(np.array_equal(ours.signals()[name], theirs.signals()[name]) for name in watched)
    assert eg.audit(ours).verdict is not None
    tried = attempt(a_plan)[0]
    assert tried.member_loss is None
    assert not any("losses" in warning for warning in tried.warnings)


def test_an_attack_by_losses_needs_them(tmp_path):
    a_plan = plan(RECORDS, trainer=OnlyTrains(Loop(records=True)), n_models=12, audit={"attack": "loss"})
    with pytest.raises(InvalidInput, match="can only train"):
        played(a_plan, tmp_path / "a")


def apart():
    """Points whose gradients are orthogonal, and always clipped."""
    return 3 * np.eye(64), np.ones(64)


def test_records_in_numpy_are_weighed_by_their_gradients(tmp_path):
    a_plan = plan(RECORDS, trainer=Loop(records=True), n_models=200, data=apart)
    signals = played(a_plan, tmp_path / "a").signals()
    rng, q = np.random.default_rng(1), BATCH / N
    x = rng.normal(size=(2, 20_000, STEPS))  # along the gradients of the point that is in, and of the other
    x[0] += rng.random(x[0].shape) < q
    logs = np.log(1 - q + q * np.exp(x - 0.5)).sum(axis=2)
    signed = signals["llr"] * np.where(signals.bits == 1, 1, -1)
    assert kstest(signed.ravel(), logs[0] - logs[1]).pvalue > 0.01


def test_the_ratio_of_records_by_its_formula():
    """Gradients longer than the clipping norm are clipped; updates that are means count as sums."""
    q, sigma, norm = 0.3, 1.7, 2.0
    rng = np.random.default_rng(0)
    g1, g0 = rng.normal(size=(2, 6)) * np.array([[0.2], [5.0]])
    watch = RecordCanaries(records=None, pairs=1, adjacency="substitute", privacy=DPSGD(q, sigma, 3))
    llr = alignment = 0.0
    cut = g0 * norm / np.linalg.norm(g0)
    for step in range(3):
        u = rng.normal(size=6)
        kept = watch(step, [u[:4].reshape(2, 2) / 10, u[4:] / 10], max_grad_norm=norm, divisor=10, gradients=[g1, g0])
        assert [part.shape for part in kept] == [(2, 2), (2,)]
        with_1, with_0 = (np.log1p(q * np.expm1((2 * u @ g - g @ g) / (2 * sigma**2 * norm**2))) for g in (g1, cut))
        llr, alignment = llr + with_1 - with_0, alignment + u @ (g1 - cut) / norm**2
    assert watch.channels() == {"llr": pytest.approx([llr]), "alignment": pytest.approx([alignment])}


@pytest.mark.parametrize("privacy", [None, DPSGD(0.5, 0.0, 3), eg.KnownPrivacy(1.0, "substitute")])
def test_without_a_known_noise_the_ratio_is_the_plain_sum(privacy):
    watch = RecordCanaries(records=None, pairs=1, adjacency="add-remove", privacy=privacy)
    watch(0, np.array([3.0, 1.0]), max_grad_norm=1.0, gradients=[np.array([1.0, 0.0])])
    assert watch.channels() == {"llr": [3.0], "alignment": [3.0]}


def test_a_control_is_scored_with_the_noise_that_is_accounted(tmp_path):
    signals = played(plan(control=True), tmp_path / "a").signals()
    count = np.round(np.abs(signals["alignment"]) / 2)
    each, none = np.log(0.75 + 0.25 * np.exp([0.5, -1.5])), np.log(0.75 + 0.25 * np.exp(-0.5))
    expected = np.sign(signals["alignment"]) * count * (each[0] - each[1])
    np.testing.assert_allclose(signals["llr"], expected, atol=1e-5)
    assert none < 0  # a step without the canary speaks for neither, as both sides are alike


class Unwritable:
    """An array as those of JAX are: new ones in place of changes."""

    def __init__(self, values):
        self.values, self.shape = np.asarray(values), np.shape(values)
        self.at = self

    def __getitem__(self, index):
        return _At(self, index)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype)


class _At:
    def __init__(self, of, index):
        self.of, self.index = of, index

    def add(self, more):
        new = self.of.values.copy()
        new[self.index] += more
        return Unwritable(new)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.of.values[self.index], dtype)


@pytest.mark.parametrize("of", [np.array, torch.tensor, Unwritable])
def test_coordinates_of_several_arrays(of):
    values = [np.arange(6.0).reshape(2, 3), np.array(6.0), np.arange(7.0, 11.0)]
    places = Coordinates([v.shape for v in values], np.array([8, 6, 1]))
    arrays = [of(v) for v in values]
    assert places.read(arrays).tolist() == [8, 6, 1]
    after = places.add(arrays, np.array([0.5, 0.25, -1.0]))
    assert places.read(after).tolist() == [8.5, 6.25, 0]
    assert np.concatenate([np.asarray(a).ravel() for a in after]).sum() == 55 - 0.25
    assert (after[0] is arrays[0]) == (of is not Unwritable)


# What a plan may say, and what is said of mistakes.


def test_presets_and_keys_are_one_thing():
    alone = plan({"sees": "updates", "inserts": "gradient"})
    assert alone.fingerprinted() == plan().fingerprinted()
    assert fingerprint(alone, "") == fingerprint(eg.Plan.from_tables(alone.tables()), "")
    mixed = plan({"preset": "white-box", "inserts": "record"})
    assert (mixed.adversary.sees, mixed.adversary.inserts) == ("updates", "record")
    assert mixed.fingerprinted() != alone.fingerprinted()


def test_the_example_is_the_setting_that_it_says():
    example = eg.Plan.read(Path(__file__).parent.parent / "examples" / "digits-white-box.toml")
    assert (example.adversary.sees, example.adversary.inserts, example.audit.attack) == (
        "updates",
        "gradient",
        "updates",
    )
    assert example.trainer.build().privacy(example.game.train_size) == DPSGD(0.1, 1.0, 100)
    assert example.n_models == 2000


def test_a_black_box_has_the_fingerprint_it_always_had():
    game = {"train_size": N, "challenge": "average"}
    before = eg.Plan(name="a", n_models=9, data="digits", trainer=TRAINER, game=game)
    now = before.changed(adversary={"preset": "black-box"})
    assert "adversary" not in before.tables()
    assert now.fingerprinted() == before.fingerprinted()
    assert list(now.fingerprinted()) == ["seed", "control", "data", "trainer", "game"]
    assert not {"rehearsal_models", "control_models", "population"} & now.fingerprinted()["game"].keys()


def canaries(at, **kw):
    more = {"bits": np.ones(len(at), int), "adjacency": "substitute", "privacy": DPSGD(0.5, 1.0, 9), "sees": "updates"}
    return GradientCanaries(directions=np.array(at), seed=np.random.SeedSequence(0), **{**more, **kw})


def records(adjacency):
    return RecordCanaries(records=None, pairs=1, adjacency=adjacency, privacy=None)


def shown(watch, *args, **kw):
    return lambda: watch(*args, **kw)


def twice():
    watch = canaries([0])
    watch(3, np.zeros(2), max_grad_norm=1.0)
    watch(3, np.zeros(2), max_grad_norm=1.0)


def diverged():
    watch = canaries([0])
    watch(0, np.full(2, np.nan), max_grad_norm=1.0)
    watch.channels()


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: plan({"preset": "grey-box"}), "adversary.preset must be"),
        (lambda: plan({"sees": "update"}), "adversary.sees must be"),
        (lambda: plan({"prest": "white-box"}), "adversary.prest is not"),
        (lambda: plan({"inserts": "gradient"}), 'inserts = "gradient" needs sees = "model" or "updates"'),
        (lambda: plan({"sees": "model"}), 'sees = "model" goes with inserts = "gradient"'),
        (lambda: plan(challenge="average", pool_size=4), "but got game.pool_size = 4. Remove it, or use"),
        (lambda: plan(challenge="explicit", canaries="digits"), "but got game.challenge = 'explicit'. Remove it, or"),
        (lambda: plan(RECORDS, sees="z0", base="resampled"), 'goes with game.sees = "pair", but got "z0"'),
        (lambda: plan(audit={"attack": "loss"}), 'inserts = "gradient" does not have. Use attack = "updates".'),
        (
            lambda: plan("hidden-state", audit={"attack": "updates"}),
            'audit.attack = "updates" needs adversary.sees = "updates", but got "model". Use adversary.preset = '
            '"white-box", or another attack.',
        ),
        (lambda: plan({}, audit={"attack": "displacement"}), 'Use adversary.preset = "hidden-state", or another'),
        (shown(canaries([0]), 0, np.zeros(2)), "needs max_grad_norm, the norm to which gradients are clipped"),
        (shown(canaries([0]), 0, np.zeros(2), max_grad_norm=0.0), "max_grad_norm must be"),
        (shown(canaries([0]), 0, np.zeros(2), max_grad_norm=1.0, divisor=-1), "divisor must be"),
        (shown(canaries([2]), 0, np.zeros(2), max_grad_norm=1.0), "a canary is at number 2, but an update has 2"),
        (shown(canaries([0]), object()), "watch(optimizer) needs an optimizer of Opacus, but got object."),
        (twice, "step must be above 3, the last one that was shown, but got 3."),
        (diverged, "channel llr must be finite"),
        (canaries([0]).channels, "must call it at every step, but it was never called."),
        (
            shown(records("substitute"), 0, np.ones(2), max_grad_norm=1.0),
            "need the gradients of the 2 points of watch.records at each step, but got none.",
        ),
        (
            shown(records("add-remove"), 0, np.ones(2), max_grad_norm=1.0, gradients=[np.ones(3)]),
            "must have as many numbers as the update, 2, but one has 3.",
        ),
    ],
)
def test_mistakes_are_said_in_one_sentence(make, sentence):
    with pytest.raises(InvalidInput, match=re.escape(sentence)) as caught:
        make()
    assert "\n" not in str(caught.value)


class NoRate(Loop):
    def privacy(self, n):
        return None


@pytest.mark.parametrize(
    ("of", "sentence"),
    [
        (lambda: plan(trainer={"use": "sgd"}), "takes the keyword watch and calls it at each step, but sgd does not."),
        (lambda: plan(trainer=Loop(calls=False)), "it was never called"),
        (lambda: plan("hidden-state", trainer=Loop(ends=False)), "Call watch.end(parameters) when training is over"),
        (lambda: plan(trainer=NoRate()), 'adversary.inserts = "gradient" needs the sampling rate'),
        (lambda: plan(trainer=Loop(), pairs_per_model=65, train_size=400), "at most 64, the number of parameters"),
        (lambda: plan(RECORDS, trainer=Loop()), "need the gradients of the 2 points of watch.records"),
    ],
)
def test_a_trial_says_what_a_trainer_lacks(of, sentence):
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        attempt(of())


def test_a_trial_of_gradient_canaries_says_what_is_not_tested():
    (trial,) = attempt(plan(trainer=Loop()))
    assert [w for w in trial.warnings if "gradients that need not be those of any record" in w]


def test_gradients_have_no_loss_and_a_report_names_the_adversary(tmp_path):
    run = played(plan(n_models=40, audit={"fit_models": 20}), tmp_path / "a")
    with pytest.raises(InvalidInput, match=re.escape("are gradients, which have none. Use the attack updates or")):
        eg.audit(run, attack="loss")
    assert "white box: every noisy update, and a canary that is a gradient" in eg.audit(run).verdict.sentence
    assert of_run(run)["plan"]["adversary"] == {"sees": "updates", "inserts": "gradient", "start": None}


def test_a_channel_of_the_watch_is_not_the_trainers(tmp_path):
    run = played(plan(trainer=Loop(gives="llr")), tmp_path / "a", keep_going=True)
    assert run.failed[0].error == "channel llr is that of the watch, but the trainer gave one too. Rename yours."


def test_a_run_without_a_watch_says_how_to_have_one(tmp_path):
    run = played(plan({}, trainer=Loop(), n_models=4, audit={"attack": "loss"}), tmp_path / "a")
    assert set(run.signals().channels) == {"loss", "reference"}  # it was given none
    with pytest.raises(InvalidInput, match=re.escape('Set adversary.sees = "updates", and run with a new --out.')):
        eg.audit(run, attack="updates")
