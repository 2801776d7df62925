"""The worst-case points: models on random halves, and how much less a point's loss is where it was trained on."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from epsgauge.data.points import Points
from epsgauge.errors import InvalidInput
from epsgauge.games.experiment import failure
from epsgauge.games.roles import gaps
from epsgauge.games.seeds import Branch, Stream, generator, training_seed
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.trainers.leaving import is_users_own
from epsgauge.trainers.protocol import Observer, Trainer, observed


@dataclass(frozen=True, eq=False)
class Ranking:
    """One ranking model: which positions of the ranked points it was trained on, and its losses on all of them."""

    index: int
    seed: int
    seconds: float
    members: Ints
    losses: Floats
    error: str | None = None


def members_of(n_ranked: int, run_seed: int, index: int) -> Ints:
    """Positions of the ranked points that a ranking model is trained on."""
    rng = generator(run_seed, Branch.ranking, Stream.base, index)
    return np.sort(rng.choice(n_ranked, size=n_ranked // 2, replace=False))


def rank_with(trainer: Trainer | Observer, points: Points, among: Ints, run_seed: int, index: int) -> Ranking:
    """Train on a random half of `among`; its seeds are of a branch of their own."""
    members = members_of(len(among), run_seed, index)
    seed, start = training_seed(run_seed, Branch.ranking, index), time.perf_counter()
    losses, error = np.empty(0), None
    try:
        data = points.take(among[members])
        losses = observed(trainer, data, points.take(among), len(among), seed=seed, size=len(members))["loss"]
    except BaseException as problem:
        if is_users_own(problem):
            raise
        error = failure(problem)
    return Ranking(index, seed, time.perf_counter() - start, members, losses, error)


def worst_first(among: Ints, rankings: list[Ranking]) -> Ints:
    """The ranked points, the one with the largest gap between out- and in-loss first."""
    good = [r for r in rankings if r.error is None]
    if len(good) < 32:
        first = next((r.error for r in rankings if r.error), "none")
        raise InvalidInput(
            f"the worst points need at least 32 ranking models, but only {len(good)} of {len(rankings)} trained. The "
            f"first error: {first.splitlines()[-1]} Mend it, and run it again with --retry-failed."
        )
    members = np.zeros((len(good), len(among)), dtype=bool)
    for row, ranking in enumerate(good):
        members[row, ranking.members] = True
    gap = gaps(members, np.stack([r.losses for r in good]))
    return among[np.argsort(-gap, kind="stable")]
