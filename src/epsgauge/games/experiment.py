"""One experiment: bits and pairs of a model, the training set that they make, and what is seen of the model."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsgauge.data.points import Points
from epsgauge.errors import EpsgaugeError
from epsgauge.games.roles import Roles
from epsgauge.games.seeds import Branch, Stream, generator, training_seed
from epsgauge.games.settings import GameSettings
from epsgauge.games.signals import Outcome, sketch
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.trainers.protocol import Group, Many, Observer, Trainer, checked_channels, observed


@dataclass(frozen=True, eq=False)
class Draw:
    """What chance decided for one model; `training` holds indices, those of the pairs last."""

    index: int
    seed: int
    bits: Ints  # [m]
    pairs: Ints  # [m, 2]
    training: Ints  # n of them; an add-remove game has one less for each bit 0


def draw(game: GameSettings, roles: Roles, run_seed: int, index: int, branch: Branch = Branch.audited) -> Draw:
    """Bits, pairs and training set of the model with this index (Experiments 1 and 2, and that of the appendix).

    In a rehearsal, which no bound rests on, bits are dealt in turns.
    """
    m = game.pairs_per_model
    bits = generator(run_seed, branch, Stream.bits, index).integers(0, 2, size=m)
    if branch is Branch.rehearsal:
        bits = (index + np.arange(m)) % 2
    fresh = game.pairs_are == "fresh"
    chosen = generator(run_seed, branch if fresh else Branch.shared, Stream.pairs, index if fresh else 0)
    if len(roles.canaries):
        which = np.sort(chosen.choice(len(roles.canaries), size=m, replace=False)) if fresh else np.arange(m)
        pairs = roles.canaries[which]
    elif game.points_per_pair == 2:
        pairs = chosen.choice(roles.pool, size=(m, 2), replace=False)
    else:
        pairs = np.stack([np.full(m, -1), chosen.choice(roles.pool, size=m, replace=False)], axis=1)
    base = roles.base
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
    branch: Branch = Branch.audited,
) -> Outcome:
    """Train on the drawn set and look at the model; a failure of the trainer is an outcome too."""
    drawn = draw(game, roles, run_seed, index, branch)
    start = time.perf_counter()

    def look(asked: Ints) -> dict[str, Floats]:
        data, wanted = points.take(drawn.training), points.take(asked)
        known = game.start_is == "known"
        return observed(trainer, data, wanted, len(asked), seed=drawn.seed, size=game.train_size, known_start=known)

    return _seen(drawn, roles, look, start)


def experiments(
    game: GameSettings,
    trainer: Trainer,
    points: Points,
    roles: Roles,
    run_seed: int,
    indices: Ints,
    group: Group,
    branch: Branch = Branch.audited,
) -> list[Outcome]:
    """The same for models of one group, trained together; those that are not asked for keep their slots."""
    if not isinstance(trainer, Many):
        raise TypeError("only a trainer of many models can train a group")
    first = int(indices[0]) // group.size * group.size
    drawn = {int(i): draw(game, roles, run_seed, int(i), branch) for i in indices}
    slots = [drawn.get(i) for i in range(first, int(indices[-1]) + 1)]
    start = time.perf_counter()
    try:
        models = trainer.train_many(
            [None if slot is None else points.take(slot.training) for slot in slots],
            seeds=[0 if slot is None else slot.seed for slot in slots],
            size=game.train_size,
            group=group,
        )
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:
        if len(indices) > 1:  # each alone, in its slot, to see whose fault it is
            apart = (
                experiments(game, trainer, points, roles, run_seed, indices[i : i + 1], group, branch)
                for i in range(len(indices))
            )
            return [outcome for one in apart for outcome in one]
        return [_failed(drawn[int(indices[0])], error, start)]
    share = (time.perf_counter() - start) / len(indices)  # of a model, of the time of its group

    def seen(slot: Draw, model: Any) -> Outcome:
        def look(asked: Ints) -> dict[str, Floats]:
            return checked_channels(trainer.losses(model, points.take(asked)), len(asked))

        return _seen(slot, roles, look, time.perf_counter() - share)

    return [seen(slot, model) for slot, model in zip(slots, models, strict=True) if slot is not None]


def _seen(drawn: Draw, roles: Roles, look: Callable[[Ints], dict[str, Floats]], start: float) -> Outcome:
    """The outcome of a model of which `look` says what is seen with given points."""
    m = len(drawn.bits)
    zero = np.flatnonzero(drawn.pairs[:, 0] >= 0)
    asked = np.concatenate([drawn.pairs[:, 1], drawn.pairs[zero, 0], roles.reference])
    try:
        found = look(asked)
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # a training script may call sys.exit
        return _failed(drawn, error, start)

    def of_pairs(values: Floats) -> Floats:
        """[m, 2, …]: rows of z0 and z1; NaN where there is no z0."""
        out: Floats = np.full((m, 2, *values.shape[1:]), np.nan)
        out[:, 1], out[zero, 0] = values[:m], values[m : m + len(zero)]
        return out

    loss = found.pop("loss")
    channels = {"loss": of_pairs(loss), "reference": sketch(loss[m + len(zero) :])}
    for name, values in found.items():
        channels[name] = of_pairs(values) if values.shape[:1] == asked.shape else values
    return Outcome(drawn.index, drawn.seed, drawn.bits, drawn.pairs, time.perf_counter() - start, channels)


def _failed(drawn: Draw, error: BaseException, start: float) -> Outcome:
    seconds = time.perf_counter() - start
    return Outcome(drawn.index, drawn.seed, drawn.bits, drawn.pairs, seconds, error=failure(error))


def failure(error: BaseException) -> str:
    """What to keep of an error: our own sentences as they are, others with their traceback."""
    if isinstance(error, EpsgaugeError):
        return f"{error}"
    return "".join(traceback.format_exception(error)).rstrip()
