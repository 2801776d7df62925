"""Scores whose two error rates are known exactly at every threshold: what a calibration draws from."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from epsgauge.mechanisms.gaussian import Gaussian
from epsgauge.mechanisms.laplace import Laplace
from epsgauge.mechanisms.randomised_response import RandomisedResponse
from epsgauge.stats import special
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.region import log_ratio_max

# FNR, its complement, FPR and its complement: each tail is computed by itself and keeps its digits
Rates = tuple[Floats, Floats, Floats, Floats]


class Source(ABC):
    """A mechanism as an attack sees it: a higher score where b = 1 is more likely, guess 1 iff score ≥ threshold."""

    @abstractmethod
    def draw(self, bits: Ints, rng: np.random.Generator) -> Floats:
        """Scores of bits with the shape (runs, models, pairs of a model)."""

    @abstractmethod
    def rates(self, threshold: Floats) -> Rates:
        """The true rates of a guess, on average over models."""

    @abstractmethod
    def threshold(self, fpr: float) -> float:
        """The threshold with this FPR."""

    @abstractmethod
    def eps_at(self, delta: float, pairs: int) -> float:
        """ε of the mechanism: of one bit, for one who sees all scores of a model and knows its other bits."""

    def rule_eps(self, threshold: ArrayLike, delta: float) -> Floats:
        """ε of the rule: of its true rates."""
        return log_ratio_max(*self.rates(np.asarray(threshold, np.float64)), np.asarray(delta))


@dataclass(frozen=True)
class Answers(Source):
    """Randomised response; its answer is the score. Its rates are a vertex of the privacy region."""

    eps: float

    @property
    def _lie(self) -> float:
        return float(special.expit(-self.eps))

    def draw(self, bits: Ints, rng: np.random.Generator) -> Floats:
        lies = rng.random(bits.shape) < self._lie
        return np.where(lies, 1 - bits, bits).astype(np.float64)

    def rates(self, threshold: Floats) -> Rates:
        """A threshold in (0, 1] believes the answer; others guess the same whatever it is."""
        always, never = threshold <= 0, threshold > 1
        lie, truth = self._lie, float(special.expit(self.eps))
        miss, alarm = np.select([always, never], [0.0, 1.0], lie), np.select([always, never], [1.0, 0.0], lie)
        hit, silence = np.select([always, never], [1.0, 0.0], truth), np.select([always, never], [0.0, 1.0], truth)
        return miss, hit, alarm, silence

    def threshold(self, fpr: float) -> float:
        return 1.0

    def eps_at(self, delta: float, pairs: int) -> float:
        return RandomisedResponse(self.eps).eps_at(delta)


@dataclass(frozen=True)
class LaplaceScores(Source):
    """The bit plus Laplace noise of scale 1/ε."""

    eps: float

    def draw(self, bits: Ints, rng: np.random.Generator) -> Floats:
        out: Floats = bits + rng.laplace(0.0, 1.0 / self.eps, bits.shape)
        return out

    def rates(self, threshold: Floats) -> Rates:
        ins, outs = self.eps * (threshold - 1.0), self.eps * threshold
        return _laplace_cdf(ins), _laplace_cdf(-ins), _laplace_cdf(-outs), _laplace_cdf(outs)

    def threshold(self, fpr: float) -> float:
        return (-math.log(2.0 * fpr) if fpr <= 0.5 else math.log(2.0 * (1.0 - fpr))) / self.eps

    def eps_at(self, delta: float, pairs: int) -> float:
        return Laplace(self.eps).eps_at(delta)


@dataclass(frozen=True)
class NormalScores(Source):
    """`leak` times the bit plus normal noise of its own (sigma) and noise that all scores of a model share.

    With leak = 0 nothing leaks.
    """

    sigma: float
    leak: float = 1.0
    shared: float = 0.0

    def draw(self, bits: Ints, rng: np.random.Generator) -> Floats:
        own, common = rng.standard_normal(bits.shape), rng.standard_normal((*bits.shape[:2], 1))
        out: Floats = self.leak * bits + self.sigma * own + self.shared * common
        return out

    def rates(self, threshold: Floats) -> Rates:
        spread = math.hypot(self.sigma, self.shared)
        ins, outs = (threshold - self.leak) / spread, threshold / spread
        return special.ndtr(ins), special.ndtr(-ins), special.ndtr(-outs), special.ndtr(outs)

    def threshold(self, fpr: float) -> float:
        return -math.hypot(self.sigma, self.shared) * float(special.ndtri(fpr))

    def eps_at(self, delta: float, pairs: int) -> float:
        """μ² = leak² eᵀΣ⁻¹e for the covariance Σ = sigma² I + shared² of a model's scores and one of them, e."""
        if self.leak == 0:
            return 0.0
        own, common = self.sigma**2, self.shared**2
        mu = self.leak * math.sqrt((1.0 - common / (own + pairs * common)) / own)
        return Gaussian(1.0 / mu).eps_at(delta)


def _laplace_cdf(z: Floats) -> Floats:
    tail = 0.5 * np.exp(-np.abs(z))
    return np.where(z < 0, tail, 1.0 - tail)
