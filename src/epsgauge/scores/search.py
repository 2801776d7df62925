"""The search for a threshold: the largest lower end of an interval for ε, or a wanted FPR ("Choice of attack", §5)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.scores.screen import LowerEnds, contenders
from epsgauge.scores.table import Scores
from epsgauge.stats import checks
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.counts import Counts
from epsgauge.stats.families import EpsAtDelta
from epsgauge.stats.posterior import JEFFREYS
from epsgauge.stats.quick import Quick, quick
from epsgauge.stats.tally import Tally

# Of more thresholds than this, those that cannot be the best are left out at once.
FULL = 1000


@dataclass(frozen=True, eq=False)
class Searched:
    """What a search saw at each threshold.

    `lower` is NaN where the guesses are worse than chance and, of more than FULL, where another is better.
    """

    thresholds: Floats  # ascending
    lower: Floats
    tallies: Tally  # of arrays
    best: int

    @property
    def threshold(self) -> float:
        return float(self.thresholds[self.best])


def tally_at(scores: Scores, thresholds: Floats) -> Tally:
    """The tally of "guess 1 iff score ≥ threshold", at one threshold or at each of many."""
    if not thresholds.ndim:
        said, true = scores.score >= thresholds, scores.bit == 1
        tp, n1, positive = (np.count_nonzero(part) for part in (said & true, true, said))
        return Tally(tp=tp, fn=n1 - tp, fp=positive - tp, tn=len(scores) - n1 - positive + tp)
    ins, outs = (np.sort(scores.score[scores.bit == bit]) for bit in (1, 0))
    fn, tn = (np.searchsorted(part, thresholds, side="left") for part in (ins, outs))
    return Tally(tp=len(ins) - fn, fn=fn, fp=len(outs) - tn, tn=tn)


def search(
    scores: Scores, *, delta: float, level: float, method: str = "bayes", candidates: Floats | None = None
) -> Searched:
    """The lower end ε₋ of the method's interval at each candidate, or at each distinct score, and the best of them.

    A rule has a direction and an audit never folds: only thresholds with FNR + FPR ≤ 1 compete. Of equals the one
    with the largest TPR − FPR is best, then the smallest. Where none competes, the one nearest to chance is.
    """
    of = quick(method)
    thresholds = _distinct(scores.score) if candidates is None else _ascending(candidates)
    tallies = tally_at(scores, thresholds)
    # n·n times TPR − FPR, in whole numbers: equal counts stay equal
    edge: Ints = np.asarray(tallies.tp * tallies.n_negative - tallies.fp * tallies.n_positive)
    if len(thresholds) <= FULL:
        lower = np.where(edge >= 0, _lower_ends(tallies, delta, level, of), np.nan)
    else:
        some = _screened(tallies, edge, delta, level, of)
        lower = np.full(len(thresholds), np.nan)
        lower[some] = _lower_ends(tallies[some], delta, level, of)
    best = np.lexsort((-thresholds, edge, np.nan_to_num(lower, nan=-1.0, posinf=np.inf)))[-1]
    return Searched(thresholds, lower, tallies, int(best))


def threshold_for_fpr(scores: Scores, target_fpr: float, candidates: Floats | None = None) -> float:
    """The smallest threshold whose FPR is at most `target_fpr`; if none is, one just above every score with b = 0."""
    thresholds = _distinct(scores.score) if candidates is None else _ascending(candidates)
    good = np.flatnonzero(tally_at(scores, thresholds).fpr <= target_fpr)
    if good.size:
        return float(thresholds[good[0]])
    return float(np.nextafter(scores.score[scores.bit == 0].max(), np.inf))


def _ascending(candidates: Floats) -> Floats:
    array = checks.numbers("candidates", candidates)
    if array.ndim != 1 or not array.size:
        raise InvalidInput(f"candidates must be a list of thresholds, but got an array of shape {array.shape}.")
    return _distinct(array)


def _distinct(values: Floats) -> Floats:
    """Ascending, each once."""
    array = np.sort(values)
    return array[np.append(True, array[1:] > array[:-1])] if len(array) else array


def _screened(tallies: Tally, edge: Ints, delta: float, level: float, of: Quick) -> Ints:
    """The places of those that may be the best; of equal tallies in a row the first."""
    new = np.append(True, (np.diff(tallies.fn) != 0) | (np.diff(tallies.fp) != 0))
    places = np.flatnonzero(new & (edge >= 0))
    n1, n0 = (int(np.max(n)) for n in (tallies.n_positive, tallies.n_negative))
    d, alpha = checks.one("delta", checks.delta(delta)), 1.0 - checks.level(level)
    ends = LowerEnds(of, n1, n0, d, 0.5 * alpha)
    return places[contenders(tallies.fn[places], tallies.fp[places], edge[places], ends)]


def _lower_ends(tallies: Tally, delta: float, level: float, of: Quick) -> Floats:
    """ε₋ of each tally; equal tallies are computed once, and so get the same number."""
    cells: Ints = np.stack([tallies.tp, tallies.tn, tallies.fp, tallies.fn])
    once, back = np.unique(cells, axis=1, return_inverse=True)
    family = EpsAtDelta(np.full(once.shape[1], checks.one("delta", checks.delta(delta))))
    counts = Counts(*once.astype(np.float64))
    low, _ = of.ends(family, counts, 1.0 - checks.level(level), JEFFREYS)
    return low[back.ravel()]
