"""The jobs of a run: pure functions of a plan, which any executor can carry to any process."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeVar

import numpy as np

from epsgauge.data.canaries.table import AUTO, CANARIES, canaries_of
from epsgauge.data.labels import unlabelled
from epsgauge.data.points import Keys, Points, as_points, digest
from epsgauge.errors import InvalidInput
from epsgauge.games import ranking
from epsgauge.games.adversary import GRADIENT
from epsgauge.games.experiment import Conditions, Watcher, draw, experiment, experiments
from epsgauge.games.ranking import Ranking
from epsgauge.games.rehearsal import STRIDE, canary_of, is_quiet
from epsgauge.games.roles import Roles, assign, candidates, ranked
from epsgauge.games.seeds import Branch
from epsgauge.games.signals import Outcome
from epsgauge.games.watching import directions, watcher
from epsgauge.mechanisms.privacy import DPSGD, Privacy
from epsgauge.probing.calibration import calibrated_once
from epsgauge.references import beside, users_code
from epsgauge.runner.code import find_code
from epsgauge.runner.hopeless import NO_CONTROL
from epsgauge.runner.limit import within
from epsgauge.runner.parts import Part
from epsgauge.runner.plan import Plan
from epsgauge.runner.provenance import computing, machine
from epsgauge.stats.arrays import Ints
from epsgauge.trainers.known_start import with_known_start
from epsgauge.trainers.protocol import (
    Accountable,
    Group,
    Many,
    Observer,
    Trainer,
    as_trainer,
    has_noise_switch,
    knows_size,
    takes,
    trains_with,
    without_noise,
)

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Table:
    """What a game is played with: the points, canaries at their end, and the trainer."""

    points: Points
    n_canary_points: int
    canaries: Ints  # [k, 2]
    names: tuple[str, ...]  # of canaries that are made from the data
    trainer: Trainer | Observer
    quiet: Trainer | Observer | None  # the same without its noise; None where it cannot be had
    keys: Callable[[], Keys]
    privacy: Privacy | None  # of the trainer with its noise, for an adversary who watches

    def digest(self, *, fresh: bool = False) -> str:
        """Of the user's points as they are, or as they were when they were last asked for.

        Canaries made from them are left out: they follow from the data, and another CPU rounds their last bits
        differently.
        """
        keys = self.points.keys() if fresh else self.keys()
        return digest(keys[: len(keys) - self.n_canary_points] if self.names else keys)


@dataclass(frozen=True)
class Prepared:
    """What the store keeps of the data and the trainer that a plan names."""

    digest: str
    privacy: Privacy | None
    notes: tuple[str, ...]
    group: Group | None  # models that are trained together
    computing: dict[str, Any] = field(default_factory=dict)  # what rounding depends on there


_last: tuple[Plan, Table] | None = None


def table(plan: Plan) -> Table:
    """Data and trainer of a plan, made once in a process; one plan at a time, as data may be large."""
    global _last
    if _last is None or not _same(_last[0], plan):
        _last = None
        _last = plan, _build(plan)
    return _last[1]


def _same(held: Plan, plan: Plan) -> bool:
    """Whether both are made of the same parts; `held` is kept, so that no new object can pass for an old one."""
    if held is plan:
        return True
    objects = held.data.target is plan.data.target and held.trainer.target is plan.trainer.target
    return objects and held.folder == plan.folder and held.fingerprinted() == plan.fingerprinted()


def trainer_of(plan: Plan, *, losses: bool = True) -> Trainer | Observer:
    """The trainer, without its noise where the plan is a control. The code of the user's own must be found already.

    `losses`: whether it must have these where the plan needs them.
    """
    trainer = as_trainer(plan.trainer.build(), plan.trainer.use, losses=losses and plan.needs_losses)
    trainer = with_known_start(trainer) if plan.start == "known" else trainer
    return without_noise(trainer, plan.trainer.use) if plan.control else trainer


def _build(plan: Plan) -> Table:
    find_code(plan)
    with beside(plan.folder):
        trainer = trainer_of(plan)
        privacy = _watched_privacy(plan, trainer) if plan.adversary.watches else None
        with users_code(f"data {plan.data.use}"):
            raw = plan.data.build()
        points = as_points(raw, plan.data.use)
        n_data, canaries, names = len(points), np.empty((0, 2), np.int64), tuple[str, ...]()
        if plan.canaries is not None:
            points, canaries, names = _with_canaries(plan, plan.canaries, raw, points)
    quiet = without_noise(trainer, plan.trainer.use) if has_noise_switch(trainer) and not plan.control else None
    return Table(points, len(points) - n_data, canaries, names, trainer, quiet, cache(points.keys), privacy)


def _with_canaries(plan: Plan, part: Part, raw: Any, points: Points) -> tuple[Points, Ints, tuple[str, ...]]:
    """Pairs as appended indices: first all z1, then all z0; an add-remove game has no z0. Names, if made from data."""
    names: list[str] = []
    with users_code(f"canaries {part.use}"):
        if part.use in (AUTO, *CANARIES):
            names, zeros, ones = canaries_of(part.use, raw, of_label=plan.game.adjacency == "label-only")
        else:
            zeros, ones = part.build()(raw)
    n_data, m = len(points), plan.game.pairs_per_model
    points = points.extended(ones)
    k = len(points) - n_data
    if k < m:
        raise InvalidInput(f"canaries {part.use} must give at least pairs_per_model = {m} pairs, but gave {k}.")
    one = np.arange(n_data, n_data + k)
    if plan.game.adjacency == "add-remove":
        return points, np.stack([np.full(k, -1), one], axis=1), tuple(names)
    points = points.extended(zeros)
    if len(points) != n_data + 2 * k:
        raise InvalidInput(
            f"canaries {part.use} must give as many z0 as z1, but gave {len(points) - n_data - k} and {k}."
        )
    keys = points.keys()
    equal = np.flatnonzero(keys[one] == keys[one + k])
    if len(equal):
        raise InvalidInput(f"canaries {part.use}: z0 and z1 of pair {equal[0]} are the same point.")
    if plan.game.adjacency == "label-only":
        places = unlabelled(points)
        apart = np.flatnonzero(places[one] != places[one + k])
        if len(apart):
            raise InvalidInput(
                f"canaries {part.use}: z0 and z1 of pair {apart[0]} must differ in the label alone in a label-only "
                "game, but differ elsewhere. Give both the same features, or play another game."
            )
    return points, np.stack([one + k, one], axis=1), tuple(names)


def split(plan: Plan) -> tuple[Ints, Ints]:
    """Reference points, and the others."""
    on = table(plan)
    records = plan.adversary.inserts in ("record", "auto")
    # a label-only game holds no point twice, with whatever labels
    keys = unlabelled(on.points) if plan.game.adjacency == "label-only" else on.keys()
    return candidates(plan.game, keys, plan.points_seed, on.n_canary_points, records=records)


def cut(plan: Plan, rankings: list[Ranking] | None) -> list[Roles]:
    """Reference, base and pool; `rankings` are those of all ranking models where the plan asks for the worst points."""
    reference, others = split(plan)
    worst = None if rankings is None else ranking.worst_first(ranked(plan.game, others), rankings)
    return [surveyed(plan, assign(plan.game, reference, others, table(plan).canaries, worst))]


def surveyed(plan: Plan, roles: Roles) -> Roles:
    """With the coordinates of gradient canaries, where the plan has them: no point is set apart for pairs then.

    Nor is one for an adversary who chooses records at each step, which are no part of the training set.
    """
    if plan.adversary.inserts == "adaptive":
        return replace(roles, canaries=roles.canaries[:0], choices=roles.canaries)
    if not plan.adversary.inserts_gradients:
        return roles
    on = table(plan)
    quiet = without_noise(on.trainer, plan.trainer.use) if has_noise_switch(on.trainer) else on.trainer
    with quietly(plan), users_code(f"the trainer {plan.trainer.use}"):
        found = directions(quiet, on.points, roles.base, roles.reference, plan.game, plan.points_seed)
    return replace(roles, pool=np.empty(0, np.int64), directions=found)


def rank(plan: Plan, indices: Sequence[int]) -> list[Ranking]:
    """Train the ranking models with these indices."""
    among = ranked(plan.game, split(plan)[1])
    on = table(plan)
    with quietly(plan), calibrated_once(), within(plan.execution.timeout, indices):
        return [ranking.rank_with(on.trainer, on.points, among, plan.points_seed, index) for index in indices]


def each(plan: Plan, job: Callable[..., list[T]], *args: Any) -> list[T]:
    """What `job(plan, ..., batch)` gives for each batch of the last argument. Batches may share a message, but not a
    training: they may have different canaries, or belong to different groups.
    """
    *shared, batches = args
    return [one for batch in batches for one in job(plan, *shared, batch)]


def play(plan: Plan, roles: Roles, group: Group | None, indices: Sequence[int]) -> list[Outcome]:
    """Play the game with the models of these indices, which are of one group if there are groups."""
    found = _played(plan, table(plan).trainer, roles, group, indices, Branch.audited)
    return [replace(outcome, machine=machine()) for outcome in found]


def _played(
    plan: Plan, trainer: Trainer | Observer, roles: Roles, group: Group | None, indices: Sequence[int], branch: Branch
) -> list[Outcome]:
    on, under = table(plan), Conditions(branch, watcher_of(plan, roles), plan.start == "known")
    with quietly(plan), calibrated_once(), within(plan.execution.timeout, indices):
        if group is not None and isinstance(trainer, Trainer):
            return experiments(plan.game, trainer, on.points, roles, plan.seed, np.asarray(indices), group, under)
        return [experiment(plan.game, trainer, on.points, roles, plan.seed, index, under) for index in indices]


def watcher_of(plan: Plan, roles: Roles) -> Watcher | None:
    """What makes the watch of each model; None for an adversary who sees losses."""
    on = table(plan)
    if not plan.adversary.watches:
        return None
    return watcher(plan.adversary, plan.game, on.privacy, roles, on.points, plan.seed)


@dataclass(frozen=True)
class Rehearsable:
    """What a rehearsal can try."""

    names: tuple[str, ...]  # of the canaries
    quiet: bool  # whether there can be models without noise
    gradient: tuple[str, ...] = ()  # what a reader should know if the last canary, a gradient, is taken


def rehearsable(plan: Plan) -> list[Rehearsable]:
    on = table(plan)
    if plan.adversary.inserts != "auto":
        return [Rehearsable(on.names, on.quiet is not None)]
    return [Rehearsable((*on.names, GRADIENT), on.quiet is not None, tuple(_notes_on_canaries(plan, on.trainer)))]


def rehearse(plan: Plan, roles: Roles, group: Group | None, numbers: Sequence[int]) -> list[Outcome]:
    """Train models of the rehearsal, all with one canary, and all with or without noise."""
    if len({number // STRIDE for number in numbers}) != 1:
        raise ValueError("models of a rehearsal with different canaries cannot be one batch")
    on = table(plan)
    trainer = on.quiet if is_quiet(numbers[0]) else on.trainer
    if trainer is None:
        raise ValueError("this trainer cannot be had without its noise")
    return _played(plan, trainer, rehearsal_roles(plan, roles, numbers[0]), group, numbers, Branch.rehearsal)


def rehearsal_roles(plan: Plan, roles: Roles, number: int) -> Roles:
    """With the one canary that this model of the rehearsal is trained with, if several are tried."""
    return roles.taking(canary_of(number)) if plan.tries_canaries else roles


@contextmanager
def quietly(plan: Plan) -> Iterator[None]:
    """In the plan's folder. What a trainer warns about is shown by a trial, and not a thousand times."""
    with beside(plan.folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def lost(plan: Plan, roles: Roles, index: int, why: str, branch: Branch = Branch.audited) -> Outcome:
    """What is known of a model without training it, where its worker could not."""
    drawn = draw(plan.game, roles, plan.seed, index, branch)
    return Outcome(index, drawn.seed, drawn.bits, drawn.pairs, 0.0, error=why)


def lost_rehearsal(plan: Plan, roles: Roles, number: int, why: str) -> Outcome:
    """The same for a model of the rehearsal."""
    return lost(plan, rehearsal_roles(plan, roles, number), number, why, Branch.rehearsal)


def _watched_privacy(plan: Plan, trainer: Trainer | Observer) -> Privacy | None:
    """What the trainer promises with its noise; refuses one that the plan's adversary cannot watch."""
    sees, inserts = plan.adversary.sees, plan.adversary.inserts
    if not trains_with(trainer, "watch"):
        raise InvalidInput(
            f'adversary.sees = "{sees}" needs a trainer whose train takes the keyword watch and calls it at each step, '
            f"but {plan.trainer.use} does not. Add it, or remove [adversary]."
        )
    noisy = as_trainer(plan.trainer.build(), plan.trainer.use, losses=False) if plan.control else trainer
    privacy = promised(plan, noisy)
    if inserts != "record" and not isinstance(privacy, DPSGD):
        raise InvalidInput(
            f'adversary.inserts = "{inserts}" needs the sampling rate, which privacy(n) of the trainer gives as '
            f'eg.DPSGD(...), but that of {plan.trainer.use} gives {privacy}. Add it, or use inserts = "record".'
        )
    return privacy


def promised(plan: Plan, trainer: Trainer | Observer) -> Privacy | None:
    """What the trainer says of itself at the size of the plan's training sets."""
    if not isinstance(trainer, Accountable):
        return None
    with users_code(f"privacy of the trainer {plan.trainer.use}"):
        found = trainer.privacy(plan.game.train_size)
    if found is None or isinstance(found, Privacy):
        return found
    raise InvalidInput(
        f"privacy(n) of the trainer {plan.trainer.use} must give eg.DPSGD(...), eg.KnownPrivacy(...) or None, but gave "
        f"{type(found).__name__}."
    )


def prepare(plan: Plan) -> list[Prepared]:
    """Import the plan's code, read its data, and note what a resume must find again."""
    on = table(plan)
    notes = []
    if plan.game.adjacency == "add-remove" and not knows_size(on.trainer):
        notes.append(
            f"trainer {plan.trainer.use} does not take the keyword size: if it computes its sampling rate or number of "
            "steps from len(data), they differ by one point between the two worlds of an add-remove game."
        )
    notes += _notes_on_canaries(plan, on.trainer) if plan.adversary.inserts in ("adaptive", "gradient") else []
    notes += _notes_on_control(plan, on)
    group = None
    if isinstance(on.trainer, Many) and (not plan.adversary.watches or takes(on.trainer.train_many, "watches")):
        group = on.trainer.group(on.points.take(np.arange(min(2, len(on.points)))), size=plan.game.train_size)
    privacy = None if plan.control else promised(plan, on.trainer)
    return [Prepared(on.digest(), privacy, tuple(notes), group, computing())]


def _notes_on_control(plan: Plan, on: Table) -> list[str]:
    """What a reader should know where no models without noise can be had."""
    claims = plan.audit.claimed_adjacency is not None or isinstance(on.trainer, Accountable)
    if plan.control or on.quiet is not None or not claims or not plan.game.n_control(plan.n_models):
        return []
    return [
        f"{NO_CONTROL}trainer {plan.trainer.use} cannot be had without noise, so that an attack that sees nothing is "
        "not found out. A field noise_multiplier or a method without_noise() would help."
    ]


def _notes_on_canaries(plan: Plan, trainer: Trainer | Observer) -> list[str]:
    """What a reader of results should know where the watch inserts the canaries."""
    adaptive = plan.adversary.inserts == "adaptive"
    notes = [
        "The canaries are gradients that need not be those of any record, and the watch draws when they take part: "
        "neither how the trainer computes and clips gradients nor how it samples records is tested."
        if not adaptive
        else "The watch adds the clipped gradients of the records that the adversary chooses, and draws when they take "
        "part: neither how the trainer clips gradients nor how it samples records is tested."
    ]
    if not knows_size(trainer):
        notes.append(
            f"trainer {plan.trainer.use} does not take the keyword size: if it computes its sampling rate or number of "
            f"steps from len(data), they are those of {plan.game.train_size - plan.game.pairs_per_model} points, as "
            "what the watch inserts is no point."
        )
    if not adaptive and not has_noise_switch(trainer):
        notes.append(
            f"trainer {plan.trainer.use} cannot be had without noise, so that the coordinates of the canaries were "
            "found in a noisy training: records may use them. A field noise_multiplier or a method without_noise() "
            "would help."
        )
    return notes
