"""Right and wrong guesses of each model, and what they say of bias, spread and intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from settings import DELTA, LEVEL, N

import epsgauge as eg

CELLS = ("tp", "tn", "fp", "fn")
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Counts:
    """One row per model: guesses that were right and wrong."""

    cells: Ints  # [models, 4], in the order of CELLS
    m: int

    @classmethod
    def of(cls, scores: eg.Scores, threshold: float, m: int) -> Counts:
        """Guess 1 iff the score is at least the threshold."""
        said, true = scores.score >= threshold, scores.bit == 1
        _, model = np.unique(scores.model, return_inverse=True)
        parts = (said & true, ~said & ~true, said & ~true, ~said & true)
        return cls(np.stack([np.bincount(model, weights=part) for part in parts], axis=1).astype(np.int64), m)

    @classmethod
    def read(cls, file: Path, name: str, m: int) -> Counts:
        with np.load(file) as stored:
            return cls(stored[name].astype(np.int64), m)

    @property
    def rates(self) -> tuple[float, float]:
        """TPR and FPR of all guesses."""
        tp, tn, fp, fn = self.cells.sum(axis=0)
        return float(tp / (tp + fn)), float(fp / (fp + tn))

    @property
    def advantage(self) -> float:
        tpr, fpr = self.rates
        return tpr - fpr

    @property
    def standard_error(self) -> float:
        """Of TPR − FPR, by models: that of a ratio of sums, where models are what is independent."""
        tpr, fpr = self.rates
        tp, tn, fp, fn = self.cells.T
        parts = (tp - tpr * (tp + fn)) / (tp + fn).sum() - (fp - fpr * (fp + tn)) / (fp + tn).sum()
        models = len(parts)
        return math.sqrt(models / (models - 1) * float((parts**2).sum()))

    @property
    def design_effect(self) -> float:
        """The variance of TPR − FPR over that of as many independent guesses."""
        tpr, fpr = self.rates
        tp, tn, fp, fn = self.cells.sum(axis=0)
        return self.standard_error**2 / (tpr * (1 - tpr) / (tp + fn) + fpr * (1 - fpr) / (fp + tn))

    def estimates(self) -> eg.Posterior:
        """Of ε, from each N guesses."""
        per = N // self.m
        sums = self.cells[: len(self.cells) // per * per].reshape(-1, per, 4).sum(axis=1)
        return eg.estimate(eg.Tally(**dict(zip(CELLS, sums.T, strict=True))), delta=DELTA)

    def everything(self) -> eg.Posterior:
        """Of ε, from all guesses."""
        return eg.estimate(eg.Tally(**dict(zip(CELLS, self.cells.sum(axis=0), strict=True))), delta=DELTA)


def row(counts: Counts, one: Counts) -> dict[str, Any]:
    """What the guesses with one m say, held against those with m = 1."""
    intervals, eps = counts.estimates().interval(LEVEL), float(one.everything().median())
    low, high = np.atleast_1d(intervals.low), np.atleast_1d(intervals.high)
    off = counts.advantage - one.advantage
    return {
        "m": counts.m,
        "models": len(counts.cells),
        "tpr": counts.rates[0],
        "fpr": counts.rates[1],
        "advantage": counts.advantage,
        "standard_error": counts.standard_error,
        "off": off,
        "off_error": math.hypot(counts.standard_error, one.standard_error) if counts.m > 1 else 0.0,
        "design_effect": counts.design_effect,
        "eps": float(counts.everything().median()),
        "low": float(np.median(low)),
        "high": float(np.median(high)),
        "estimates": len(low),
        "cover": int(np.count_nonzero((low <= eps) & (eps <= high))),
        "below": int(np.count_nonzero(high < eps)),
    }
