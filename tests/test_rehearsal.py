"""Canaries made from the data, the rehearsal that takes the best, and the control without noise."""

from dataclasses import dataclass

import numpy as np
import pytest
from command_line import ask
from stores import forge

import epsgauge as eg
from epsgauge.attacks.rehearsed import Rehearsed, effect
from epsgauge.auditing.audit import audit_run
from epsgauge.auditing.control import control_of
from epsgauge.auditing.gate import gate
from epsgauge.data.canaries.table import CANARIES, canaries_of
from epsgauge.data.canaries.view import view_of
from epsgauge.errors import InvalidInput
from epsgauge.games.rehearsal import STRIDE, canary_of, is_quiet, number_of, rounds
from epsgauge.games.settings import GameSettings
from epsgauge.games.signals import Signals
from epsgauge.runner.executors import InProcess
from epsgauge.runner.hopeless import AllFail
from epsgauge.runner.store import FILE, Store
from epsgauge.runner.trial import try_out
from epsgauge.trainers.known_start import knowing_start

RNG = np.random.default_rng(0)
TABLE = (RNG.normal(size=(120, 5)) * [1, 1, 1, 1, 0], RNG.integers(0, 3, 120))


def table():
    return TABLE


@dataclass(frozen=True)
class Mean:
    """The sum of clipped records with noise: it leaks the direction of one of them. `blind` leaks nothing."""

    noise_multiplier: float = 1.0
    blind: bool = False
    scaled: bool = False  # by the largest feature of the private data

    def train(self, data, *, seed, size):
        x = data[0] / (np.abs(data[0]).max() if self.scaled else 1.0)
        clipped = x / np.maximum(1.0, np.linalg.norm(x, axis=1))[:, None]
        total = np.zeros(x.shape[1]) if self.blind else clipped.sum(axis=0)
        return total + self.noise_multiplier * np.random.default_rng(seed).normal(size=x.shape[1]), np.abs(
            data[0]
        ).max()

    def losses(self, model, points):
        total, largest = model
        return -(points[0] @ total) / 100.0 + (largest / 1e3 if self.scaled else 0.0)

    def privacy(self, n):
        return eg.DPSGD(sample_rate=1.0, noise_multiplier=max(self.noise_multiplier, 0.1), steps=1)


@dataclass(frozen=True)
class Loud(Mean):
    """Says that it has noise, and has none."""

    def train(self, data, *, seed, size):
        return Mean(0.0).train(data, seed=seed, size=size)


def plan(trainer, n_models=120, **game):
    game = {"train_size": 50, "reference_size": 20, **game}
    return eg.Plan(name="a", n_models=n_models, probe=False, data=table, trainer=trainer, game=game)


def played(tmp_path, trainer, **kw):
    return eg.run(plan(trainer, **kw), out=tmp_path / "run", executor=InProcess())


# canaries


@pytest.mark.parametrize("name", [n for n, c in CANARIES.items() if "numbers" in c.kinds])
def test_a_canary_of_numbers_is_two_records_in_the_format_of_the_data(name):
    names, zeros, ones = canaries_of(name, TABLE)
    assert names == [name]
    for x, y in (zeros, ones):
        assert (x.shape, y.shape) == ((1, 5), (1,))
        assert np.isfinite(x).all()
        assert set(y) <= {0, 1, 2}
    assert not (np.array_equal(zeros[0], ones[0]) and np.array_equal(zeros[1], ones[1]))


def test_opposites_lie_where_no_record_does():
    for name in ("opposite", "far-opposite"):
        _, (z0, _), (z1, _) = canaries_of(name, TABLE)
        assert z1[0, :4].tolist() == [0.0] * 4
        assert z1[0, 4] > 0
        assert np.array_equal(z0, -z1)
    _, (_, y0), (_, y1) = canaries_of("label", TABLE)
    counts = np.bincount(TABLE[1])
    assert (int(y0[0]), int(y1[0])) == (int(np.argmax(counts)), int(np.argmin(counts)))


def test_out_of_distribution_has_features_of_the_data_and_is_no_record():
    _, (z0, y0), (z1, y1) = canaries_of("out-of-distribution", TABLE)
    assert np.array_equal(z0, z1)
    assert y0 != y1
    assert all(z1[0, j] in TABLE[0][:, j] for j in range(5))
    assert not (TABLE[0] == z1).all(axis=1).any()


@pytest.mark.parametrize("width", [6, 1100])  # the second has more features than are decomposed
def test_an_adversarial_record_is_just_across_the_boundary(width):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [60, 40])
    x = rng.normal(size=(100, width)) + np.outer(y, np.eye(1, width)[0]) * 6
    _, (z0, y0), (z1, y1) = canaries_of("adversarial", (x, y))
    assert np.array_equal(z0, z1)
    assert (int(y0[0]), int(y1[0])) == (0, 1)
    away = np.linalg.norm(x - z1, axis=1)
    assert np.argmin(away) < 60  # the record that it was: one of the frequent label
    assert width > 6 or 1.0 < z1[0, 0] < 6.0  # the boundary is at 3 or so


def test_auto_makes_all_that_can_be_made_each_once():
    names, zeros, ones = canaries_of("auto", TABLE)
    assert not {"out-of-distribution", "adversarial"} & set(names)  # by name alone
    assert len(names) == len(set(names)) == len(zeros[0]) == len(ones[0]) == 11
    images = (RNG.integers(0, 256, (30, 4, 4), dtype=np.uint8), RNG.integers(0, 2, 30))
    names, _, ones = canaries_of("auto", images)
    assert ones[0].dtype == np.uint8
    assert "opposite" in names


def test_text_tokens_and_datasets():
    torch = pytest.importorskip("torch")
    texts = (np.array(["a b c", "d e", "f"] * 5), np.array([0, 1, 1] * 5))
    names, _, ones = canaries_of("auto", texts)
    assert names == ["strange-words", "empty-text"]
    assert ones[0][1] == ""
    tokens = (RNG.integers(1, 50, (40, 8)), RNG.integers(0, 2, 40))
    names, _, ones = canaries_of("auto", tokens)
    assert "rare-token" in names
    assert set(ones[0].ravel()) <= set(range(50))  # none that an embedding does not have
    dataset = torch.utils.data.TensorDataset(torch.tensor(TABLE[0]), torch.tensor(TABLE[1]))
    _, _, ones = canaries_of("blank", dataset)
    assert torch.equal(ones[0][0], torch.zeros(5, dtype=torch.float64))
    assert ones[0][1].dtype == torch.int64
    rows = [{"x": row, "y": int(label)} for row, label in zip(*TABLE, strict=True)]
    _, _, ones = canaries_of("opposite", rows)
    assert ones[0].keys() == {"x", "y"}
    assert isinstance(ones[0]["y"], int)


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ([{"x": {1}, "y": 0}] * 4, "but it has Python objects"),
        ([(np.zeros(2), 0), (np.zeros(3), 1)], "its points differ in shape"),
        ((np.zeros((9, 3)), np.zeros(9, int)), "cannot be made for these data"),
    ],
)
def test_data_that_have_no_canaries(raw, words):
    with pytest.raises(InvalidInput, match=words) as error:
        canaries_of("mislabelled", raw)
    assert 'as "module:attr", or say challenge = "average".' in str(error.value)


def test_a_view_finds_features_and_labels():
    seen = view_of((np.arange(9), RNG.normal(size=(9, 2)), np.ones((9, 2)), np.array([0, 1, 2] * 3)))
    assert (seen.x.shape, seen.y.tolist()) == ((9, 2), [0, 1, 2] * 3)
    (ids, _, mask, _) = seen.write([seen.at(np.zeros(2), 1)])
    assert (ids.tolist(), mask.tolist()) == ([8], [[1.0, 1.0]])


# which game a plan has


def test_a_game_without_a_challenge_has_the_strongest():
    game = GameSettings(train_size=50)
    assert (game.challenge, game.canaries, game.auto) == ("explicit", "auto", True)
    assert GameSettings(train_size=50, canaries="label").challenge == "explicit"
    assert GameSettings(train_size=50, pairs_per_model=2).challenge == "average"
    assert GameSettings(train_size=50, pairs="fixed") == game.model_copy(update={"pairs": "fixed"})
    strong = plan(Mean())
    assert (strong.audit.attack, strong.start) == ("rehearsed", "known")
    average = plan(Mean(), challenge="average")
    assert (average.audit.attack, average.start) == ("percentile", "secret")


@pytest.mark.parametrize(
    ("game", "words"),
    [
        ({"pool_size": 9}, "pool_size = 9 is for pairs that are drawn from ordinary records, a weaker adversary"),
        ({"pairs": "fresh"}, 'say challenge = "average" or "worst" too, or remove pairs'),
        ({"pairs": "fresh", "adjacency": "label-only"}, 'canaries = "auto" goes with one pair, which is fixed'),
        ({"canaries": "auto", "pairs_per_model": 2}, 'canaries = "auto" goes with one pair, which is fixed'),
        (
            {"canaries": "label", "rehearsal_models": 4097},
            "rehearsal_models must be at most 4096 for an attack to learn",
        ),
        ({"canaries": "lable"}, 'canaries.use must be one of auto, .* Did you mean "label"?'),
    ],
)
def test_what_a_game_refuses(game, words):
    with pytest.raises(InvalidInput, match=words):
        plan(Mean(), **game)


def test_rounds_take_about_a_quarter_as_many_models():
    found = rounds(GameSettings(train_size=50), 1000, 11)
    assert [r.canaries for r in found] == [11, 5, 3]
    models = [r.models for r in found]
    assert models == sorted(models)
    trained = sum(r.canaries * r.new for r in found)
    assert trained == 11 * models[0] + 5 * (models[1] - models[0]) + 3 * (models[2] - models[1])
    assert 200 <= trained <= 260
    assert all(m % 2 == 0 for m in models)
    numbers = np.array([number_of(3, 7, quiet=True), number_of(3, 7, quiet=False)])
    assert canary_of(numbers).tolist() == [3, 3]
    assert is_quiet(numbers).tolist() == [1, 0]
    assert numbers.tolist() == [7 * STRIDE + 7, 6 * STRIDE + 7]


# the rehearsal


def test_the_best_canary_is_taken_and_resuming_changes_nothing(tmp_path):
    run = played(tmp_path, Mean(), n_models=60)
    assert run.canary["name"] in run.canary["best"]
    assert len(run.canary["tried"]) == 11
    assert max(run.canary["best"], key=run.canary["best"].get) == run.canary["name"]
    assert len(np.unique(run.signals().pairs, axis=0)) == 1
    with Store.read(run.path / FILE) as store:
        apart = store.signals(run.plan.game, rehearsal=True)
    assert np.mean(apart.bits) == 0.5
    again = eg.run(plan(Mean(), n_models=60), out=tmp_path / "again", executor=InProcess())
    assert again.canary == run.canary
    assert again.signals()["loss"].tobytes() == run.signals()["loss"].tobytes()
    # killed in the middle: some of both are gone, and come back the same
    gone = ("models WHERE idx > 20", "arrays", "rehearsals WHERE idx % 3", "meta WHERE key = 'canary'")
    forge(run.path / FILE, *(f"DELETE FROM {each}" for each in gone))
    back = eg.run(plan(Mean(), n_models=60), out=run.path, executor=InProcess())
    assert back.signals()["loss"].tobytes() == again.signals()["loss"].tobytes()
    with Store.read(run.path / FILE) as store:
        assert store.signals(run.plan.game, rehearsal=True)["loss"].tobytes() == apart["loss"].tobytes()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE meta SET value = '[1]' WHERE key = 'canary'",
        "UPDATE meta SET value = '{}' WHERE key = 'canary'",
        "UPDATE rehearsals SET signals = substr(signals, 9)",
    ],
)
def test_a_damaged_rehearsal_is_one_sentence(tmp_path, damage):
    run = played(tmp_path, Mean(), n_models=20)
    forge(run.path / FILE, damage)
    with pytest.raises(InvalidInput, match=r"store.sqlite is damaged \(.*Restore it from a copy, or start again"):
        eg.audit(eg.Run.open(run.path))


def test_training_without_noise_is_refuted_and_its_twin_is_not(tmp_path):
    bad, good = (audit_run(played(tmp_path / n, t, n_models=200)) for n, t in (("bad", Loud()), ("good", Mean())))
    assert (bad.verdict.kind, bad.verdict.method) == ("violation", "curve")
    assert good.verdict.kind == "no objection"
    assert good.verdict.bound.value > 1.0  # the canary leaks what a record may
    assert "the best of 11 that were tried" in good.verdict.sentence
    assert "Without noise it puts 100 % of pairs in the right order" in good.verdict.sentence
    told = good.to_json()["verdict"]
    assert told["control"]["sees"]
    assert told["adversary"]["canary"].startswith("canary ")


def test_preprocessing_on_private_data_is_found_by_what_all_points_show(tmp_path):
    a = audit_run(played(tmp_path, Mean(scaled=True), n_models=240))
    assert a.verdict.kind == "violation"
    assert "the mean loss on reference points" in a.adversary.access


def test_an_attack_learns_statistic_and_sign_of_models_set_apart_alone():
    bits = np.tile([0, 1], 20)[:, None]
    loss = np.zeros((40, 1, 2))
    loss[..., 1] = RNG.normal(size=(40, 1))
    shift = np.where(bits == 1, -5.0, 0.0)
    channels = {"loss": loss, "reference": RNG.normal(size=(40, 9)) + shift}
    apart = Signals(np.arange(40), bits, np.zeros((40, 1, 2), int), channels, "substitute", "pair")
    judged = Signals(np.arange(40), bits, np.zeros((40, 1, 2), int), channels, "substitute", "pair", apart)
    assert "reference points (lower speaks for b = 1)" in Rehearsed().sees(judged)
    scores = Rehearsed().scores(judged)
    assert scores.score[scores.bit == 1].min() > scores.score[scores.bit == 0].max()
    assert Rehearsed().sees(apart) == "black box: the losses of the pair"
    assert effect(np.array([1.0, 2.0]), np.array([1, 1])) == 0.0


def test_every_model_fails(tmp_path):
    @dataclass(frozen=True)
    class Broken(Mean):
        def train(self, data, *, seed, size):
            raise RuntimeError("no disk")

    with pytest.raises(
        AllFail, match=r"its first \d+ models all failed the same way: RuntimeError: no disk\. .* new --out"
    ):
        played(tmp_path, Broken())
    with pytest.raises(InvalidInput, match=r"every model failed. The first error: RuntimeError: no disk Mend it"):
        eg.run(plan(Broken()), out=tmp_path / "on", executor=InProcess(), keep_going=True)


# the control


def test_an_attack_that_sees_nothing_cannot_decide(tmp_path):
    a = audit_run(played(tmp_path, Mean(blind=True), n_models=300))
    assert a.verdict.kind == "cannot decide"
    assert not a.verdict.control.sees
    assert a.verdict.sentence.startswith("Cannot decide: this audit could not have refuted the accountant's claim")
    assert "64" not in a.verdict.sentence.split("models set apart")[0][-4:]
    assert gate(a, fail_on="violation").idle == ("the attack sees nothing even without noise",)
    ask("audit", tmp_path / "run", "--fail-on", "violation", code=4)
    ask("audit", tmp_path / "run", "--fail-on", "violation", "--allow-undecided")
    assert "control" in ask("audit", tmp_path / "run")


def test_a_control_can_be_left_out_and_is_missed_where_it_cannot_be_had(tmp_path):
    run = played(tmp_path, Mean(blind=True), n_models=100, challenge="average", control_models=0)
    assert audit_run(run).verdict.control is None

    @dataclass(frozen=True)
    class Fixed:
        def train(self, data, *, seed, size):
            return Mean().train(data, seed=seed, size=size)

        losses, privacy = Mean.losses, Mean.privacy
        scaled, noise_multiplier = False, 1.0

    other = eg.run(plan(Fixed(), n_models=20, challenge="average"), out=tmp_path / "b", executor=InProcess())
    assert any(note.startswith("No control: trainer") for note in other.notes)


@dataclass(frozen=True)
class Overflows(Mean):
    """Asks for the ε of its noise, which is infinite without any."""

    def train(self, data, *, seed, size):
        return super().train(data, seed=seed, size=size), 1 / self.noise_multiplier

    def losses(self, model, points):
        return super().losses(model[0], points)


@pytest.mark.parametrize("game", [{}, {"challenge": "average"}])
def test_a_run_goes_on_without_a_control_that_fails_and_says_why(tmp_path, game):
    run = played(tmp_path, Overflows(), n_models=60, **game)
    assert run.complete
    said = "No control: trainer test_rehearsal:Overflows fails without noise: ZeroDivisionError: "
    (note,) = [note for note in run.notes if note.startswith("No control")]
    assert note.startswith(said)
    assert "noise_multiplier = 0" in note
    a = audit_run(run)
    assert a.verdict.control is None
    assert note in a.warnings
    assert not any("--control" in step.command for step in a.decision.steps)
    with Store.read(tmp_path / "run" / FILE) as store:
        quiet = [number for number in store.rehearsed() if is_quiet(number)]
    assert len(quiet) == 5  # no more are tried
    assert all(check.intact for check in eg.verify(tmp_path / "run").checks)


def test_a_control_by_itself_that_fails_says_what_it_is(tmp_path):
    alone = plan(Overflows(), n_models=20, challenge="average").changed(control=True)
    with pytest.raises(AllFail, match=r"ZeroDivisionError.* This is a control, whose models have no noise"):
        eg.run(alone, out=tmp_path / "run", executor=InProcess())


def test_a_trial_says_that_a_control_would_fail():
    assert any(
        text.startswith("No control: trainer test_rehearsal:Overflows fails")
        for text in try_out(plan(Overflows())).warnings
    )
    assert not any("No control" in text for text in try_out(plan(Mean())).warnings)


def test_a_control_counts_scores_in_the_right_order():
    def seen(scores, bits):
        loss = np.stack([np.asarray(scores, float), np.zeros(len(scores))], axis=-1)[:, None]
        bits = np.asarray(bits)[:, None]
        pairs = np.zeros((len(bits), 1, 2), int)
        return Signals(np.arange(len(bits)), bits, pairs, {"loss": loss, "reference": loss[:, 0]}, "substitute", "pair")

    perfect = control_of(Rehearsed(), seen([1, 2, 3, 4, 5, 6, 7, 8], [0, 0, 0, 0, 1, 1, 1, 1]))
    assert (perfect.right_order, perfect.sees) == (1.0, True)
    assert perfect.by_chance == pytest.approx(1 / 70, rel=0.1)  # of all orders
    assert not control_of(Rehearsed(), seen([1] * 8, [0, 1] * 4)).sees
    assert control_of(Rehearsed(), seen([1, 2], [1, 1])) is None


# the start


def test_a_known_start_is_the_same_for_all_seeds_and_leaves_the_noise_alone():
    torch = pytest.importorskip("torch")

    def drawn(seed):
        torch.manual_seed(seed)
        layer = torch.nn.Linear(3, 2)
        return layer.weight.detach().clone(), torch.randn(4)

    free = drawn(1)
    with knowing_start():
        first = drawn(1)
    with knowing_start():
        second = drawn(2)
    assert torch.equal(first[0], second[0])
    assert not torch.equal(first[0], free[0])
    assert not torch.equal(first[1], second[1])
    assert torch.equal(drawn(1)[0], free[0])  # nothing is left behind
