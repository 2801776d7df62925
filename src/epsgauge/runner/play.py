"""The jobs of a run: pure functions of a plan, which any executor can carry to any process."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from epsgauge.data.canaries.table import AUTO, CANARIES, canaries_of
from epsgauge.data.points import Keys, Points, as_points, digest
from epsgauge.errors import InvalidInput
from epsgauge.games import ranking
from epsgauge.games.experiment import draw, experiment, experiments
from epsgauge.games.ranking import Ranking
from epsgauge.games.rehearsal import canary_of, is_quiet
from epsgauge.games.roles import Roles, assign, candidates, ranked
from epsgauge.games.seeds import Branch
from epsgauge.games.signals import Outcome
from epsgauge.mechanisms.privacy import Privacy
from epsgauge.references import beside, search_in, users_code
from epsgauge.runner.parts import Part
from epsgauge.runner.plan import Plan
from epsgauge.stats.arrays import Ints
from epsgauge.trainers.protocol import (
    Accountable,
    Group,
    Many,
    Observer,
    Trainer,
    as_trainer,
    can_be_quiet,
    knows_size,
    without_noise,
)
from epsgauge.trainers.start import with_known_start


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


@dataclass(frozen=True)
class Prepared:
    """What the store keeps of the data and the trainer that a plan names."""

    digest: str
    privacy: Privacy | None
    notes: tuple[str, ...]
    group: Group | None  # models that are trained together


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


def trainer_of(plan: Plan) -> Trainer | Observer:
    """The trainer, without its noise where the plan is a control."""
    search_in(plan.folder)
    trainer = as_trainer(plan.trainer.build(), plan.trainer.use)
    trainer = with_known_start(trainer) if plan.game.start_is == "known" else trainer
    return without_noise(trainer, plan.trainer.use) if plan.control else trainer


def _build(plan: Plan) -> Table:
    with beside(plan.folder):
        trainer = trainer_of(plan)
        with users_code(f"data {plan.data.use}"):
            raw = plan.data.build()
        points = as_points(raw, plan.data.use)
        n_data, canaries, names = len(points), np.empty((0, 2), np.int64), tuple[str, ...]()
        if plan.canaries is not None:
            points, canaries, names = _with_canaries(plan, plan.canaries, raw, points)
    return Table(points, len(points) - n_data, canaries, names, trainer, _quiet(plan, trainer), cache(points.keys))


def _quiet(plan: Plan, trainer: Trainer | Observer) -> Trainer | Observer | None:
    return without_noise(trainer, plan.trainer.use) if can_be_quiet(trainer) and not plan.control else None


def _with_canaries(plan: Plan, part: Part, raw: Any, points: Points) -> tuple[Points, Ints, tuple[str, ...]]:
    """Pairs as appended indices: first all z1, then all z0; an add-remove game has no z0. Names, if made from data."""
    names: list[str] = []
    with users_code(f"canaries {part.use}"):
        if part.use in (AUTO, *CANARIES):
            names, zeros, ones = canaries_of(part.use, raw)
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
    return points, np.stack([one + k, one], axis=1), tuple(names)


def _split(plan: Plan) -> tuple[Ints, Ints]:
    """Reference points, and the others."""
    on = table(plan)
    return candidates(plan.game, on.keys(), plan.points_seed, on.n_canary_points)


def cut(plan: Plan, rankings: list[Ranking] | None) -> list[Roles]:
    """Reference, base and pool; `rankings` are those of all ranking models where the plan asks for the worst points."""
    reference, others = _split(plan)
    worst = None if rankings is None else ranking.worst_first(ranked(plan.game, others), rankings)
    return [assign(plan.game, reference, others, table(plan).canaries, worst)]


def rank(plan: Plan, indices: Sequence[int]) -> list[Ranking]:
    """Train the ranking models with these indices."""
    among = ranked(plan.game, _split(plan)[1])
    on = table(plan)
    with _quietly(plan):
        return [ranking.rank_with(on.trainer, on.points, among, plan.points_seed, index) for index in indices]


def play(plan: Plan, roles: Roles, group: Group | None, indices: Sequence[int]) -> list[Outcome]:
    """Play the game with the models of these indices, which are of one group if there are groups."""
    on = table(plan)
    with _quietly(plan):
        if group is not None and isinstance(on.trainer, Trainer):
            return experiments(plan.game, on.trainer, on.points, roles, plan.seed, np.asarray(indices), group)
        return [experiment(plan.game, on.trainer, on.points, roles, plan.seed, index) for index in indices]


def rehearsable(plan: Plan) -> list[tuple[tuple[str, ...], bool]]:
    """The names of the canaries that can be tried, and whether there can be models without noise."""
    on = table(plan)
    return [(on.names, on.quiet is not None)]


def rehearse(plan: Plan, roles: Roles, group: Group | None, numbers: Sequence[int]) -> list[Outcome]:
    """Train models of the rehearsal, all with one canary, and all with or without noise."""
    on, some = table(plan), np.asarray(numbers)
    trainer = on.quiet if is_quiet(some)[0] else on.trainer
    if trainer is None:
        raise ValueError("this trainer cannot be had without its noise")
    own, of = _with_canary(roles, int(some[0])), Branch.rehearsal
    with _quietly(plan):
        if group is not None and isinstance(trainer, Trainer):
            return experiments(plan.game, trainer, on.points, own, plan.seed, some, group, of)
        return [experiment(plan.game, trainer, on.points, own, plan.seed, number, of) for number in numbers]


def rehearsal_bits(plan: Plan, roles: Roles, number: int) -> tuple[Ints, Ints, int]:
    """What is known of a model of the rehearsal without training it."""
    drawn = draw(plan.game, _with_canary(roles, number), plan.seed, number, Branch.rehearsal)
    return drawn.bits, drawn.pairs, drawn.seed


def _with_canary(roles: Roles, number: int) -> Roles:
    """With the one canary that this model of the rehearsal is trained with, where several are tried."""
    which = int(canary_of(np.array([number]))[0])
    return replace(roles, canaries=roles.canaries[[which]]) if len(roles.canaries) > which > 0 else roles


@contextmanager
def _quietly(plan: Plan) -> Iterator[None]:
    """In the plan's folder. What a trainer warns about is shown by a trial, and not a thousand times."""
    with beside(plan.folder), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def bits_and_pairs(plan: Plan, roles: Roles, index: int) -> tuple[Ints, Ints, int]:
    """What is known of a model without training it."""
    drawn = draw(plan.game, roles, plan.seed, index)
    return drawn.bits, drawn.pairs, drawn.seed


def promised(plan: Plan, trainer: Trainer | Observer) -> Privacy | None:
    """What the trainer says of itself at the size of the plan's training sets."""
    if plan.control or not isinstance(trainer, Accountable):
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
    group = None
    if isinstance(on.trainer, Many):
        group = on.trainer.group(on.points.take(np.arange(min(2, len(on.points)))), size=plan.game.train_size)
    return [Prepared(digest(on.keys()), promised(plan, on.trainer), tuple(notes), group)]
