"""Which way scores point: a table that points the wrong way is refused, or judged either way at a price."""

from __future__ import annotations

from typing import Literal

import numpy as np

from epsgauge.auditing.control import right_order
from epsgauge.errors import InvalidInput
from epsgauge.scores.table import Scores

# "kept": as they are, wherever they point. "either": as they point, paid for as two audits. Else they are checked.
Direction = Literal["kept", "either"]
EITHER = "The scores decided which direction is judged, so each of the two directions has half of 1 − level."
BY_CHANCE = 1e-5  # scores that tell nothing are refused so often, if each row is of a model of its own


def points_down(scores: Scores) -> tuple[bool, float]:
    """Whether rows with b = 1 have the lower scores, beyond chance; and how often they have, of all pairs of rows."""
    if len(np.unique(scores.bit)) < 2:
        return False, 0.5
    share, by_chance = right_order(-scores.score, scores.bit)
    return by_chance <= BY_CHANCE, share


def directed(scores: Scores, direction: Direction | None) -> tuple[Scores, int]:
    """The scores as they are judged, and how many audits share what may be missed.

    To look which way judged scores point is to choose between two audits. If each misses with half the chance, the
    one that is chosen misses with no more than the whole, however it is chosen.
    """
    if direction not in (None, "kept", "either"):
        raise InvalidInput(f'direction must be "kept" or "either", but got {direction!r}. Or leave it out.')
    if direction == "either":
        down = points_down(scores)[1] > 0.5
        return (scores.with_score(-scores.score) if down else scores), 2
    if direction is None:
        check_direction(scores)
    return scores, 1


def check_direction(scores: Scores) -> None:
    """Refuse scores that point the wrong way: they would look like an attack that finds nothing."""
    down, share = points_down(scores)
    if not down:
        return
    lower = scores.origin is not None and scores.origin.lower_is_in
    turn = (
        "If a higher score means that b = 1, leave out --lower-is-in"
        if lower
        else "If a lower score means that b = 1, as with losses, pass --lower-is-in (lower_is_in=True in Python)"
    )
    raise InvalidInput(
        f"scores must be {'lower' if lower else 'higher'} where b = 1, but they point the other way: of two rows, one "
        f"with each bit, the one with b = 1 has the {'higher' if lower else 'lower'} score in {100 * share:.0f} % of "
        f"cases. {turn}; the guarantee then holds only if you knew this before you saw these scores. If you did not, "
        'pass --either-way (direction="either"): it judges both directions, each with half of 1 − level. To judge the '
        'scores as they are, pass --keep-direction (direction="kept").'
    )
