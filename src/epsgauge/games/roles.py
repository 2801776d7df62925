"""Who is who among the points: reference, base and the pool of challenge points, cut so that they never overlap."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from epsgauge.data.points import Keys, first_of_each
from epsgauge.errors import InvalidInput
from epsgauge.games.seeds import Branch, Stream, generator
from epsgauge.games.settings import GameSettings
from epsgauge.stats.arrays import Bools, Floats, Ints

_ARRAYS = ("reference", "base", "pool", "canaries", "directions", "choices")
_LATER = ("directions", "choices")  # that stores of earlier versions do not have


@dataclass(frozen=True, eq=False)
class Roles:
    """Indices into the data. A base that is resampled is drawn from `base`, a fixed one is all of it."""

    reference: Ints
    base: Ints
    pool: Ints  # points that pairs are drawn from; empty where the pairs are explicit
    canaries: Ints  # [k, 2] explicit pairs, z0 and z1; z0 is −1 in an add-remove game; empty elsewhere
    # [m] coordinates of gradient canaries, which stand in place of points, or are tried beside them; empty elsewhere
    directions: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    # [k, 2] pairs of records among which the adversary chooses at each step, in place of canaries; empty elsewhere
    choices: Ints = field(default_factory=lambda: np.empty((0, 2), np.int64))

    @property
    def n_tried(self) -> int:
        """How many canaries a rehearsal tries: explicit pairs, and after them a gradient if it has a coordinate."""
        return len(self.canaries) + bool(len(self.directions))

    def taking(self, canary: int) -> Roles:
        """With one of the canaries that are tried."""
        if canary == len(self.canaries) < self.n_tried:
            return replace(self, canaries=self.canaries[:0])
        return replace(self, canaries=self.canaries[[canary]], directions=self.directions[:0])

    def to_arrays(self) -> dict[str, NDArray[np.int64]]:
        return {name: getattr(self, name) for name in _ARRAYS if name not in _LATER or len(getattr(self, name))}

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[np.int64]]) -> Roles:
        return cls(**{name: arrays[name] for name in _ARRAYS if name not in _LATER or name in arrays})


def candidates(
    game: GameSettings, keys: Keys, seed: int, n_canaries: int, *, records: bool = True
) -> tuple[Ints, Ints]:
    """Reference points, and all others in random order: distinct in content, and none equal to a canary.

    `records`: whether points are needed for pairs. Where none are and distinct points do not suffice, as many equal
    ones as are missing follow them: records of the base may be equal to each other.
    """
    n_points = len(keys) - n_canaries  # canaries stand at the end
    distinct = first_of_each(keys[:n_points])
    distinct = distinct[~np.isin(keys[distinct], keys[n_points:])]
    rng = generator(seed, Branch.shared, Stream.points)
    order = rng.permutation(distinct)
    reference, others = order[: game.reference_size], order[game.reference_size :]
    missing = game.train_size - game.pairs_per_model - len(others)
    if missing > 0 and (game.challenge == "explicit" or not records):
        again = np.setdiff1d(np.arange(n_points), distinct)
        again = again[~np.isin(keys[again], [*keys[n_points:], *keys[reference]])]
        others = np.concatenate([others, rng.permutation(again)[:missing]])
    _enough(game, len(reference) + len(others), records=records)
    return reference, others


def ranked(game: GameSettings, others: Ints) -> Ints:
    """The points among which the worst are looked for: as many as give training sets of the audited size."""
    return others[: 2 * game.train_size]


def assign(game: GameSettings, reference: Ints, others: Ints, canaries: Ints, worst_first: Ints | None) -> Roles:
    """Cut the pool from `others`, and the base from what is left."""
    n_base = game.train_size - game.pairs_per_model
    pool = np.empty(0, np.int64)
    if game.challenge == "worst":
        if worst_first is None:
            raise ValueError("the worst points are known only after ranking")
        pool = worst_first[: game.pool_size]
        others = others[~np.isin(others, pool)]
    elif game.challenge == "average" and game.base == "fixed":
        # from the end, so that a pool of a given size is the same for every number of pairs per model
        size = len(others) - n_base if game.pool_size is None else game.pool_size
        pool, others = others[len(others) - size :], others[: len(others) - size]
    elif game.challenge == "average" and game.pool_size is not None:
        pool, others = others[len(others) - game.pool_size :], others[: len(others) - game.pool_size]
    elif game.challenge == "average":
        pool = others  # base and pairs of a model are then one draw without replacement
    base = others[:n_base] if game.base == "fixed" else others
    return Roles(np.sort(reference), np.sort(base), np.sort(pool), canaries)


def _enough(game: GameSettings, available: int, *, records: bool) -> None:
    """Raise where the distinct points do not suffice, with the sum that says how many would."""
    needs = {"the base": game.train_size - game.pairs_per_model, "the reference": game.reference_size}
    if records and game.challenge != "explicit":
        drawn = game.points_per_pair * game.pairs_per_model
        pool = drawn if game.pool_size is None else game.pool_size
        if pool < drawn:
            raise InvalidInput(
                f"game.pool_size must be at least {drawn}, for {game.pairs_per_model} pairs per model, but got {pool}."
            )
        if game.challenge == "worst" and pool > 2 * game.train_size:
            raise InvalidInput(
                f"game.pool_size must be at most {2 * game.train_size} = 2 · train_size, the number of points that are "
                f"ranked, but got {pool}."
            )
        needs["the pool" if game.pool_size else "the pairs"] = pool
    total = sum(needs.values())
    if total > available:
        parts = ", ".join(f"{n} for {what}" for what, n in needs.items())
        raise InvalidInput(
            f"the data must have at least {total} distinct points ({parts}), but has {available}. Use a smaller "
            'train_size, reference_size or pool, or more data. With canaries (challenge = "explicit") records of the '
            "base may be equal."
        )


def gaps(members: Bools, losses: Floats) -> Floats:
    """Mean loss where a point was out minus mean loss where it was in; [models, points] -> [points].

    A point that was never in, or never out, has a gap of −∞: nothing is known of it.
    """
    inside = np.count_nonzero(members, axis=0)
    outside = len(members) - inside
    with np.errstate(invalid="ignore", divide="ignore"):
        gap = np.where(members, 0.0, losses).sum(axis=0) / outside - np.where(members, losses, 0.0).sum(axis=0) / inside
    return np.where((inside > 0) & (outside > 0), gap, -np.inf)
