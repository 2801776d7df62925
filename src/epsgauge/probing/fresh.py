"""Fresh noise: of each step, of each model and of each parameter its own."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy import special

from epsgauge.probing.finding import SHARE, Finding, not_tested
from epsgauge.probing.noise import ROUNDING, Drawn, most
from epsgauge.probing.pipeline import Pipeline, Replay
from epsgauge.probing.recorder import MOST
from epsgauge.stats.arrays import Floats

# Updates that are compared with one another, and numbers of each.
UPDATES, NUMBERS = 96, 200_000


def between(pipeline: Pipeline, base: list[Replay], found: Drawn | None, *, enough: bool) -> Finding:
    """Any two updates at the same parameters differ by their noise, or by more.

    Half the squared distance of two is σ² χ², or more. Two that share noise are nearer to each other. `enough` says
    whether there is as much noise as is accounted.
    """
    name = "fresh noise"
    size = sum(math.prod(shape) for shape in base[0].shapes)
    per = max(2, min(UPDATES, MOST // max(size, 1)) // len(base))
    which = [(model, step) for model, each in enumerate(base) for step in range(min(per, len(each.updates)))]
    if len(which) < 2 or size == 0:
        return not_tested(name, "No two updates could be compared.")
    there = pipeline.privacy.noise_multiplier if enough else _half(found)
    if there == 0:
        return not_tested(name, "There is no noise, or not enough to tell.")
    kept = np.linspace(0, size - 1, min(size, NUMBERS)).astype(np.int64)
    updates = np.array([base[model].updates[step][kept] for model, step in which], np.float64)
    updates -= updates.mean(axis=0)
    squares = (updates**2).sum(axis=1)
    half = (squares[:, None] + squares - 2 * updates @ updates.T) / 2
    half[np.diag_indices(len(which))] = np.inf
    i, j = divmod(int(np.argmin(half)), len(which))
    pairs = len(which) * (len(which) - 1) // 2
    nearest = most(max(float(half[i, j]), 0.0), len(kept), SHARE / pairs)
    rests = f"{len(which)} updates of {len(base)} models that stand still, each with each; Gaussian noise."
    if nearest >= there:
        return Finding(name, "consistent", "No two updates share their noise.", rests, exact=False)
    nearest = 0.0 if nearest < ROUNDING else nearest
    where = f"{_said(*which[i])} and {_said(*which[j])}"
    text = f"Updates that should have noise of their own share it: {where} differ by noise of at most {nearest:.2g}."
    return Finding(name, "refuted", text, rests, exact=False, noise=nearest)


def _half(found: Drawn | None) -> float:
    """Of the noise that is there, which may differ from array to array: two updates that share it are nearer still."""
    if found is None or not found.alone:
        return 0.0
    there = math.sqrt(float((found.vectors**2).mean()))
    return there / 2 if there > ROUNDING else 0.0


def _said(model: int, step: int) -> str:
    return f"step {step + 1} of model {model + 1}"


def within(found: Drawn | None) -> Finding:
    """Noise of two arrays, of rows and of columns of one: no correlation beyond chance.

    The squared correlation of two vectors of k independent Gaussian numbers is Beta(1/2, (k − 1)/2).
    """
    name = "independence"
    if found is None or not found.alone:
        return not_tested(name, "The noise could not be had alone: the trainer has no switch for it.")
    tests: list[tuple[float, str]] = []
    arrays = found.arrays()
    for (i, a), (j, b) in itertools.combinations(enumerate(arrays), 2):
        size = min(a.shape[1], b.shape[1], NUMBERS)
        tests.append((_chance(a[:, :size], b[:, :size]), f"arrays {i + 1} and {j + 1}"))
        tests.append((_chance(a[:, -size:], b[:, -size:]), f"arrays {i + 1} and {j + 1}"))
    for i, (a, shape) in enumerate(zip(arrays, found.shapes, strict=True)):
        if len(shape) > 1:
            rows = a.reshape(len(a), shape[0], -1)
            for axis, what in ((1, "rows"), (2, "columns")):
                half = rows.shape[axis] // 2
                even, odd = (np.take(rows, np.arange(first, 2 * half, 2), axis=axis) for first in (0, 1))
                tests.append((_chance(even, odd), f"{what} of array {i + 1}"))
    if not tests:
        return not_tested(name, "The model has one array of one dimension: there is nothing to compare.")
    chance, where = min(tests)
    rests = f"{len(found.vectors)} vectors of noise; {len(tests)} correlations; Gaussian noise."
    if chance < SHARE / len(tests):
        text = f"The noise is not independent from parameter to parameter: that of {where} is correlated."
        return Finding(name, "refuted", text, rests, exact=False)
    return Finding(name, "consistent", "Arrays, rows and columns have noise of their own.", rests, exact=False)


def _chance(a: Floats, b: Floats) -> float:
    """Of a correlation at least as large in size; 1 where there are too few numbers, or no noise."""
    x, y = a.ravel(), b.ravel()
    norms = float(x @ x) * float(y @ y)
    if len(x) < 8 or norms == 0:
        return 1.0
    square = min(float(x @ y) ** 2 / norms, 1.0)
    return float(special.betainc((len(x) - 1) / 2, 0.5, 1.0 - square))
