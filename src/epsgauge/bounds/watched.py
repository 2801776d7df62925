"""A lower bound of ε that holds at every moment of a run, from guesses that weigh more the surer they are.

The likelihood ratio of a mixture of shapes (`shapes`) against ε is followed from model to model. Its next factor is the
one of the mixture given all guesses before, so that the weights of guesses are fitted anew after each. If ε holds, the
ratio does not grow on average, and by Ville's inequality it ever reaches 1/α with a probability of at most α
(docs/guarantees.md has the proof).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from epsgauge.bounds.classed import Classed, Prior
from epsgauge.bounds.shapes import EDGES, classes, places
from epsgauge.bounds.weighted import STEP, TIE, log_sum
from epsgauge.stats import checks, special
from epsgauge.stats.arrays import Floats, Ints

# What δ costs grows as 2^m with m pairs of a model.
MOST_PAIRS = 8
AT_ONCE = 2**12  # moments


@dataclass(frozen=True, eq=False)
class Watched:
    """Guesses about models in their order, and which shapes are likely by the rows that were set apart before."""

    right: Ints  # of each class, up to each model: model by class
    wrong: Ints
    bits: Ints  # of each model, guessed or not
    end: Classed  # all guesses, and the shapes

    def __len__(self) -> int:
        return len(self.bits)

    def again(self, order: Ints) -> Watched:
        """The same with these models, in this order."""
        right, wrong = (np.cumsum(np.diff(x, axis=0, prepend=0)[order], axis=0) for x in (self.right, self.wrong))
        return replace(self, right=right, wrong=wrong, bits=self.bits[order])


def watched(scores: Floats, bits: Ints, at: Ints, n_bits: Ints, fit_scores: Floats, fit_bits: Ints) -> Watched:
    """`at` is the place in the order of the model of each row, and `n_bits` how many fair bits each model has.

    The middle and the spread are those of the rows that were set apart, so that no guess depends on a later model.
    """
    fit = [cells[0] for cells in _cells(fit_scores, fit_bits, np.zeros(len(fit_bits), np.int64), 1, fit_scores)]
    right, wrong = (np.cumsum(cells, axis=0) for cells in _cells(scores, bits, at, len(n_bits), fit_scores))
    n, n_wrong = (x[-1] if len(x) else np.zeros(2 * len(EDGES), np.int64) for x in (right + wrong, wrong))
    return Watched(right, wrong, n_bits, Classed.of(n, n_wrong, *fit))


@lru_cache(maxsize=16)
def watched_lower_bound(seen: Watched, *, delta: float, level: float) -> float:
    """The largest ε of the grid such that it and all before it were refuted at some moment; 0 where there is none."""
    d, wanted = checks.one("delta", checks.delta(delta)), -math.log(1.0 - checks.level(level)) + TIE
    steps, moment = 0, len(seen) - 1
    while (reached := _refuted(seen, (steps + 1) * STEP, d, wanted, moment)) is not None:
        steps, moment = steps + 1, reached
    return steps * STEP


def log_ratio(seen: Watched, eps: float, delta: float, moments: slice) -> Floats:
    """log of the likelihood ratio after each of these models, less what δ may have added to its mean so far."""
    q, shapes = float(special.expit(eps)), seen.end
    right, wrong = seen.right[moments].astype(np.float64), seen.wrong[moments].astype(np.float64)
    both, up, down = (_log_mixture(prior, right, wrong, q) for prior in (shapes.together, *shapes.each))
    log_both, log_each = shapes.log_weights
    paid = np.log1p(delta * np.expm1(seen.bits * math.log1p(math.exp(-eps))))
    out: Floats = np.logaddexp(log_both + both, log_each + up + down) - np.cumsum(paid)[moments]
    return out


def _refuted(seen: Watched, eps: float, delta: float, wanted: float, likely: int) -> int | None:
    """A moment at which ε is refuted: the likely one, or else the first."""
    if (log_ratio(seen, eps, delta, slice(likely, likely + 1)) >= wanted).any():
        return likely
    for start in range(0, len(seen), AT_ONCE):
        reached = np.flatnonzero(log_ratio(seen, eps, delta, slice(start, start + AT_ONCE)) >= wanted)
        if len(reached):
            return start + int(reached[0])
    return None


def _log_mixture(prior: Prior, right: Floats, wrong: Floats, q: float) -> Floats:
    """Of shapes that are as sure as ε or surer, one number for each moment."""
    p = np.maximum(prior.right, q)
    terms = right[:, prior.columns] @ np.log(p / q).T + wrong[:, prior.columns] @ np.log((1.0 - p) / (1.0 - q)).T
    return log_sum(terms + prior.log_weight)


def _cells(scores: Floats, bits: Ints, at: Ints, n: int, like: Floats) -> tuple[Ints, Ints]:
    """Right and wrong guesses, model by class."""
    of = classes(places(scores, like))
    wrong = bits != (of < len(EDGES))
    right_and_wrong = np.zeros((2, n, 2 * len(EDGES)), np.int64)
    np.add.at(right_and_wrong, (wrong.astype(np.int64), at, of), 1)
    return right_and_wrong[0], right_and_wrong[1]
