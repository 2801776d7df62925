"""Noise: how much there is, by the same step with it and without."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import special

from epsgauge.probing.finding import SHARE, Finding, not_tested
from epsgauge.probing.pipeline import Pipeline, Replay
from epsgauge.probing.recorder import MOST
from epsgauge.stats.arrays import Floats

# Trainings whose first step is made twice.
SEEDS = 16
# A difference that is rounding: of sums of float32.
ROUNDING = 1e-5
# An array whose noise is less than so much of that of the whole is named.
UNLIKE = 0.8


@dataclass(frozen=True, eq=False)
class Drawn:
    """Vectors of noise, in clipping norms, and the shapes of the arrays that they are cut into."""

    vectors: Floats  # [K, d]
    shapes: list[tuple[int, ...]]
    alone: bool  # nothing but noise is in them

    def arrays(self) -> list[Floats]:
        """[K, size] of each array."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        return np.split(self.vectors, ends[:-1], axis=1)


def drawn(pipeline: Pipeline, base: list[Replay]) -> Drawn | None:
    """The noise of first steps: with it and without, all else equal.

    Where the trainer has no switch for its noise, halved differences of two steps of models that stand still. What the
    batches contribute is in them, too, and can only make them larger.
    """
    if pipeline.quiet is None:
        found = [
            (a - b) / math.sqrt(2) for each in base for a, b in zip(each.updates[::2], each.updates[1::2], strict=False)
        ]
        return Drawn(np.array(found, np.float64), base[0].shapes, alone=False) if found else None
    vectors: list[Floats] = []
    for seed in range(SEEDS):
        noisy, quiet = (pipeline.replay(seed, stop=1, quiet=without) for without in (False, True))
        if noisy.shapes != quiet.shapes or not noisy.updates:
            return None
        vector = np.subtract(noisy.updates[0], quiet.updates[0], dtype=np.float64)
        if not any(
            np.allclose(vector, other, atol=ROUNDING) for other in vectors
        ):  # noise that was used before is no other
            vectors.append(vector)
        if len(vectors) * len(vector) > MOST:
            break
    return Drawn(np.array(vectors), noisy.shapes, alone=True)


def most(squares: float, count: int, chance: float) -> float:
    """σ is at most so much, but for this chance: if numbers are N(0, σ²), or further from 0 than such."""
    return math.sqrt(squares / (2.0 * float(special.gammaincinv(count / 2.0, chance))))


def noise(pipeline: Pipeline, found: Drawn | None) -> Finding:
    """An upper bound for the noise, as a whole and of the array of parameters that has least."""
    name, accounted = "noise", pipeline.privacy.noise_multiplier
    if found is None or not found.vectors.size:
        return not_tested(name, "No two updates could be compared: the training makes one step, or none.")
    arrays = found.arrays()
    whole = most(float((found.vectors**2).sum()), found.vectors.size, SHARE / 2)
    each = [most(float((a**2).sum()), a.size, SHARE / 2 / len(arrays)) if a.size else np.inf for a in arrays]
    weakest = int(np.argmin(each))
    bound, what = whole, "The noise"
    if each[weakest] < min(UNLIKE * whole, accounted):
        shape = "×".join(map(str, found.shapes[weakest])) or "1"
        bound, what = each[weakest], f"The noise of array {weakest + 1} of {len(arrays)}, of shape {shape},"
    bound = 0.0 if bound < ROUNDING else bound
    text = f"{what} is at most {bound:.3g} clipping norms" if bound else f"{what} is 0"
    hint = "" if bound else " (If watch is called before the noise is added, call it after.)"
    k, of = len(found.vectors), f"{len(arrays)} arrays of parameters"
    rests = (
        f"First steps with noise and without, {k} of each, as a whole and in {of}; Gaussian noise."
        if found.alone
        else f"{k} differences of two steps at the same parameters, as a whole and in {of}; Gaussian noise. "
        "The trainer has no switch for its noise, so that what batches contribute counts as noise."
    )
    if bound < accounted:
        return Finding(name, "refuted", f"{text}, where {accounted:.3g} is accounted.{hint}", rests, False, noise=bound)
    return Finding(name, "consistent", f"{text}; {accounted:.3g} is accounted.", rests, exact=False)
