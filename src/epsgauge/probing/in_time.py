"""Noise that is correlated in time: a stated filter is undone, and one that is not stated is found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.probing.copies import Copied, without_copies
from epsgauge.probing.finding import Finding, not_tested
from epsgauge.probing.fresh import bands, between, residuals, some_places
from epsgauge.probing.noise import Drawn
from epsgauge.probing.pipeline import Pipeline, Replay
from epsgauge.stats import special
from epsgauge.stats.arrays import Floats

# Earlier steps that noise is predicted from, and numbers of an update from which that is learned.
LAGS, NUMBERS = 8, 20_000
# So much of the accounted noise must be new in each step, as a filter that is not stated is only estimated; and so much
# must be between two steps of one model, as noise of one may be in the other.
NEW, APART = 0.8, 0.5
# That slow and fast changes differ so much by chance.
CHANCE = 1e-3


def undone(each: Copied, correlation: Sequence[float]) -> Copied:
    """With the noise w_t in place of w_t + c_1 w_(t-1) + c_2 w_(t-2) + …"""
    return _without_past(each, correlation[1:], own=True)


def undone_of(each: Replay, correlation: Sequence[float]) -> Replay:
    return replace(each, updates=_subtracted(each.updates, correlation[1:], own=True))


def correlated(pipeline: Pipeline, every: list[Copied]) -> Finding | None:
    """Says that noise is correlated in time, if that is all; None if noise is shared or missing in other ways.

    Its slow changes over steps are smaller or larger than its fast ones, much more than by chance.
    What earlier steps tell of the noise of a step is learned in all trainings but one, and subtracted in that one. What
    it has of its own can only be too large then.
    """
    learned = [_learned([each for j, each in enumerate(every) if j != i]) for i in range(len(every))]
    own = [_without_past(each, how, own=False) for each, how in zip(every, learned, strict=True)]
    changes, there = bands(every, some_places(sum(map(math.prod, pipeline.shapes)))), pipeline.privacy.noise_multiplier
    if not changes or _as_large(*changes[1][:2], *changes[3][:2]):
        return None
    ways = (
        (own, NEW * there, ("pairs", "left", "bands")),
        (every, APART * there, ("pairs", "left")),
        (every, there, ("models",)),
    )
    if any(between(pipeline, [], each, least, tests).result == "refuted" for each, least, tests in ways):
        return None
    shown = ", ".join(f"{c:.2g}" for c in _filter(_learned(every), 4))
    return not_tested(
        "fresh noise",
        f"The noise of a step is correlated with that of earlier ones, by a filter like ({shown}, …). What that spends "
        "is not computed here. State the filter as eg.DPSGD(…, correlation=(1, c_1, …)), and it is tested.",
    )


def first_steps(alike: list[Copied]) -> Drawn | None:
    """Noise without that of earlier steps: of the first steps of two models each, on copies of one record."""
    both = list(zip(alike[::2], alike[1::2], strict=False))
    if not both:
        return None
    pairs = [(a.replay.updates[0], b.replay.updates[0]) for a, b in both]
    vectors = [without_copies(x, a.sizes[0], y, b.sizes[0]) for (a, b), (x, y) in zip(both, pairs, strict=True)]
    trained = [(x != 0) & (y != 0) for x, y in pairs]
    mixed = "The trainer has no switch for its noise."
    return Drawn(np.array(vectors), np.array(trained), alike[0].replay.shapes, mixed)


def _as_large(x: float, n_x: int, y: float, n_y: int) -> bool:
    """Whether two sums of so many squares may be of the same noise."""
    below = float(special.betainc(n_x / 2, n_y / 2, x / (x + y))) if x + y else 0.5
    return min(below, 1 - below) > CHANCE


def _without_past(each: Copied, weights: Sequence[float] | Floats, *, own: bool) -> Copied:
    """Of the steps without a gap from the first on."""
    first = _steps(each, slice(_gapless(each)))
    updates = _subtracted(first.replay.updates, weights, own=own)
    sizes = _subtracted([np.array([size]) for size in first.sizes], weights, own=own, zeros=False)
    return replace(first, replay=replace(first.replay, updates=updates), sizes=np.concatenate(sizes))


def _subtracted(
    values: Sequence[NDArray[Any]], weights: Sequence[float] | Floats, *, own: bool, zeros: bool = True
) -> list[NDArray[Any]]:
    """Without so much of the values of each of the last steps, or of what was left of these.

    With `zeros`, what is 0 is not trained, and stays 0.
    """
    out: list[NDArray[Any]] = []
    for step, value in enumerate(values):
        left, past = value.copy(), out if own else values
        for lag, weight in enumerate(weights[:step], 1):
            left -= np.asarray(weight, left.dtype) * past[step - lag]
        out.append(np.where(value == 0, np.zeros_like(left), left) if zeros else left)
    return out


def _gapless(each: Copied) -> int:
    return next((i for i, step in enumerate(each.replay.kept) if i != step), len(each.sizes))


def _steps(each: Copied, which: slice) -> Copied:
    kept = replace(each.replay, updates=each.replay.updates[which], kept=each.replay.kept[which])
    return replace(each, replay=kept, sizes=each.sizes[which])


def _learned(alike: list[Copied]) -> Floats:
    """By how much each of the last steps' noise predicts that of a step, by least squares [lags]."""
    products, targets = np.zeros((LAGS, LAGS)), np.zeros(LAGS)
    for each in alike:
        one = _steps(each, slice(_gapless(each)))
        some = np.array([update[:NUMBERS] for update in one.replay.updates], dtype=np.float64)
        rest = residuals(some, one.sizes)[0]
        before = np.zeros((LAGS, *rest.shape))
        for lag in range(1, min(LAGS, len(rest) - 1) + 1):
            before[lag - 1, lag:] = rest[:-lag]
        flat = before.reshape(LAGS, -1)
        products += flat @ flat.T
        targets += flat @ rest.ravel()
    found: Floats = np.linalg.lstsq(products, targets, rcond=None)[0].astype(np.float64)
    return found


def _filter(learned: Floats, n: int) -> list[float]:
    """(1, c_1, …) of noise that earlier steps predict like this."""
    out = [1.0]
    for step in range(1, n):
        out.append(float(sum(learned[lag - 1] * out[step - lag] for lag in range(1, min(step, LAGS) + 1))))
    return out
