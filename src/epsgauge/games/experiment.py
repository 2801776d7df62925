"""One experiment: bits and pairs of a model, the training set that they make, and what is seen of the model."""

from __future__ import annotations

import time
import traceback
from dataclasses import dataclass

import numpy as np

from epsgauge.data.points import Points
from epsgauge.errors import EpsgaugeError
from epsgauge.games.roles import Roles
from epsgauge.games.seeds import Branch, Stream, generator, training_seed
from epsgauge.games.settings import GameSettings
from epsgauge.games.signals import Outcome, sketch
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.trainers.protocol import Observer, Trainer, observed


@dataclass(frozen=True, eq=False)
class Draw:
    """What chance decided for one model; `training` holds indices, those of the pairs last."""

    index: int
    seed: int
    bits: Ints  # [m]
    pairs: Ints  # [m, 2]
    training: Ints  # n of them; an add-remove game has one less for each bit 0


def draw(game: GameSettings, roles: Roles, run_seed: int, index: int) -> Draw:
    """Bits, pairs and training set of the model with this index (Experiments 1 and 2, and that of the appendix)."""
    m = game.pairs_per_model
    bits = generator(run_seed, Branch.audited, Stream.bits, index).integers(0, 2, size=m)
    fresh = game.pairs_are == "fresh"
    chosen = generator(run_seed, Branch.audited if fresh else Branch.shared, Stream.pairs, index if fresh else 0)
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
        rng = generator(run_seed, Branch.audited, Stream.base, index)
        base = np.sort(rng.choice(left, size=game.train_size - m, replace=False))
    members = pairs[np.arange(m), bits]
    training = np.concatenate([base, members[members >= 0]])
    return Draw(index, training_seed(run_seed, Branch.audited, index), bits, pairs, training)


def experiment(
    game: GameSettings, trainer: Trainer | Observer, points: Points, roles: Roles, run_seed: int, index: int
) -> Outcome:
    """Train on the drawn set and look at the losses; a failure of the trainer is an outcome too."""
    drawn = draw(game, roles, run_seed, index)
    start = time.perf_counter()
    m = game.pairs_per_model
    zero = np.flatnonzero(drawn.pairs[:, 0] >= 0)
    asked = np.concatenate([drawn.pairs[:, 1], drawn.pairs[zero, 0], roles.reference])
    try:
        losses = observed(
            trainer, points.take(drawn.training), points.take(asked), len(asked), seed=drawn.seed, size=game.train_size
        )
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # a training script may call sys.exit
        return Outcome(index, drawn.seed, drawn.bits, drawn.pairs, time.perf_counter() - start, error=failure(error))
    loss0: Floats = np.full(m, np.nan)
    loss0[zero] = losses[m : m + len(zero)]
    return Outcome(
        index,
        drawn.seed,
        drawn.bits,
        drawn.pairs,
        time.perf_counter() - start,
        loss0,
        losses[:m],
        sketch(losses[m + len(zero) :]),
    )


def failure(error: BaseException) -> str:
    """What to keep of an error: our own sentences as they are, others with their traceback."""
    if isinstance(error, EpsgaugeError):
        return f"{error}"
    return "".join(traceback.format_exception(error)).rstrip()
