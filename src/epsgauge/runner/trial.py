"""A trial before a run: one model trained a few times, to find what would spoil a thousand."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from epsgauge.errors import EpsgaugeError
from epsgauge.games.adversary import AdversarySettings
from epsgauge.games.experiment import draw
from epsgauge.games.roles import assign, ranked
from epsgauge.games.seeds import Branch, training_seed
from epsgauge.mechanisms.privacy import Privacy
from epsgauge.references import beside, users_code
from epsgauge.runner.facing import look
from epsgauge.runner.hopeless import no_control
from epsgauge.runner.plan import Plan
from epsgauge.runner.play import play, prepare, split, surveyed, table, watcher_of
from epsgauge.runner.results import apart
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.trainers.protocol import Observer, Trainer, observed

# Enough training points to see whether a model knows them better than others.
MEMBERS = 200


@dataclass(frozen=True)
class Trial:
    """What was seen: seconds of a training that is not the first, losses on members and on others, and warnings."""

    seconds: float
    member_loss: float | None  # None for a trainer without losses
    reference_loss: float | None
    privacy: Privacy | None
    adversary: AdversarySettings  # of a plan that names none: what the trainer shows
    warnings: tuple[str, ...]


def try_out(plan: Plan) -> Trial:
    """The trial in a worker process, as a run would have it; another one reads the data again."""
    trial, first = apart(plan, _attempted)
    if apart(plan.facing(trial.adversary), _content) == first:
        return trial
    other = (
        f"Data {plan.data.use} are not the same in every process: two of them had different points. A run would refuse "
        "that: seed what is drawn at random, or read it from a file."
    )
    return replace(trial, warnings=(other, *trial.warnings))


def _content(plan: Plan) -> list[str]:
    return [table(plan).digest()]


def _attempted(plan: Plan) -> list[tuple[Trial, str]]:
    trial = attempt(plan)[0]
    return [(trial, _content(plan.facing(trial.adversary))[0])]


def attempt(plan: Plan) -> list[Trial]:
    """Train model 0 twice with its own seed, once with that of model 1, and once without noise for the control."""
    notes = list[str]()
    if plan.adversary.is_open:
        found = look(plan)[0]
        plan, notes = plan.facing(found.adversary), [*found.notes]
    prepared, on, game = prepare(plan)[0], table(plan), plan.game
    reference, others = split(plan)
    roles = assign(game, reference, others, on.canaries, ranked(game, others))  # any pool will do for a trial
    roles = surveyed(plan, roles)
    roles = roles.taking(0) if plan.tries_canaries else roles
    drawn, watcher = draw(game, roles, plan.seed, 0), watcher_of(plan, roles)
    members = drawn.training[:MEMBERS]

    def seen(seed: int, trainer: Trainer | Observer = on.trainer) -> tuple[dict[str, Floats], float]:
        start = time.perf_counter()
        asked: Ints = np.concatenate([members, roles.reference])
        data, points = on.points.take(drawn.training), on.points.take(asked)
        with beside(plan.folder), users_code(f"the trainer {plan.trainer.use}", line=True):
            watch = None if watcher is None else watcher(drawn)
            size = game.train_size
            found = observed(trainer, data, points, len(asked), seed=seed, size=size, watch=watch)
            watched = {} if watch is None else watch.channels()  # which says what a trainer does wrong
        return found or watched, time.perf_counter() - start

    (first, _), (again, seconds) = seen(drawn.seed), seen(drawn.seed)
    other, _ = seen(training_seed(plan.seed, Branch.audited, 1))
    if prepared.group is not None:
        start = time.perf_counter()
        play(plan, roles, prepared.group, list(range(prepared.group.size)))
        seconds = (time.perf_counter() - start) / prepared.group.size
    notes += prepared.notes
    if on.quiet is not None and game.n_control(plan.n_models):
        try:
            seen(drawn.seed, on.quiet)
        except EpsgaugeError as error:
            notes.append(no_control(plan.trainer.use, str(error)))
    notes += _unseeded(plan, first, again, other, prepared.privacy)
    inside, outside = None, None
    if "loss" in first:
        loss = first["loss"]
        inside, outside = float(loss[: len(members)].mean()), float(loss[len(members) :].mean())
        notes += _spoilt(plan, loss, inside, outside)
    return [Trial(seconds, inside, outside, prepared.privacy, plan.adversary, tuple(notes))]


def _unseeded(
    plan: Plan,
    first: dict[str, Floats],
    again: dict[str, Floats],
    other: dict[str, Floats],
    privacy: Privacy | None,
) -> list[str]:
    """What two trainings with one seed, and one with another, say of the trainer."""
    found, name = [], "loss" if "loss" in first else next(iter(first))
    what = "losses" if name == "loss" else "updates"
    if not np.array_equal(first[name], again[name]):
        found.append(
            f"The trainer {plan.trainer.use} is not reproducible: with one seed its {what} differed by up to "
            f"{np.abs(first[name] - again[name]).max():.3g}. Some randomness is not seeded: derive every generator "
            "from `seed`. The audit stays valid, but a run cannot be repeated bit for bit."
        )
    promised = privacy is not None or plan.audit.claimed_eps is not None
    if promised and np.array_equal(first[name], other[name]):
        found.append(
            f"The trainer {plan.trainer.use} gave the same {what} for two different seeds: its noise does not depend "
            "on `seed`. All models of a run would share it, and an audit would be worth nothing. Look for a fixed seed."
        )
    return found


def _spoilt(plan: Plan, losses: Floats, inside: float, outside: float) -> list[str]:
    if np.ptp(losses) == 0:
        return [
            f"The trainer {plan.trainer.use} gave the same loss, {losses[0]:.6g}, for every point: losses must be one "
            "for each point, not their mean."
        ]
    if inside > outside:
        return [
            f"Training points have a larger mean loss ({inside:.4g}) than others ({outside:.4g}). With much noise that "
            "is chance; without, check the sign: a loss must be low where the model fits well."
        ]
    return []
