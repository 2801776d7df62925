"""Who watches a training: the watch of each model, and the survey that finds where gradient canaries stand."""

from __future__ import annotations

import numpy as np

from epsgauge.data.points import Points
from epsgauge.errors import InvalidInput
from epsgauge.games.adversary import AdversarySettings
from epsgauge.games.experiment import Draw, Watcher
from epsgauge.games.roles import Roles
from epsgauge.games.seeds import Branch, Stream, child, generator, training_seed
from epsgauge.games.settings import GameSettings
from epsgauge.mechanisms.privacy import DPSGD, Privacy
from epsgauge.stats.arrays import Ints
from epsgauge.trainers.adaptive import AdaptiveRecords
from epsgauge.trainers.protocol import Observer, Trainer, observed
from epsgauge.trainers.watch import Watch
from epsgauge.trainers.watches import GradientCanaries, RecordCanaries, Survey


def watcher(
    adversary: AdversarySettings, game: GameSettings, privacy: Privacy | None, roles: Roles, points: Points, seed: int
) -> Watcher:
    """Makes the watch of a model. `privacy` is that of the trainer with its noise, also in a control."""

    def watch(drawn: Draw) -> Watch:
        if adversary.sees not in ("model", "updates"):
            raise ValueError("an adversary who sees losses has no watch")
        if not len(roles.directions) and not len(roles.choices):
            asked = drawn.pairs[:, ::-1].T.ravel()  # all z1, then all z0
            records = points.take(asked[asked >= 0])
            return RecordCanaries(records=records, pairs=len(drawn.bits), adjacency=game.adjacency, privacy=privacy)
        if not isinstance(privacy, DPSGD):
            raise ValueError("what a watch inserts needs a sampling rate")
        own = child(seed, Branch.audited, Stream.watch, drawn.index)
        if len(roles.choices):
            asked = roles.choices[:, ::-1].T.ravel()
            return AdaptiveRecords(
                records=points.take(asked[asked >= 0]),
                choices=len(roles.choices),
                bit=int(drawn.bits[0]),
                adjacency=game.adjacency,
                privacy=privacy,
                seed=own,
            )
        return GradientCanaries(
            directions=roles.directions,
            bits=drawn.bits,
            adjacency=game.adjacency,
            privacy=privacy,
            sees=adversary.sees,
            seed=own,
        )

    return watch


def directions(
    trainer: Trainer | Observer, points: Points, base: Ints, reference: Ints, game: GameSettings, seed: int
) -> Ints:
    """A coordinate for each canary: those that one training on the base uses least; ties are broken by chance."""
    m, survey = game.pairs_per_model, Survey()
    rng = generator(seed, Branch.survey, Stream.base)
    members = np.sort(rng.permutation(base)[: game.train_size - m])
    data, some = points.take(members), points.take(reference[:1])
    own = training_seed(seed, Branch.survey, 0)
    observed(trainer, data, some, 1, seed=own, size=game.train_size, watch=survey)
    squares = survey.channels()["squares"]
    if m > len(squares):
        raise InvalidInput(
            f"pairs_per_model must be at most {len(squares)}, the number of parameters, as each gradient canary has a "
            f"coordinate of its own, but got {m}."
        )
    order = rng.permutation(len(squares))
    return order[np.argsort(squares[order], kind="stable")][:m]
