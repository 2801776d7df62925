"""Fresh noise: of each step, of each model and of each parameter its own."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.probing.copies import Copied, without_copies
from epsgauge.probing.finding import SHARE, Finding, consistent, not_tested, refuted
from epsgauge.probing.noise import ROUNDING, Drawn, most
from epsgauge.probing.pipeline import Pipeline, Replay
from epsgauge.probing.recorder import MOST
from epsgauge.stats.arrays import Floats, Ints

# Updates that are compared with one another, and numbers of each.
UPDATES, NUMBERS = 96, 50_000
TESTS = ("pairs", "sums", "left", "bands")
# Shares of noise below it, that are left when the signal is estimated from the same steps, are not looked at.
LEFT = 0.25
# Shares of all waves over steps, of the slow and of the fast ones; and too few steps to tell them apart.
BANDS, FEW = ((1 / 8, False), (1 / 3, False), (1 / 8, True), (1 / 3, True)), 5
# A sum of squares, of how many numbers, and where.
Test = tuple[float, int, str]


def there_is(pipeline: Pipeline, found: Drawn | None, *, enough: bool) -> float:
    """What noise is expected: as accounted, or half of what is there, if that is known to be less."""
    return pipeline.privacy.noise_multiplier if enough else _half(found)


def between(
    pipeline: Pipeline, base: list[Replay], alike: list[Copied], there: float, tests: Collection[str] = TESTS
) -> Finding:
    """Each step and each parameter has its own noise, at any two steps of any trainings, and so have sums of updates.

    Updates on copies of one record, with the model standing still, differ by their noise, or by more: then sums of
    squares are σ² χ², or more. Updates that share noise are nearer to each other, and so are sums where the noise of
    one step takes back that of another. The last of `alike` has steps of a whole training.
    Other noise meets fewer `tests`, or "models": any two steps of different ones.
    """
    name = "fresh noise"
    if there == 0:
        return not_tested(name, "There is no noise, or not enough to tell.")
    shapes = pipeline.shapes
    size = sum(math.prod(shape) for shape in shapes)
    places = some_places(size)
    per_model = max(2, min(UPDATES, MOST // max(size, 1)) // len(alike))
    single = [_some(each, model, places, per_model) for model, each in enumerate(alike)]
    steps = min((len(each.updates) for each in base), default=0)
    sums = [
        (f"the sums of {steps} updates of model {m + 1}", _sum(each, steps, places), 1.0) for m, each in enumerate(base)
    ]
    kinds: list[list[Test]] = [
        _pairs(single) if "pairs" in tests else [],
        _pairs(single, of_one=False) if "models" in tests else [],
        _pairs([[each] for each in sums]) if "sums" in tests and steps > 1 else [],
        _left(pipeline, alike, places) if "left" in tests else [],
        bands(alike, places) if "bands" in tests else [],
    ]
    made = [test for kind in kinds for test in kind]
    if not made:
        return not_tested(name, "No two updates could be compared.")
    chances = [SHARE / len(TESTS) / len(kind) for kind in kinds for _ in kind]
    bounds = [most(squares, count, chance) for (squares, count, _), chance in zip(made, chances, strict=True)]
    bounds = [0.0 if bound < ROUNDING else bound for bound in bounds]
    nearest = min(bounds)
    where = made[bounds.index(nearest)][2]
    n_steps = sum(len(each.replay.updates) for each in alike)
    rests = (
        f"{n_steps} updates of {len(alike)} models that stand still, on copies of a record, and sums; Gaussian noise."
    )
    if nearest >= there:
        text = "Each step and each parameter has its own noise, and no two updates share any."
        return consistent(name, text, rests, exact=False)
    stated = pipeline.privacy.correlation is not None
    code, what = ("P130", "not correlated as stated, shared") if stated else ("P102", "shared, taken back")
    text = f"{where} there is noise of at most {nearest:.2g} clipping norms: it is {what}, or less than elsewhere."
    if re.fullmatch(r"Between step (\d+) of model \d+ and step \1 of model \d+", where):
        text += " Trainings with other seeds drew the same noise, so its seed is fixed."
        text += " Take another one each time: in a plan `seed`, as in TrainingArguments(seed=seed)."
    at = where.removeprefix("In ").removeprefix("Between ")
    two = {"measured": nearest, "allowed": there}
    return refuted(code, text, rests, exact=False, noise=nearest, where=at, **two)


def some_places(size: int) -> Ints:
    """Of the numbers of an update."""
    return np.linspace(0, size - 1, min(size, NUMBERS)).astype(np.int64)


def _some(each: Copied, model: int, places: Ints, count: int) -> list[tuple[str, Floats, float]]:
    """Updates of a training, the last among them, and their numbers of copies."""
    updates, kept = each.replay.updates, each.replay.kept
    if not updates:
        return []
    which = np.unique(np.linspace(0, len(updates) - 1, count).astype(np.int64)).tolist()
    name = "step {} of model {}"
    return [(name.format(kept[i] + 1, model + 1), updates[i][places].astype(np.float64), each.sizes[i]) for i in which]


def _sum(each: Replay, steps: int, places: Ints) -> Floats:
    """With as much noise as one update: each number over the root of the steps in which it is trained."""
    total, count = np.zeros(len(places)), np.zeros(len(places))
    for update in each.updates[:steps]:
        total += update[places]
        count += update[places] != 0
    return total / np.sqrt(np.maximum(count, 1))


def _pairs(models: list[list[tuple[str, Floats, float]]], *, of_one: bool = True) -> list[Test]:
    """Of each two, `of_one` model or of two, of the numbers that are trained in both."""
    out = []
    named = [(model, *one) for model, each in enumerate(models) for one in each]
    for (i, a, x, x_size), (j, b, y, y_size) in itertools.combinations(named, 2):
        both = (x != 0) & (y != 0)
        if both.any() and (of_one or i != j):
            apart = without_copies(x, x_size, y, y_size)[both]
            out.append((float(apart @ apart), int(both.sum()), f"Between {a} and {b}"))
    return out


def _left(pipeline: Pipeline, alike: list[Copied], places: Ints) -> list[Test]:
    """Of each step and of each parameter, what is left of updates without the record that is copied."""
    out: list[Test] = []
    squares, counts = np.zeros(len(places)), np.zeros(len(places), dtype=np.int64)
    for model, each in enumerate(alike):
        rest, free = residuals(np.array([update[places] for update in each.replay.updates]), each.sizes)
        squares += (rest**2).sum(axis=0)
        counts += np.rint(free.sum(axis=0)).astype(np.int64)
        for step, x, share in zip(each.replay.kept, rest, free, strict=True):
            own = share > LEFT
            if own.any():
                where = f"In step {step + 1} of model {model + 1}"
                out.append((float((x[own] ** 2 / share[own]).sum()), int(own.sum()), where))
    ends = np.cumsum([math.prod(shape) for shape in pipeline.shapes])
    for i in np.flatnonzero(counts):
        array = int(np.searchsorted(ends, places[i], side="right"))
        where = (
            f"In number {places[i] - (ends[array - 1] if array else 0) + 1} of {pipeline.array(array)}, over all steps,"
        )
        out.append((float(squares[i]), int(counts[i]), where))
    return out


def bands(alike: list[Copied], places: Ints) -> list[Test]:
    """Noise of slow and of fast changes from step to step: correlation in time takes from one of the two.

    Changes that the number of copies has no part in, orthogonal to one another, of numbers that are trained throughout.
    """
    squares, counts = np.zeros(len(BANDS)), np.zeros(len(BANDS), dtype=np.int64)
    for each in alike:
        updates = np.array([update[places] for update in each.replay.updates], dtype=np.float64)
        updates, n = updates[:, (updates != 0).all(axis=0)], len(updates)
        if n > FEW and updates.size:
            waves = np.cos(np.pi * np.outer(np.arange(n) + 0.5, np.arange(1, n)) / n)
            changes = np.linalg.qr(np.column_stack([each.sizes, waves]))[0][:, 1:].T @ updates
            for i, (share, fast) in enumerate(BANDS):
                size = math.ceil((n - 1) * share)
                band = (changes[-size:] if fast else changes[:size]) ** 2
                squares[i] += float(band.sum())
                counts[i] += band.size
    names = ("In sums over many steps", "From one step to the next")
    return [(float(s), int(n), names[fast]) for s, n, (_, fast) in zip(squares, counts, BANDS, strict=True) if n]


def residuals(updates: NDArray[Any], sizes: Floats) -> tuple[Floats, Floats]:
    """What is left [steps, d] when the record that is copied is estimated by least squares, and its share of σ²."""
    trained = updates != 0
    weights = sizes[:, None] * trained
    total = (weights**2).sum(axis=0)
    there = np.maximum(total, np.finfo(np.float64).tiny)
    rest = trained * (updates - sizes[:, None] * ((weights * updates).sum(axis=0) / there))
    return rest, trained - weights**2 / there


def _half(found: Drawn | None) -> float:
    """Of the noise that is there, which may differ from array to array: two updates that share it are nearer still."""
    if found is None or not found.trained.any():
        return 0.0
    there = math.sqrt(float((found.vectors[found.trained] ** 2).mean()))
    return there / 2 if there > ROUNDING else 0.0


def within(pipeline: Pipeline, found: Drawn | None, there: float) -> Finding:
    """Noise of two arrays, of rows and of columns of one, and of neighbours in one: their sums and differences have as
    much noise as they. What is correlated has less in one of the two; anything else can only make them larger.
    """
    name = "independence"
    if found is None or there == 0:
        return not_tested(name, "There is no noise, or not enough to tell.")
    tests: list[tuple[Floats, Floats, str]] = []
    arrays = [vectors for vectors, _ in found.arrays()]
    for (i, a), (j, b) in itertools.combinations(enumerate(arrays), 2):
        size = min(a.shape[1], b.shape[1], NUMBERS)
        two = f"{pipeline.array(i)} and {pipeline.array(j)}"
        tests.append((a[:, :size], b[:, :size], two))
        tests.append((a[:, -size:], b[:, -size:], two))
    for i, (a, shape) in enumerate(zip(arrays, found.shapes, strict=True)):
        rows = a.reshape(len(a), *(shape if len(shape) < 2 else (shape[0], -1)))
        for axis, what in ((1, "numbers" if len(shape) < 2 else "rows"), (2, "columns")):
            if axis < rows.ndim and rows.shape[axis] > 1:
                half = rows.shape[axis] // 2
                even, odd = (np.take(rows, np.arange(first, 2 * half, 2), axis=axis) for first in (0, 1))
                tests.append((even, odd, f"{what} of {pipeline.array(i)}"))
    bounds = [(_least_of_two(a, b, SHARE / len(tests)), where) for a, b, where in tests]
    if not bounds:
        return not_tested(name, "The model has one parameter: there is nothing to compare.")
    least, where = min(bounds)
    rests = f"{len(found.vectors)} vectors of noise; {len(tests)} comparisons; Gaussian noise."
    if least < there:
        text = f"The noise is not independent from parameter to parameter: that of {where} is correlated."
        numbers = {"measured": least, "allowed": there}
        return refuted("P103", text, rests, exact=False, where=where, **numbers)
    return consistent(name, "Arrays, rows and columns have noise of their own.", rests, exact=False)


def _least_of_two(a: Floats, b: Floats, chance: float) -> float:
    """A bound for the noise in sums and in differences."""
    x, y = a.ravel(), b.ravel()
    both = (x != 0) & (y != 0)
    if not both.any():
        return math.inf
    square, product, count = float(x[both] @ x[both] + y[both] @ y[both]) / 2, float(x[both] @ y[both]), int(both.sum())
    return most(max(0.0, square - abs(product)), count, chance / 2)
