"""Frozen noise: a mechanism on both data sets with the same noise, which shows what one record moves exactly."""

from __future__ import annotations

import numpy as np

from epsgauge.numbers import number
from epsgauge.probing.finding import Finding, not_tested
from epsgauge.sampling.game import MechanismGame

SEEDS = 16
ADDED = 0.01  # differences that vary by less, in units of the stated sensitivity, are those of noise that is added
ROUNDING = 1e-9


def sensitivity(game: MechanismGame) -> Finding | None:
    """Hold the stated sensitivity against every pair of the game; None where none is stated."""
    if game.sensitivity is None:
        return None
    name, stated, most, where = "sensitivity", game.sensitivity, 0.0, ""
    for d0, d1 in game.all_pairs:
        one, other = (game.frozen(data, SEEDS).numbers for data in (d0, d1))
        if one.shape != other.shape or not (np.isfinite(one).all() and np.isfinite(other).all()):
            return not_tested(name, "Outputs are not numbers of a fixed length, so no difference can be taken.")
        moved = other - one
        if np.ptp(moved, axis=0).max(initial=0.0) > ADDED * stated:
            return not_tested(
                name, "The noise is not added to a value: how far a record moves the output depends on it."
            )
        far = float(np.linalg.norm(moved, ord=game.norm, axis=1).min())
        if far >= most:
            most, where = far, f"d0 = {d0!r} and d1 = {d1!r}"
    apart = f"{number(most)} apart in norm {game.norm}, where {number(stated)} is stated"
    text = f"With the same noise, {where} are {apart}."
    rests = f"{SEEDS} seeds; exact, because the noise is the same."
    return Finding(name, "refuted" if most > stated * (1 + ROUNDING) else "consistent", text, rests)
