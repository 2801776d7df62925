"""The ROC curve of the judged scores, the point where the rule works, and the most that a claim allows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.scores.table import Scores
from epsgauge.stats.arrays import Bools, Floats
from epsgauge.stats.tally import Tally

if TYPE_CHECKING:
    from epsgauge.auditing.audit import Audit

# Points that fall into one cell of a grid this fine, on the linear and on the logarithmic scale, look the same.
CELLS = 400
DECADES = 6  # at most, below 1
LONG, SLOPE = 1.2, 16  # a slope over more than this ratio gets so many points on logarithmic axes


@dataclass(frozen=True)
class Limit:
    """What (ε, δ)-DP allows: TPR is at most `tpr` at each `fpr`."""

    eps: float
    delta: float
    fpr: Floats
    tpr: Floats


@dataclass(frozen=True)
class Roc:
    """Rates of the rule "guess 1 iff score ≥ t" as t falls; from (0, 0) to (1, 1) in straight steps."""

    fpr: Floats
    tpr: Floats
    point: tuple[float, float]  # (FPR, TPR) at the threshold
    threshold: float
    tally: Tally
    claim: Limit | None
    least: float  # where logarithmic axes begin: a power of ten below one guess in all


def roc(audit: Audit) -> Roc:
    """Of all judged pairs; both bits must be there."""
    judged = audit.judged
    t = judged.tally
    if not has_both_bits(audit):
        raise InvalidInput("a ROC curve needs judged pairs with both bits, but one bit has none.")
    fpr, tpr = rates(judged.judged)
    n = max(int(t.n_positive), int(t.n_negative))
    least = 10.0 ** max(-DECADES, math.floor(math.log10(0.999 / n)))
    claim = audit.claim
    limit = None if claim is None else limit_of(claim.eps, claim.delta, least)
    point = (float(t.fpr), float(1.0 - t.fnr))
    keep = _distinguishable(fpr, tpr, least)
    return Roc(fpr[keep], tpr[keep], point, judged.threshold, t, limit, least)


def has_both_bits(audit: Audit) -> bool:
    """Whether there is a ROC curve at all."""
    t = audit.judged.tally
    return bool(t.n_positive > 0 and t.n_negative > 0)


def rates(scores: Scores) -> tuple[Floats, Floats]:
    """FPR and TPR at every distinct score as the threshold, from above all scores to the lowest."""
    order = np.argsort(-scores.score, kind="stable")
    ordered, bit = scores.score[order], scores.bit[order]
    ends = np.append(ordered[1:] != ordered[:-1], True)
    tp, fp = np.cumsum(bit)[ends], np.cumsum(1 - bit)[ends]
    return np.append(0.0, fp / fp[-1]), np.append(0.0, tp / tp[-1])


def limit_of(eps: float, delta: float, least: float = 1e-3) -> Limit:
    """The upper edge of R(ε, δ) in these coordinates."""
    corner = (1.0 - delta) / (1.0 + math.exp(min(eps, 700.0)))
    fpr = np.unique(np.concatenate([[0.0, corner], np.geomspace(least, 1.0, 120)]))
    e = math.exp(-min(eps, 700.0))
    rising = delta + fpr / e if e > 0 else np.where(fpr > 0, 1.0, delta)
    tpr = np.minimum(np.minimum(1.0, rising), 1.0 - e * np.maximum(1.0 - delta - fpr, 0.0))
    return Limit(eps, delta, fpr, tpr)


def bent(fpr: Floats, tpr: Floats, least: float) -> tuple[Floats, Floats]:
    """The same curve with points along its long slopes, which are not straight on logarithmic axes."""
    a, b, c, d = np.maximum(fpr[:-1], least), tpr[:-1], fpr[1:], tpr[1:]
    long = np.flatnonzero((c > LONG * a) & (d > b))
    share = np.linspace(0.0, 1.0, SLOPE)[:-1]
    inner = a[long, None] * (c / a)[long, None] ** share
    height = b[long, None] + (d - b)[long, None] * (inner - fpr[long, None]) / (c - fpr[:-1])[long, None]
    places = np.repeat(long + 1, len(share))
    return np.insert(fpr, places, inner.ravel()), np.insert(tpr, places, height.ravel())


def _distinguishable(fpr: Floats, tpr: Floats, least: float) -> Bools:
    """One of the points that look the same on both scales, and both ends."""
    if len(fpr) <= CELLS:
        return np.ones(len(fpr), np.bool_)
    keep = np.zeros(len(fpr), np.bool_)
    keep[[0, -1]] = True
    scale = -math.log10(least)
    logs = [1 + np.log10(np.maximum(rate, least)) / scale for rate in (fpr, tpr)]
    for x, y in ((fpr, tpr), (logs[0], logs[1])):
        cell = np.round(x * CELLS / 2) * 10_000 + np.round(y * CELLS / 2)
        keep[np.unique(cell, return_index=True)[1]] = True
    return keep
