"""Whether the guesses about one model depend on each other: errors per model against what independence gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from epsgauge.bounds.dependence import cluster_interval
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.binomial import log_mass

if TYPE_CHECKING:
    from epsgauge.auditing.audit import Audit

BINS = 16


@dataclass(frozen=True)
class Errors:
    """How many models made how many errors of one kind: from edges[i] to edges[i + 1] − 1.

    The outer bins have what is beyond them, too.
    """

    kind: str  # "FN" or "FP"
    rate: float
    edges: Ints
    models: Ints  # counted
    expected: Floats  # if every guess were independent, with the same rate
    variance_ratio: float  # of the counts, over that of independent guesses


@dataclass(frozen=True)
class Dependence:
    """Errors per model, design effects (1: as good as independent) and both intervals for ε."""

    pairs_per_model: int
    n_models: int
    errors: tuple[Errors, ...]  # of FN and FP, without a kind that cannot happen
    design_effect: tuple[float, float] | None  # of FNR and FPR; None below 10 models
    correlation: float | None  # of a model's two error rates
    level: float
    delta: float
    plain: tuple[float, float]
    clustered: tuple[float, float] | None


def dependence(audit: Audit) -> Dependence | None:
    """None for one pair a model: there is nothing to see."""
    if audit.pairs_per_model == 1:
        return None
    scores, settings = audit.judged.judged, audit.settings
    wrong, one = scores.bit != (scores.score >= audit.judged.threshold), scores.bit == 1
    fn, n1, fp, n0 = (scores.per_model(rows) for rows in (wrong & one, one, wrong & ~one, ~one))
    errors = tuple(_errors(kind, k, n) for kind, k, n in (("FN", fn, n1), ("FP", fp, n0)) if n.sum())
    found = None
    if len(errors) == 2:
        found = cluster_interval(fn, n1, fp, n0, delta=settings.delta, level=settings.level)
    plain = audit.posterior.interval(settings.level)
    return Dependence(
        audit.pairs_per_model,
        len(scores.models),
        errors,
        None if found is None else found.design_effect,
        None if found is None else found.correlation,
        settings.level,
        settings.delta,
        (float(plain.low), float(plain.high)),
        None if found is None else (found.low, found.high),
    )


def _errors(kind: str, k: Ints, n: Ints) -> Errors:
    rate = float(k.sum() / n.sum())
    sizes, times = np.unique(n, return_counts=True)
    count = np.arange(int(n.max()) + 1)
    expected = np.zeros(len(count))
    for size, how_often in zip(sizes, times, strict=True):
        expected[: size + 1] += how_often * np.exp(log_mass(count[: size + 1], int(size), rate))
    models = np.bincount(k, minlength=len(count))
    seen = np.flatnonzero((models > 0) | (expected > 0.05))
    first, end = int(seen[0]), int(seen[-1]) + 1
    step = -(-(end - first) // BINS)
    edges: Ints = np.arange(first, end + step, step)
    bins = [_binned(part, edges) for part in (models, expected)]
    spread = float((n * rate * (1.0 - rate)).sum())
    ratio = float(((k - n * rate) ** 2).sum() / spread) if spread > 0 else 1.0
    return Errors(kind, rate, edges, np.round(bins[0]).astype(np.int64), bins[1], ratio)


def _binned(values: Floats | Ints, edges: Ints) -> Floats:
    """Sums between edges; those beyond the outer ones belong to the outer bins."""
    sums = np.append(0.0, np.cumsum(values))
    at = sums[np.minimum(edges, len(values))]
    at[0], at[-1] = 0.0, sums[-1]
    return np.diff(at)
