"""One experiment: bits and pairs of a model, the training set that they make, and what is seen of the model."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsgauge.data.points import Points
from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.games.rehearsal import is_quiet
from epsgauge.games.roles import Roles
from epsgauge.games.seeds import Branch, Stream, generator, training_seed
from epsgauge.games.settings import GameSettings
from epsgauge.games.signals import Outcome, sketch
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.trainers.leaving import is_users_own
from epsgauge.trainers.protocol import Group, Many, Observer, Trainer, checked_channels, observed
from epsgauge.trainers.watch import Watch

SEEDS = "A seed is below 2**63. Use seed % 2**32, or let train take random_state in place of seed."
ERROR_CHARACTERS = 20_000  # of an error's text that are kept, half of them from its end


@dataclass(frozen=True, eq=False)
class Draw:
    """What chance decided for one model; `training` holds indices, those of the pairs last."""

    index: int
    seed: int
    bits: Ints  # [m]
    pairs: Ints  # [m, 2]; −1 where there is no such point
    training: Ints  # n of them; an add-remove game has one less for each bit 0; what a watch inserts is none of them


Watcher = Callable[[Draw], Watch]  # makes the watch of a model, where the adversary sees more than losses


@dataclass(frozen=True)
class Conditions:
    """Under which models of one kind are trained and seen."""

    branch: Branch = Branch.audited
    watcher: Watcher | None = None
    known_start: bool = False

    def watch(self, drawn: Draw) -> Watch | None:
        return None if self.watcher is None else self.watcher(drawn)


def bits_of(game: GameSettings, run_seed: int, index: int, branch: Branch = Branch.audited) -> Ints:
    """The bits of the model with this index.

    In a rehearsal, which no bound rests on, they are dealt in turns: the second of two models has the opposite bits of
    the first. With noise, pairs after the first begin with either bit, so that an attack that learns sees many sets.
    """
    if branch is Branch.rehearsal:
        turns = (index + np.arange(game.pairs_per_model)) % 2
        if is_quiet(index):
            return turns
        begin = generator(run_seed, branch, Stream.bits, index // 2).integers(0, 2, size=game.pairs_per_model)
        begin[0] = 0
        return turns ^ begin
    return generator(run_seed, branch, Stream.bits, index).integers(0, 2, size=game.pairs_per_model)


def pairs_of(game: GameSettings, roles: Roles, run_seed: int, index: int, branch: Branch = Branch.audited) -> Ints:
    """The pairs of the model with this index."""
    m = game.pairs_per_model
    fresh = game.pairs_are == "fresh"
    chosen = generator(run_seed, branch if fresh else Branch.shared, Stream.pairs, index if fresh else 0)
    if len(roles.directions) or len(roles.choices):
        return np.full((m, 2), -1)
    if len(roles.canaries):
        which = np.sort(chosen.choice(len(roles.canaries), size=m, replace=False)) if fresh else np.arange(m)
        return roles.canaries[which]
    if game.points_per_pair == 2:
        return chosen.choice(roles.pool, size=(m, 2), replace=False)
    return np.stack([np.full(m, -1), chosen.choice(roles.pool, size=m, replace=False)], axis=1)


def draw(game: GameSettings, roles: Roles, run_seed: int, index: int, branch: Branch = Branch.audited) -> Draw:
    """Bits, pairs and training set of the model with this index (Experiments 1 and 2, and that of the appendix)."""
    m, base = game.pairs_per_model, roles.base
    bits, pairs = bits_of(game, run_seed, index, branch), pairs_of(game, roles, run_seed, index, branch)
    if game.base == "resampled":
        left = np.setdiff1d(base, pairs)
        rng = generator(run_seed, branch, Stream.base, index)
        base = np.sort(rng.choice(left, size=game.train_size - m, replace=False))
    members = pairs[np.arange(m), bits]
    training = np.concatenate([base, members[members >= 0]])
    return Draw(index, training_seed(run_seed, branch, index), bits, pairs, training)


def experiment(
    game: GameSettings,
    trainer: Trainer | Observer,
    points: Points,
    roles: Roles,
    run_seed: int,
    index: int,
    under: Conditions | None = None,
) -> Outcome:
    """Train on the drawn set and look at the model; a failure of the trainer is an outcome too."""
    under = under or Conditions()
    drawn = draw(game, roles, run_seed, index, under.branch)
    watch, known = under.watch(drawn), under.known_start
    start = time.perf_counter()

    def look(asked: Ints) -> dict[str, Floats]:
        data, wanted = points.take(drawn.training), points.take(asked)
        extra: dict[str, Any] = {"seed": drawn.seed, "size": game.train_size, "watch": watch, "known_start": known}
        return observed(trainer, data, wanted, len(asked), **extra)

    return _seen(game, drawn, roles, look, start, watch)


def experiments(
    game: GameSettings,
    trainer: Trainer,
    points: Points,
    roles: Roles,
    run_seed: int,
    indices: Ints,
    group: Group,
    under: Conditions | None = None,
) -> list[Outcome]:
    """The same for models of one group, trained together; those that are not asked for keep their slots."""
    if not isinstance(trainer, Many):
        raise TypeError("only a trainer of many models can train a group")
    first = int(indices[0]) // group.size * group.size
    if int(indices[-1]) // group.size * group.size != first:
        raise ValueError("models of different groups cannot be trained together")
    under = under or Conditions()
    drawn = {int(i): draw(game, roles, run_seed, int(i), under.branch) for i in indices}
    slots = [drawn.get(i) for i in range(first, int(indices[-1]) + 1)]
    watches = {i: under.watch(one) for i, one in drawn.items()}
    extra = {"watches": [None if s is None else watches[s.index] for s in slots]} if under.watcher else {}
    start = time.perf_counter()
    try:
        models = trainer.train_many(
            [None if slot is None else points.take(slot.training) for slot in slots],
            seeds=[0 if slot is None else slot.seed for slot in slots],
            size=game.train_size,
            group=group,
            **extra,
        )
    except BaseException as error:
        if is_users_own(error):
            raise
        if len(indices) > 1:  # each alone, in its slot, to see whose fault it is
            apart = (
                experiments(game, trainer, points, roles, run_seed, indices[i : i + 1], group, under)
                for i in range(len(indices))
            )
            return [outcome for one in apart for outcome in one]
        return [_failed(drawn[int(indices[0])], error, start)]
    share = (time.perf_counter() - start) / len(indices)  # of a model, of the time of its group

    def seen(slot: Draw, model: Any) -> Outcome:
        def look(asked: Ints) -> dict[str, Floats]:
            return checked_channels(trainer.losses(model, points.take(asked)), len(asked))

        return _seen(game, slot, roles, look, time.perf_counter() - share, watches.get(slot.index))

    return [seen(slot, model) for slot, model in zip(slots, models, strict=True) if slot is not None]


def _seen(
    game: GameSettings,
    drawn: Draw,
    roles: Roles,
    look: Callable[[Ints], dict[str, Floats]],
    start: float,
    watch: Watch | None,
) -> Outcome:
    """The outcome of a model of which `look` says what is seen with given points, and `watch` what was seen before."""
    m = len(drawn.bits)
    zero, one = (np.flatnonzero(drawn.pairs[:, side] >= 0) for side in (0, 1))
    asked = np.concatenate([drawn.pairs[one, 1], drawn.pairs[zero, 0], roles.reference])
    try:
        found = look(asked)
        watched = {} if watch is None else watch.channels()
        for name in watched.keys() & found.keys():
            raise InvalidInput(f"channel {name} is that of the watch, but the trainer gave one too. Rename yours.")
    except BaseException as error:  # a training script may call sys.exit
        if is_users_own(error):
            raise
        return _failed(drawn, error, start)

    def of_pairs(values: Floats) -> Floats:
        """[m, 2, …]: rows of z0 and z1; NaN where there is no such point."""
        out: Floats = np.full((m, 2, *values.shape[1:]), np.nan)
        out[one, 1], out[zero, 0] = values[: len(one)], values[len(one) : len(one) + len(zero)]
        return out

    channels: dict[str, Floats] = {}
    if "loss" in found:
        loss = found.pop("loss")
        population = loss[len(one) + len(zero) :]
        channels = {"loss": of_pairs(loss), "reference": sketch(population)}
        if game.population:
            channels["population"] = population
    for name, values in found.items():
        channels[name] = of_pairs(values) if values.shape[:1] == asked.shape else values
    channels |= watched
    return Outcome(drawn.index, drawn.seed, drawn.bits, drawn.pairs, time.perf_counter() - start, channels)


def _failed(drawn: Draw, error: BaseException, start: float) -> Outcome:
    seconds = time.perf_counter() - start
    return Outcome(drawn.index, drawn.seed, drawn.bits, drawn.pairs, seconds, error=failure(error))


def failure(error: BaseException) -> str:
    """What to keep of an error: our own sentences as they are, others with their traceback; any text can be stored."""
    raw = f"{error}" if isinstance(error, EpsgaugeError) else "".join(traceback.format_exception(error)).rstrip()
    if "2**32 - 1" in str(error):  # what NumPy and scikit-learn say of a larger seed
        raw += f"\n{SEEDS}"
    text = raw.encode("utf-8", "backslashreplace").decode()
    half = ERROR_CHARACTERS // 2
    return text if len(text) <= ERROR_CHARACTERS else f"{text[:half]}\n[…]\n{text[-half:]}"
