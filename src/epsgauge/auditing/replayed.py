"""Frozen noise: a mechanism on both data sets with the same noise, which shows what one record moves exactly."""

from __future__ import annotations

import numpy as np

from epsgauge.numbers import number, told_apart
from epsgauge.probing.finding import Finding, consistent, not_tested, refuted
from epsgauge.sampling.game import MechanismGame
from epsgauge.stats.arrays import Floats

SEEDS = 16
ADDED = 0.01  # differences that vary by less, in units of the stated sensitivity, are those of noise that is added
ROUNDING = 1e-9
ULPS = 4  # by which an output may be off: the last digits of the sum that it is


def sensitivity(game: MechanismGame) -> Finding | None:
    """Hold the stated sensitivity against every pair of the game; None where none is stated."""
    if game.sensitivity is None:
        return None
    name, stated, most, surely, where = "sensitivity", game.sensitivity, 0.0, 0.0, ""
    for d0, d1 in game.all_pairs:
        one, other = (game.frozen(data, SEEDS).numbers for data in (d0, d1))
        if one.shape != other.shape or not (np.isfinite(one).all() and np.isfinite(other).all()):
            return not_tested(name, "Outputs are not numbers of a fixed length, so no difference can be taken.")
        moved = other - one
        if np.ptp(moved, axis=0).max(initial=0.0) > ADDED * stated:
            return not_tested(
                name, "The noise is not added to a value: how far a record moves the output depends on it."
            )
        far = np.linalg.norm(moved, ord=game.norm, axis=1)
        off = np.linalg.norm(_rounding(one) + _rounding(other), ord=game.norm, axis=1)
        surely = max(surely, float(np.min(far - off)))
        if far.min() >= most:
            most, where = float(far.min()), f"d0 = {d0!r} and d1 = {d1!r}"
    farther = surely > stated * (1 + ROUNDING)
    here, there = told_apart(most, stated) if farther else (number(most), number(stated))
    text = f"With the same noise, {where} are {here} apart in norm {game.norm}, where {there} is stated."
    rests = f"{SEEDS} seeds; exact, because the noise is the same."
    if farther:
        return refuted("P121", text, rests, where=where, measured=most, allowed=stated)
    return consistent(name, text, rests)


def _rounding(outputs: Floats) -> Floats:
    """By how much floats of this size may be off; those that 32 bits can hold may have been made with as few."""
    with np.errstate(over="ignore"):
        small = outputs.astype(np.float32)
    last = np.spacing(np.abs(small)) if np.array_equal(small, outputs) else np.spacing(np.abs(outputs))
    out: Floats = ULPS * last.astype(np.float64)
    return out
