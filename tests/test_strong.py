"""The adversary of a plan that names none: who sees updates, with the better of records and a gradient."""

import json
import shutil
import sqlite3
from dataclasses import asdict, dataclass

import numpy as np
import pytest
from command_line import ask
from stores import forge
from tiny_runs import played, stopped

import epsgauge as eg
from epsgauge.errors import InvalidInput
from epsgauge.games.adversary import AUTO, BEST, BLACK_BOX, GRADIENTS
from epsgauge.games.rehearsal import STRIDE, canary_of, is_quiet, rounds
from epsgauge.games.settings import GameSettings
from epsgauge.games.signals import Signals
from epsgauge.runner.choosing import QUIET, Choice
from epsgauge.runner.executors import InProcess
from epsgauge.runner.facing import NO_RECORDS, UNWATCHED
from epsgauge.runner.fingerprint import fingerprint
from epsgauge.runner.store import FILE
from epsgauge.runner.trial import attempt

RNG = np.random.default_rng(0)
TABLE = (RNG.normal(size=(120, 5)) * [1, 1, 1, 1, 0], RNG.integers(0, 3, 120))
Q, STEPS = 0.25, 6
GAME = {"train_size": 40, "reference_size": 15}


def table():
    return TABLE


@dataclass(frozen=True)
class Loop:
    """Sums of clipped records with noise. `shows`: what its watch gets."""

    noise_multiplier: float = 1.0
    shows: str = "records"
    accounted: bool = True

    def train(self, data, *, seed, size, watch=None):
        rng, total = np.random.default_rng(seed), np.zeros(5)
        clipped = data[0] / np.maximum(1.0, np.linalg.norm(data[0], axis=1))[:, None]
        for step in range(STEPS):
            update = clipped[rng.random(len(clipped)) < Q].sum(axis=0) + self.noise_multiplier * rng.normal(size=5)
            if watch is not None and self.shows != "nothing":
                norm = {} if self.shows == "no norm" else {"max_grad_norm": 1.0}
                more = {"gradients": list(watch.records[0])} if self.shows == "records" and _asks(watch) else {}
                update = watch(step, update, **norm, **more)
            total = total + update
        return total

    def losses(self, model, points):
        return -(points[0] @ model) / 100

    def privacy(self, n):
        noise = max(self.noise_multiplier, 0.1)
        return eg.DPSGD(sample_rate=Q, noise_multiplier=noise, steps=STEPS) if self.accounted else None


def _asks(watch):
    return hasattr(watch, "records")


@dataclass(frozen=True)
class Any(Loop):
    """Takes any keyword, and knows none."""

    def train(self, data, *, seed, size, **more):
        return Loop.train(self, data, seed=seed, size=size)


@dataclass(frozen=True)
class Silent(Loop):
    """Shows nothing."""

    def train(self, data, *, seed, size):
        return Loop.train(self, data, seed=seed, size=size)


def plan(trainer=None, n_models=24, **more):
    more = {"game": GAME, **more}
    return eg.Plan(name="a", n_models=n_models, probe=False, data=table, trainer=trainer or Loop(), **more)


# which adversary a plan has


def built_in(game=None, **more):
    trainer = {"use": "dpsgd", "noise_multiplier": 1.0, **more.pop("trainer", {})}
    return eg.Plan(name="a", n_models=20, data="digits", trainer=trainer, game={**GAME, **(game or {})}, **more)


@pytest.mark.parametrize(
    ("a_plan", "adversary", "attack"),
    [
        (lambda: built_in(), BEST, "updates"),
        (lambda: built_in({"adjacency": "add-remove"}), BEST, "updates"),
        (lambda: built_in({"pairs": "fixed", "base": "resampled"}), BEST, "updates"),
        (
            lambda: built_in(trainer={"noise_multiplier": None, "target_eps": 1.0, "target_delta": 1e-5}),
            BEST,
            "updates",
        ),
        (lambda: built_in(adversary={"preset": "auto"}), BEST, "updates"),
        (lambda: built_in(adversary={"sees": "updates", "inserts": "auto"}), BEST, "updates"),
        (lambda: built_in(adversary={"preset": "black-box"}), BLACK_BOX, "rehearsed"),
        (lambda: built_in(adversary={}), BLACK_BOX, "rehearsed"),
        (lambda: built_in(adversary={"preset": "white-box"}), GRADIENTS, "updates"),
        (lambda: built_in(trainer={"noise_multiplier": 0.0}), BLACK_BOX, "rehearsed"),
        (lambda: built_in({"challenge": "average"}), BLACK_BOX, "percentile"),
        (lambda: built_in({"challenge": "worst", "pool_size": 4}), BLACK_BOX, "percentile"),
        (lambda: built_in({"canaries": "label"}), BLACK_BOX, "rehearsed"),
        (lambda: built_in({"pairs_per_model": 2}), BLACK_BOX, "percentile"),
        (lambda: built_in({"sees": "z0", "base": "resampled", "pairs": "fresh"}), BLACK_BOX, "percentile"),
        (lambda: built_in({"adjacency": "label-only"}), BLACK_BOX, "rehearsed"),
        (lambda: built_in({"population": True}), BLACK_BOX, "rehearsed"),
        (lambda: built_in(audit={"attack": "lira"}), BLACK_BOX, "lira"),
        (lambda: built_in(audit={"rule": "given", "percentile": 50.0}), BLACK_BOX, "percentile"),
        (lambda: built_in(audit={"rule": "given", "threshold": 0.0}), BLACK_BOX, "rehearsed"),
        (lambda: eg.Plan(name="a", n_models=20, data="digits", trainer="sgd", game=GAME), BLACK_BOX, "rehearsed"),
        (lambda: plan({"use": "mine:Loop"}), AUTO, None),  # only its code knows
        (lambda: plan(Loop()), AUTO, None),
        (lambda: plan(Silent()), BLACK_BOX, "rehearsed"),
        (lambda: plan(Any()), BLACK_BOX, "rehearsed"),
        (lambda: plan(Loop(), audit={"attack": "difference"}), BLACK_BOX, "difference"),
    ],
)
def test_which_adversary_a_plan_has(a_plan, adversary, attack):
    found = a_plan()
    assert (found.adversary.model_dump(), found.audit.attack) == (adversary.model_dump(), attack)
    assert eg.Plan.from_tables(found.tables()).tables() == found.tables()


def test_a_plan_with_the_black_box_is_what_it_was():
    """Runs of a time when it was the default have no adversary in their plans."""
    found = built_in(adversary={"preset": "black-box"})
    assert "adversary" not in found.tables()
    assert "adversary" not in found.fingerprinted()
    assert eg.Plan.from_tables(found.tables()).adversary == BLACK_BOX
    assert fingerprint(found, "") != fingerprint(built_in(), "")


@pytest.mark.parametrize(
    ("adversary", "game", "words"),
    [
        (
            {"sees": "updates", "inserts": "auto"},
            {"challenge": "average"},
            r'canaries must be "auto", but got game.challenge = \'average\'. Remove it',
        ),
        ({"sees": "updates", "inserts": "auto"}, {"pairs_per_model": 2}, "but got game.pairs_per_model = 2. Remove it"),
        ({"sees": "updates", "inserts": "auto"}, {"adjacency": "label-only"}, "a gradient, which belongs to no label"),
        ({"sees": "losses", "inserts": "auto"}, {}, 'inserts = "auto" needs sees = "updates" or "auto"'),
        ({"sees": "auto"}, {}, 'sees = "auto" goes with inserts = "auto"'),
    ],
)
def test_what_contradicts_a_choice(adversary, game, words):
    with pytest.raises(InvalidInput, match=words):
        built_in(game, adversary=adversary)


# what a trainer of your own shows


@pytest.mark.parametrize(
    ("trainer", "adversary", "note"),
    [
        (Loop(), BEST, ""),
        (Loop(shows="updates"), GRADIENTS, f"{NO_RECORDS}canaries that are records need the gradients of the 2 points"),
        (Loop(shows="no norm"), BLACK_BOX, f"{UNWATCHED}an audit needs max_grad_norm"),
        (Loop(shows="nothing"), BLACK_BOX, f"{UNWATCHED}a trainer that takes watch must call it at every step"),
        (Loop(accounted=False), BLACK_BOX, f"{UNWATCHED}privacy(n) gives no eg.DPSGD(...)"),
    ],
)
def test_the_trainer_decides_before_the_run_begins(tmp_path, trainer, adversary, note):
    run = played(plan(trainer), tmp_path / "a")
    assert run.plan.adversary == adversary
    assert [text for text in run.notes if text.startswith((NO_RECORDS, UNWATCHED))] == [
        text for text in run.notes if note and text.startswith(note)
    ]
    assert any(text.startswith(note) for text in run.notes) or not note
    assert run.plan.audit.attack == ("updates" if run.plan.adversary.watches else "rehearsed")
    assert run.declaration.content["audit"]["attack"] == run.plan.audit.attack
    caveat = "neither how the trainer computes and clips gradients nor how it samples records is tested"
    assert any(caveat in text for text in run.notes) == (run.adversary.inserts == "gradient")
    played(plan(trainer), tmp_path / "a")  # the same plan goes on
    explicit = plan(trainer, adversary=adversary.model_dump())
    assert fingerprint(explicit, run.provenance["digest"]) == run.provenance["fingerprint"]
    assert np.array_equal(played(explicit, tmp_path / "b").signals().bits, eg.Run.open(tmp_path / "a").signals().bits)


def test_a_run_keeps_its_adversary_and_refuses_another(tmp_path):
    stopped(plan(Loop(shows="updates")), tmp_path / "a", 3)
    run = played(plan(Loop(shows="updates")), tmp_path / "a")
    assert run.complete
    other = plan(Loop(shows="updates"), adversary={"preset": "black-box"})
    with pytest.raises(InvalidInput, match=r"holds another plan .*adversary\.sees was"):
        played(other, tmp_path / "a")
    played(other, tmp_path / "b")
    with pytest.raises(InvalidInput, match="holds another plan"):  # a run that was told its adversary is not open
        played(plan(Loop(shows="updates")), tmp_path / "b")


def test_a_trainer_without_losses_is_enough(tmp_path):
    class OnlyTrains:
        def __init__(self, loop):
            self.train, self.privacy = loop.train, loop.privacy

    run = played(plan(OnlyTrains(Loop())), tmp_path / "a")
    assert run.plan.adversary == BEST
    assert set(run.signals().channels) == {"llr", "alignment"}


def test_a_trial_and_check_say_what_was_found():
    trial = attempt(plan(Loop(shows="updates")))[0]
    assert trial.adversary == GRADIENTS
    assert any(text.startswith(NO_RECORDS) for text in trial.warnings)
    assert plan(Loop()).facing(attempt(plan(Loop()))[0].adversary).audit.attack == "updates"


def test_check_without_code_says_that_it_is_decided_later(tmp_path):
    file = tmp_path / "plan.toml"
    file.write_text(
        'name = "a"\nn_models = 300\n[data]\nuse = "mine:data"\n[trainer]\nuse = "mine:Trainer"\n'
        "[game]\ntrain_size = 200\n"
    )
    said = " ".join(ask("check", str(file)).split())
    assert "adversary decided when it runs: auto: makes two records of its own before training" in said
    assert "or adds a gradient of its own, whichever held-out models show to be better" in said
    file.write_text(
        file.read_text().replace("mine:data", "digits").replace('"mine:Trainer"', '"dpsgd"\nnoise_multiplier = 1.0')
    )
    assert "decided" not in ask("check", str(file))


# the choice


def ratios(strengths, seed=0, failing=()):
    """The signals of all models that were asked for so far, and their numbers. Canary c has the effect strengths[c]."""
    asked = {}

    def seen(numbers):
        asked.update(dict.fromkeys(numbers))
        have = np.array(sorted(n for n in asked if canary_of(n) not in failing), np.int64)
        bits = have % 2
        effect = np.array([strengths[canary_of(n)] for n in have])
        noise = np.array([np.random.default_rng([seed, n]).normal() for n in have])
        llr = effect * bits + np.where(is_quiet(have), 0.1, 1.0) * noise
        pairs = np.full((len(have), 1, 2), -1)
        return Signals(have, bits[:, None], pairs, {"llr": llr[:, None]}, "substitute", "pair")

    return seen, asked


def by_hand(choice, game, seen):
    """The same decision, told round by round."""
    records = [c for c in range(choice.n_canaries) if not (choice.gradient and c == choice.n_canaries - 1)]
    others = [c for c in range(choice.n_canaries) if c not in records]
    told, want = {}, []

    def scores(numbers):
        signals = seen(numbers)
        return {
            int(m): (int(b), float(s))
            for m, b, s in zip(signals.models, signals.bits[:, 0], signals["llr"][:, 0], strict=True)
        }

    def apart(rows):
        ones, zeros = ([s for b, s in rows if b == bit] for bit in (1, 0))
        return np.mean(ones) - np.mean(zeros)

    def spread(rows):
        rest = [s - np.mean([t for c, t in rows if c == b]) for b, s in rows]
        return np.sqrt(np.sum(np.square(rest)) / (len(rows) - 2))

    for each in rounds(game, choice.n_models, choice.n_canaries):
        kept = others + sorted(records, key=lambda c: -told.get(c, 0.0))[: each.canaries - len(others)]
        want += [2 * c * STRIDE + i for c in kept for i in range(each.models)]
        rows = scores(want)
        mine = {c: [rows[n] for i in range(each.models) if (n := 2 * c * STRIDE + i) in rows] for c in kept}
        told = {c: apart(some) / spread(some) for c, some in mine.items() if some}
        told = told if choice.gradient else {c: abs(value) for c, value in told.items()}
        records, others = ([c for c in some if c in told] for some in (records, others))
    quiet = scores([(2 * c + 1) * STRIDE + i for c in told for i in range(QUIET)])
    for c in told:
        some = [quiet[(2 * c + 1) * STRIDE + i] for i in range(QUIET)]
        known = np.array([apart(mine[c]), apart(some)]) / spread(mine[c])
        errors = np.array([1.0, spread(some) / spread(mine[c])]) * np.sqrt([4 / len(mine[c]), 4 / QUIET])
        weights = errors**-2.0 / np.sum(errors**-2.0)
        sure = 2 if c in others else -2
        surely = weights @ known + sure * np.sqrt(weights**2 @ errors**2)
        told[c] = max(surely, 0.0) if choice.gradient else np.sqrt(abs(known[0] * known[1]))
    return told


@pytest.mark.parametrize("gradient", [True, False])
@pytest.mark.parametrize("failing", [(), (2,), (0, 1, 2, 3, 4, 5, 6)])
@pytest.mark.parametrize("seed", range(4))
def test_the_choice_by_hand(gradient, failing, seed):
    game, strengths = GameSettings(**GAME), [0.2, 2.0, 1.0, 0.1, 3.0, 0.5, 1.5, 0.3]
    choice = Choice(8, 100, "updates", quiet=True, gradient=gradient)
    found = choice.strengths(game, ratios(strengths, seed, failing)[0])
    expected = by_hand(choice, game, ratios(strengths, seed, failing)[0])
    assert found == pytest.approx(expected)
    assert list(found) == sorted(expected, key=lambda c: -expected[c])
    assert not set(failing) & set(found)


def test_a_gradient_is_tried_to_the_end_and_what_fails_is_not():
    game, strengths = GameSettings(**GAME), [3.0] * 11 + [0.1]
    seen, asked = ratios(strengths)
    found = Choice(12, 300, "updates", quiet=True, gradient=True).strengths(game, seen)
    assert len(found) == 3
    assert 11 in found
    assert next(iter(found)) != 11
    tried = np.bincount(canary_of(np.array(list(asked))), minlength=12)
    assert tried[11] == max(tried)
    seen, asked = ratios(strengths, failing=range(11))
    assert list(Choice(12, 300, "updates", quiet=True, gradient=True).strengths(game, seen)) == [11]
    first = rounds(game, 300, 12)[0].models
    assert np.bincount(canary_of(np.array(list(asked))), minlength=12)[:11].tolist() == [first] * 11


@pytest.mark.parametrize("best", [0, 5])
def test_the_stronger_of_both_is_taken(best):
    strengths = np.full(6, 0.2)
    strengths[best] = 4.0
    found = Choice(6, 400, "updates", quiet=True, gradient=True).strengths(GameSettings(**GAME), ratios(strengths)[0])
    assert next(iter(found)) == best


# a run


def canary(folder):
    with sqlite3.connect(folder / FILE) as connection:
        return json.loads(connection.execute("SELECT value FROM meta WHERE key = 'canary'").fetchone()[0])


def numbers(folder, before):
    """Of the models on which canaries were tried: all that were held out, but for those of the control alone."""
    with sqlite3.connect(folder / FILE) as connection:
        found = np.array([row[0] for row in connection.execute("SELECT idx FROM rehearsals")])
    control = (canary_of(found) == before["number"]) & (is_quiet(found) == 1) & (found % STRIDE >= QUIET)
    return found[~control]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return played(plan(), tmp_path_factory.mktemp("strong") / "run")


def test_the_choice_is_declared_and_said(whole):
    taken = whole.canary
    assert taken["tried"][-1] == "gradient"
    assert len(taken["tried"]) == 12
    assert {"gradient"} < set(taken["best"])
    assert taken["held_out"] == len(numbers(whole.path, before=taken))
    audit = eg.audit(whole)
    who = "no record" if taken["name"] == "gradient" else "this record"
    said = f"11 records and a gradient were tried on {taken['held_out']} held-out models, and {who} was surely"
    assert f"{said} distinguished better than the gradient (at least " in audit.adversary.canary
    assert audit.adversary.powers == whole.powers
    assert whole.powers.preset == ("white-box" if taken["name"] == "gradient" else "intermediate-models")
    assert said in audit.verdict.sentence
    assert whole.plan.adversary == BEST  # what was declared; which of both is in the canary
    inserted = (whole.signals().pairs == -1).all()
    assert inserted == (taken["name"] == "gradient")


def test_interruptions_and_parts_change_no_choice(tmp_path, whole):
    stopped(plan(), tmp_path / "a", 2)
    assert canary(tmp_path / "a") == canary(whole.path)
    again = played(plan(), tmp_path / "a")
    assert again.signals()["llr"].tobytes() == whole.signals()["llr"].tobytes()
    forge(
        tmp_path / "a" / FILE,
        "DELETE FROM meta WHERE key = 'canary'",
        "DELETE FROM rehearsals WHERE idx % 3",
        "DELETE FROM models",
    )
    assert played(plan(), tmp_path / "a").canary == whole.canary
    parts = [played(plan(), tmp_path / name, models=some).path for name, some in (("b", range(9)), ("c", range(9, 24)))]
    merged = eg.merge(parts, out=tmp_path / "merged")
    assert (merged.canary, merged.plan.adversary) == (whole.canary, BEST)
    assert merged.signals()["llr"].tobytes() == whole.signals()["llr"].tobytes()
    assert played(plan(), tmp_path / "merged").complete
    assert eg.verify(tmp_path / "merged").intact


def test_verify_decides_again(tmp_path, whole):
    found = eg.verify(whole.path, plan=plan(), executor=InProcess())
    assert found.intact
    apart = next(check.sentence for check in found.checks if check.name == "set apart")
    assert f"So does the canary, {whole.canary['name']}" in apart
    told = canary(whole.path)
    other = next(name for name in told["best"] if name != told["name"])
    forged = {**told, "name": other, "number": told["tried"].index(other)}
    copy = shutil.copytree(whole.path, tmp_path / "copy")
    value = json.dumps(forged).replace("'", "''")
    forge(copy / FILE, f"UPDATE meta SET value = '{value}' WHERE key = 'canary'")
    assert not eg.verify(copy).intact  # the pairs of models are another canary's, or the canary is not the best
    told["best"][told["name"]] *= 1.01
    value = json.dumps(told).replace("'", "''")
    forge(copy / FILE, f"UPDATE meta SET value = '{value}' WHERE key = 'canary'")
    wrong = [check.sentence for check in eg.verify(copy).checks if not check.intact]
    assert wrong == ["How well canaries did is not what the signals of the models set apart give."]


def test_a_choice_is_plain(whole):
    told = canary(whole.path)
    assert Choice(**told["choice"]) == Choice(12, 24, "updates", True, True)
    assert asdict(Choice(**told["choice"])) == told["choice"]


@pytest.mark.long
@pytest.mark.parametrize("engine", ["stacked", "opacus"])
def test_both_engines_choose(tmp_path, engine):
    """A record in one group of models, a gradient in another."""
    trainer = {"model": "logistic", "epochs": 1, "batch_size": 10, "engine": engine}
    a_plan = built_in({"rehearsal_models": 8, "control_models": 2}, trainer=trainer).changed(n_models=6)
    run = played(a_plan, tmp_path / engine)
    assert run.canary["tried"][-1] == "gradient"
    assert run.n_done == 6
    assert not run.n_failed
