"""Fresh noise: of each step, of each model and of each parameter its own."""

from __future__ import annotations

import itertools
import math

import numpy as np

from epsgauge.probing.finding import SHARE, Finding, not_tested
from epsgauge.probing.noise import ROUNDING, Drawn, most
from epsgauge.probing.pipeline import Pipeline, Replay
from epsgauge.probing.recorder import MOST
from epsgauge.stats import special
from epsgauge.stats.arrays import Floats, Ints

# Updates that are compared with one another, and numbers of each.
UPDATES, NUMBERS = 96, 50_000


def between(pipeline: Pipeline, base: list[Replay], late: Replay, found: Drawn | None, *, enough: bool) -> Finding:
    """Any two updates at the same parameters differ by their noise, or by more, and so do sums of updates.

    Half the squared distance of two is σ² χ², or more. Two that share noise are nearer to each other, and so are sums
    where the noise of one step takes back that of another. `late` has steps of a whole training. `enough` says whether
    first steps have as much noise as is accounted.
    """
    name = "fresh noise"
    there = pipeline.privacy.noise_multiplier if enough else _half(found)
    if there == 0:
        return not_tested(name, "There is no noise, or not enough to tell.")
    size = sum(math.prod(shape) for shape in base[0].shapes)
    places = np.linspace(0, size - 1, min(size, NUMBERS)).astype(np.int64)
    per_model = max(2, min(UPDATES, MOST // max(size, 1)) // (len(base) + 1))
    single = [one for model, each in enumerate([*base, late]) for one in _some(each, model, places, per_model)]
    steps = min(len(each.updates) for each in base)
    sums = [(f"the sums of {steps} updates of model {m + 1}", _sum(each, steps, places)) for m, each in enumerate(base)]
    tests = [*_pairs(single), *(_pairs(sums) if steps > 1 else [])]
    if not tests:
        return not_tested(name, "No two updates could be compared.")
    nearest, where = min((most(half, count, SHARE / len(tests)), where) for half, count, where in tests)
    rests = (
        f"{len(single)} updates of {len(base) + 1} models that stand still, each with each, and sums; Gaussian noise."
    )
    if nearest >= there:
        return Finding(name, "consistent", "No two updates share their noise, at any step.", rests, exact=False)
    nearest = 0.0 if nearest < ROUNDING else nearest
    text = f"Between {where} there is noise of at most {nearest:.2g} clipping norms: it is shared, taken back, or less "
    return Finding(name, "refuted", text + "than in other steps.", rests, exact=False, noise=nearest)


def _some(each: Replay, model: int, places: Ints, count: int) -> list[tuple[str, Floats]]:
    """Updates of a training, the last among them."""
    if not each.updates:
        return []
    which = np.unique(np.linspace(0, len(each.updates) - 1, count).astype(np.int64)).tolist()
    names = [f"step {each.kept[i] + 1} of model {model + 1}" for i in which]
    return [(name, each.updates[i][places].astype(np.float64)) for name, i in zip(names, which, strict=True)]


def _sum(each: Replay, steps: int, places: Ints) -> Floats:
    """With as much noise as one update: each number over the root of the steps in which it is trained."""
    total, count = np.zeros(len(places)), np.zeros(len(places))
    for update in each.updates[:steps]:
        total += update[places]
        count += update[places] != 0
    return total / np.sqrt(np.maximum(count, 1))


def _pairs(named: list[tuple[str, Floats]]) -> list[tuple[float, int, str]]:
    """Half the squared distance of each two, of the numbers that are trained in both, how many these are, and who."""
    out = []
    for (a, x), (b, y) in itertools.combinations(named, 2):
        both = (x != 0) & (y != 0)
        if both.any():
            out.append((float(((x - y)[both] ** 2).sum()) / 2, int(both.sum()), f"{a} and {b}"))
    return out


def _half(found: Drawn | None) -> float:
    """Of the noise that is there, which may differ from array to array: two updates that share it are nearer still."""
    if found is None or found.mixed or not found.trained.any():
        return 0.0
    there = math.sqrt(float((found.vectors[found.trained] ** 2).mean()))
    return there / 2 if there > ROUNDING else 0.0


def within(found: Drawn | None) -> Finding:
    """Noise of two arrays, of rows and of columns of one: no correlation beyond chance.

    The squared correlation of two vectors of k independent Gaussian numbers is Beta(1/2, (k − 1)/2).
    """
    name = "independence"
    if found is None or found.mixed:
        return not_tested(name, f"The noise could not be isolated. {'' if found is None else found.mixed}".strip())
    tests: list[tuple[float, str]] = []
    arrays = [vectors for vectors, _ in found.arrays()]
    for (i, a), (j, b) in itertools.combinations(enumerate(arrays), 2):
        size = min(a.shape[1], b.shape[1], NUMBERS)
        tests.append((_chance(a[:, :size], b[:, :size]), f"arrays {i + 1} and {j + 1}"))
        tests.append((_chance(a[:, -size:], b[:, -size:]), f"arrays {i + 1} and {j + 1}"))
    for i, (a, shape) in enumerate(zip(arrays, found.shapes, strict=True)):
        if len(shape) > 1 and a.size:
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
    both = (x != 0) & (y != 0)
    x, y = x[both], y[both]
    norms = float(x @ x) * float(y @ y)
    if len(x) < 8 or norms == 0:
        return 1.0
    square = min(float(x @ y) ** 2 / norms, 1.0)
    return float(special.betainc((len(x) - 1) / 2, 0.5, 1.0 - square))
