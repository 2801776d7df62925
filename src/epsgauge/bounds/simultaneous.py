"""Lower bounds for ε that hold after the threshold was chosen on the same scores; for independent samples (m = 1)."""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, log
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.bounds.bands import upper_limits
from epsgauge.bounds.two_cuts import Event, Limits, best_pair
from epsgauge.errors import InvalidInput
from epsgauge.stats import checks, rates
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.region import log_ratio_max

Direction = Literal["high", "low", "inside", "outside"]
Directions = Literal["high", "both"]
Rules = Literal["one-sided", "two-sided"]


@dataclass(frozen=True)
class Simultaneous:
    """The largest lower bound over rules, and where it was found.

    Direction "high" guesses 1 where the score is at or above the threshold, "low" where it is at or below. With two
    cuts a < b, "inside" guesses 1 where a ≤ score < b, "outside" elsewhere. `fnr` and `fpr` are the upper limits of
    both rates there. What a rule does not have is None. If nothing is found, `low` is 0 and the others are None.
    """

    low: float
    level: float
    threshold: float | None
    direction: Direction | None
    fnr: float | None
    fpr: float | None
    cuts: tuple[float, float] | None = None


def simultaneous_lower_bound(
    in_scores: ArrayLike,
    out_scores: ArrayLike,
    *,
    delta: float,
    level: float = 0.95,
    directions: Directions = "both",
    rules: Rules = "one-sided",
) -> Simultaneous:
    """The best threshold of all, and a lower bound for ε that holds although it was chosen on these scores.

    `in_scores` are those with b = 1, `out_scores` those with b = 0. The upper limits of FNR and FPR at every threshold
    hold together, so they hold at the best one. With directions = "high" only rules that guess 1 for high scores
    compete, and the limits are a little sharper. Ties are allowed.

    With rules = "two-sided" all pairs of cuts compete too: guess 1 inside an interval, or outside it. The limits are
    those of both directions, so this costs nothing beside them, and the bound is never lower.

    >>> found = simultaneous_lower_bound(range(150, 350), range(0, 200), delta=1e-5)
    >>> round(found.low, 3), found.threshold, found.direction
    (2.801, 150.0, 'high')
    >>> found = simultaneous_lower_bound(range(400, 600), range(0, 1000, 2), delta=1e-5, rules="two-sided")
    >>> round(found.low, 3), found.cuts, found.direction
    (2.132, (400.0, 600.0), 'inside')
    """
    _check_rules(rules, directions)
    ins, outs = _scores("in_scores", in_scores), _scores("out_scores", out_scores)
    d, alpha = checks.one("delta", checks.delta(delta)), 1.0 - checks.level(level)
    found = []
    for direction in _directions(directions):
        sign = 1.0 if direction == "high" else -1.0
        a, b = np.sort(sign * ins), np.sort(sign * outs)
        # between two scores with b = 1 only the FPR changes, so the best thresholds are among these scores
        new = np.append(True, a[1:] > a[:-1])
        below, thresholds = np.flatnonzero(new), a[new]
        beyond = len(b) - np.searchsorted(b, thresholds)
        share = alpha / (2.0 if directions == "high" else 4.0)
        found.append((direction, sign * thresholds, *_both(below, len(a), beyond, len(b), share)))
    best = _best(found, d, level)
    return best if rules == "one-sided" else _best_cuts(ins, outs, d, alpha, best)


def fixed_thresholds_lower_bound(
    in_scores: ArrayLike,
    out_scores: ArrayLike,
    thresholds: ArrayLike,
    *,
    delta: float,
    level: float = 0.95,
    directions: Directions = "high",
) -> Simultaneous:
    """The best of a few thresholds that were fixed before these scores were seen: Clopper-Pearson, shared among them.

    >>> fixed_thresholds_lower_bound(range(150, 350), range(0, 200), [100, 200], delta=1e-5).threshold
    200.0
    """
    ins, outs = _scores("in_scores", in_scores), _scores("out_scores", out_scores)
    t = _scores("thresholds", thresholds)
    d, alpha = checks.one("delta", checks.delta(delta)), 1.0 - checks.level(level)
    tail = alpha / (2.0 * len(t) * (1.0 if directions == "high" else 2.0))
    found = []
    for direction in _directions(directions):
        sign = 1.0 if direction == "high" else -1.0
        a, b = np.sort(sign * ins), np.sort(sign * outs)
        fn, fp = np.searchsorted(a, sign * t), len(b) - np.searchsorted(b, sign * t)
        x, y = (
            rates.clopper_pearson_limits(k.astype(np.float64), np.full(len(t), float(n)), tail)[1]
            for k, n in ((fn, len(a)), (fp, len(b)))
        )
        found.append((direction, t, x, y))
    return _best(found, d, level)


def _both(fn: Ints, n1: int, fp: Ints, n0: int, alpha: float) -> tuple[Floats, Floats]:
    """Upper limits of FNR and FPR, those of either right at all thresholds together with 1 − α."""
    return upper_limits(fn, n1, alpha), upper_limits(fp, n0, alpha)


def _best(found: list[tuple[Direction, Floats, Floats, Floats]], delta: float, level: float) -> Simultaneous:
    best = Simultaneous(0.0, level, None, None, None, None)
    for direction, thresholds, x, y in found:
        eps = np.where(x + y < 1, log_ratio_max(x, 1.0 - x, y, 1.0 - y, np.asarray(delta)), 0.0)
        i = int(np.argmax(eps))
        if eps[i] > best.low:
            best = Simultaneous(float(eps[i]), level, float(thresholds[i]), direction, float(x[i]), float(y[i]))
    return best


def _best_cuts(ins: Floats, outs: Floats, delta: float, alpha: float, best: Simultaneous) -> Simultaneous:
    """The best rule with two cuts, if it is better than the best with one."""
    cuts = np.unique(np.concatenate([ins, outs]))
    with_1, with_0 = (_two_limits(part, cuts, alpha / 4.0) for part in (ins, outs))
    for top, bottom in ((with_1, with_0), (with_0, with_1)):
        found = best_pair(top, bottom, delta, exp(best.low))
        if found is None:
            continue
        # the event has more mass with b = 1, or with b = 0
        guess_1: Event = found.event
        x, y = 1.0 - found.least, found.most
        if top is with_0:
            guess_1, x, y = "outside" if guess_1 == "inside" else "inside", y, x
        ends = (float(cuts[found.a]), float(cuts[found.b]))
        best = Simultaneous(log(found.ratio), best.level, None, guess_1, x, y, ends)
    return best


def _two_limits(scores: Floats, cuts: Floats, alpha: float) -> Limits:
    """Upper limits of Pr[score < cut] and of Pr[score ≥ cut], each right at all cuts together with 1 − α."""
    n, below = len(scores), np.searchsorted(np.sort(scores), cuts)
    return upper_limits(below, n, alpha), upper_limits(n - below, n, alpha)


def _check_rules(rules: Rules, directions: Directions) -> None:
    if rules not in ("one-sided", "two-sided"):
        raise InvalidInput(f"rules must be 'one-sided' or 'two-sided', but got {rules!r}.")
    if rules == "two-sided" and directions != "both":
        raise InvalidInput(f"directions must be 'both' for two-sided rules, but got {directions!r}.")


def _directions(directions: Directions) -> tuple[Direction, ...]:
    if directions not in ("high", "both"):
        raise InvalidInput(f"directions must be 'high' or 'both', but got {directions!r}.")
    return ("high",) if directions == "high" else ("high", "low")


def _scores(name: str, value: ArrayLike) -> Floats:
    array = checks.numbers(name, value)
    if array.ndim != 1 or not array.size:
        raise InvalidInput(f"{name} must be a list of at least one number, but got an array of shape {array.shape}.")
    return array
