"""Noise: how much there is, by the same step with it and without."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from epsgauge.numbers import told_apart
from epsgauge.probing.copies import Copied
from epsgauge.probing.finding import SHARE, Finding, consistent, not_tested, refuted
from epsgauge.probing.pipeline import Pipeline
from epsgauge.probing.recorder import MOST, Update
from epsgauge.stats import special
from epsgauge.stats.arrays import Floats

# A difference that is rounding: of sums of float32.
ROUNDING = 1e-5
# An array whose noise is less than so much of that of the whole is named.
UNLIKE = 0.8


@dataclass(frozen=True, eq=False)
class Drawn:
    """Vectors of noise, in clipping norms, and the shapes of the arrays that they are cut into."""

    vectors: Floats  # [K, d]
    trained: NDArray[np.bool_]  # [K, d]: what is 0 with noise and without is not trained in that step
    shapes: list[tuple[int, ...]]
    mixed: str = ""  # why there is more than noise in them; nothing else is where this is empty

    def arrays(self) -> list[tuple[Floats, NDArray[np.bool_]]]:
        """[K, size] of each array."""
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])[:-1]
        return list(zip(np.split(self.vectors, ends, axis=1), np.split(self.trained, ends, axis=1), strict=True))


def drawn(pipeline: Pipeline, alike: list[Copied], *, seeded: bool, seeds: int) -> Drawn | None:
    """The noise of first steps: with it and without, all else equal.

    Where the trainer has no switch for its noise, differences of two steps on copies of one record. What else is in
    them can only make them larger.
    """
    pairs: list[tuple[Update, Update]] = []
    if pipeline.quiet is None:
        steps = [(each, i) for each in alike for i in range(0, len(each.replay.updates) - 1, 2)]
        pairs = [(each.replay.updates[i], each.replay.updates[i + 1]) for each, i in steps]
        trained = [(a != 0) & (b != 0) for a, b in pairs]
        vectors = [each.noise_between(i, i + 1) for each, i in steps]
        mixed = "The trainer has no switch for its noise."
    else:
        for seed in range(seeds):
            noisy, quiet = (pipeline.replay(seed, stop=1, quiet=without) for without in (False, True))
            if noisy.shapes == quiet.shapes and noisy.updates and len(pairs) * len(noisy.updates[0]) < MOST:
                pairs.append((noisy.updates[0], quiet.updates[0]))
        trained = [(a != 0) | (b != 0) for a, b in pairs]
        vectors = [np.subtract(a, b, dtype=np.float64) for a, b in pairs]
        mixed = ""
        if not seeded:
            mixed = "Two trainings with one seed differ."
        elif pairs and not _by_noise_alone(pipeline, pairs[0]):
            mixed = "Without its noise the trainer does something else, too."
    fresh = [i for i, v in enumerate(vectors) if not any(np.allclose(v, w, atol=ROUNDING) for w in vectors[:i])]
    if not fresh:
        return None
    return Drawn(
        np.array([vectors[i] for i in fresh]), np.array([trained[i] for i in fresh]), alike[0].replay.shapes, mixed
    )


def _by_noise_alone(pipeline: Pipeline, pair: tuple[Update, Update]) -> bool:
    """Whether the switch changes nothing but the noise: the difference is the same with the records turned round."""
    turned = dict(enumerate(pipeline.members[::-1].tolist()))
    again = [pipeline.replayed(0, put=turned, stop=1, quiet=without) for without in (False, True)]
    updates = [each.updates[0] for each in again if each is not None and each.updates]
    return len(updates) == 2 and bool(np.allclose(updates[0] - updates[1], pair[0] - pair[1], atol=1e-3, rtol=1e-2))


def most(squares: float, count: int, chance: float) -> float:
    """σ is at most so much, but for this chance: if numbers are N(0, σ²), or further from 0 than such."""
    return math.sqrt(squares / (2.0 * float(special.gammaincinv(count / 2.0, chance))))


def _most(vectors: Floats, trained: NDArray[np.bool_], chance: float) -> float:
    """Of the parameters that are trained; no bound where none is."""
    count = int(trained.sum())
    return most(float((vectors[trained] ** 2).sum()), count, chance) if count else math.inf


def noise(pipeline: Pipeline, found: Drawn | None) -> Finding:
    """An upper bound for the noise, as a whole and of the array of parameters that has least."""
    name, accounted = "noise", pipeline.privacy.noise_multiplier
    if found is None or not found.trained.any():
        return not_tested(name, "No two updates could be compared: the training makes one step, or none.")
    arrays = found.arrays()
    whole = _most(found.vectors, found.trained, SHARE / 2)
    each = [_most(vectors, trained, SHARE / 2 / len(arrays)) for vectors, trained in arrays]
    weakest = int(np.argmin(each))
    bound, what, where = whole, "The noise", ""
    if each[weakest] < min(UNLIKE * whole, accounted):
        bound, where = each[weakest], pipeline.array(weakest)
        what = f"The noise of {where}"
    bound = 0.0 if bound < ROUNDING else bound
    here, stated = told_apart(bound, accounted) if bound < accounted else (f"{bound:.3g}", f"{accounted:.3g}")
    text = f"{what} is at most {here} clipping norms" if bound else f"{what} is 0"
    hint = "" if bound else " (If watch is called before the noise is added, call it after.)"
    k, of = len(found.vectors), f"{len(arrays)} arrays of parameters"
    how = (
        f"{k} first steps with noise and without"
        if pipeline.quiet is not None
        else f"{k} differences of two steps on copies of a record"
    )
    more = f" {found.mixed} So what else differs may count as noise." if found.mixed else ""
    rests = f"{how}, as a whole and in {of}; Gaussian noise.{more}"
    if bound < accounted:
        two = {"measured": bound, "allowed": accounted}
        text = f"{text}; {stated} is accounted.{hint}"
        return refuted("P101", text, rests, exact=False, noise=bound, where=where, **two)
    two = {"measured": bound, "allowed": accounted}
    return consistent(name, f"{text}; {accounted:.3g} is accounted.", rests, exact=False, **two)
