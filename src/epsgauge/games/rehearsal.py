"""The rehearsal: models set apart on which canaries are tried, the attack learns, and is played without noise.

No bound rests on them. Each has a number that says which canary it was trained with, whether without noise, and which
one of those it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from epsgauge.games.settings import GameSettings
from epsgauge.stats.arrays import Ints

N = TypeVar("N", int, Ints)

# More models than any rehearsal has of one kind.
STRIDE = 4096
# After each round the better half is tried further, until there are so many.
LAST = 3


@dataclass(frozen=True)
class Round:
    """So many canaries are tried on so many models each, of which some are new in this round."""

    canaries: int
    models: int
    new: int


def rounds(game: GameSettings, n_models: int, n_canaries: int) -> list[Round]:
    """Each takes about as many models as the others; even numbers, as bits are dealt in turns."""
    in_all = n_models // 4 if game.rehearsal_models is None else game.rehearsal_models
    left = [n_canaries]
    while left[-1] > LAST:
        left.append(max(left[-1] // 2, LAST))
    found, models = list[Round](), 0
    for canaries in left:
        new = min(max(in_all // (len(left) * canaries) // 2 * 2, 4), STRIDE - models)
        models += new
        found.append(Round(canaries, models, new))
    return found


def number_of(canary: int, place: int, *, quiet: bool) -> int:
    return (2 * canary + quiet) * STRIDE + place


def canary_of(numbers: N) -> N:
    return numbers // (2 * STRIDE)


def is_quiet(numbers: N) -> N:
    return numbers // STRIDE % 2
