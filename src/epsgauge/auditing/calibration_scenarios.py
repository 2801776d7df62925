"""The scenarios of a calibration: what is drawn, how the rule was chosen, and which assumptions that breaks."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from epsgauge.auditing.calibration_sources import Answers, LaplaceScores, NormalScores, Source
from epsgauge.methods.facts import FAIR_BITS, GAUSSIAN_CURVE, INDEPENDENT, NUMBER_FIXED, RULE_FIXED
from epsgauge.scores.rules import SameData, Split, judge
from epsgauge.scores.said import Bits
from epsgauge.scores.table import Scores
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.counts import Counts

Chosen = Literal["beforehand", "same", "split"]


@dataclass(frozen=True)
class Draws:
    """What the attack has in each run: bits and scores (runs, models, pairs of a model), and its threshold."""

    bits: Ints
    scores: Floats
    thresholds: Floats  # one per run

    def __len__(self) -> int:
        return len(self.bits)

    def pick(self, runs: Ints, models: slice = slice(None)) -> Draws:
        return Draws(self.bits[runs, models], self.scores[runs, models], self.thresholds[runs])

    def by_model(self) -> tuple[Ints, Ints, Ints, Ints]:
        """FN, how many had b = 1, FP, how many had b = 0; of each run and model."""
        said, ones = self.scores >= self.thresholds[:, None, None], self.bits == 1
        fn, n1, fp, n0 = (np.count_nonzero(q, axis=2) for q in (ones & ~said, ones, ~ones & said, ~ones))
        return fn, n1, fp, n0

    def counts(self) -> Counts:
        """All guesses of each run."""
        fn, n1, fp, n0 = (q.sum(axis=1).astype(np.float64) for q in self.by_model())
        return Counts(tp=n1 - fn, tn=n0 - fp, fp=fp, fn=fn)


@dataclass(frozen=True)
class Scenario:
    """One situation: n1 + n0 independent guesses, or models with several fair bits each; perhaps watched.

    `fpr` is that of the rule, 1/N where it is None. A rule that is chosen has the best lower end of Jeffreys' interval,
    as in an audit. With `looks` above 1, n1 + n0 more samples follow each look that did not refute the rule's true ε.
    """

    name: str
    source: Source
    delta: float
    fpr: float | None = 0.5
    n1: int = 100
    n0: int = 100
    chosen: Chosen = "beforehand"
    pairs: int = 1
    looks: int = 1

    @property
    def n_models(self) -> int:
        """Of one look."""
        return (self.n1 + self.n0) // self.pairs

    @property
    def true_fpr(self) -> float:
        return 1.0 / (self.n1 + self.n0) if self.fpr is None else self.fpr

    @property
    def threshold(self) -> float:
        """Of the rule that was fixed beforehand."""
        return self.source.threshold(self.true_fpr)

    @property
    def breaks(self) -> frozenset[str]:
        """Assumptions that do not hold here."""
        broken = {
            INDEPENDENT: self.pairs > 1,
            RULE_FIXED: self.chosen == "same",
            NUMBER_FIXED: self.looks > 1,
            FAIR_BITS: self.n1 != self.n0,
            GAUSSIAN_CURVE: not isinstance(self.source, NormalScores),
        }
        return frozenset(name for name, is_broken in broken.items() if is_broken)

    @property
    def counted(self) -> bool:
        """Whether two binomials say all there is to say."""
        return self.pairs == 1 and self.chosen == "beforehand"

    def smaller(self) -> Scenario:
        """With 50 samples, few enough for all outcomes; one that is watched stays as it is."""
        if self.looks > 1:
            return self
        n1 = round(50 * self.n1 / (self.n1 + self.n0))
        return replace(self, n1=n1, n0=50 - n1)

    def draw(self, runs: int, seed: int, *, fair: bool) -> Draws:
        """The same for all methods and levels; `fair` draws the bits as coins where their numbers are not to differ.

        Of a rule that was chosen by a split, what is drawn is the other half.
        """
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        shape = (runs, self.looks * self.n_models, self.pairs)
        if self.pairs > 1 or (fair and self.n1 == self.n0):
            bits = rng.integers(0, 2, shape)
        else:
            bits = np.broadcast_to(np.tile(_evenly(self.n1, self.n0), self.looks)[:, None], shape)
        scores = self.source.draw(bits, rng)
        if self.chosen == "beforehand":
            return Draws(bits, scores, np.full(runs, self.threshold))
        half = self.n_models // 2
        choice = SameData() if self.chosen == "same" else Split(fit_models=half)
        each = [judge(table(b, s), choice, delta=self.delta).threshold for b, s in zip(bits, scores, strict=True)]
        judged = slice(half if self.chosen == "split" else 0, None)
        return Draws(bits[:, judged], scores[:, judged], np.array(each))


def _evenly(n1: int, n0: int) -> Ints:
    """n1 ones and n0 zeros that alternate as evenly as can be."""
    when = np.concatenate([(np.arange(n) + 0.5) / n for n in (n1, n0)])
    return np.repeat(np.array([1, 0]), [n1, n0])[np.argsort(when, kind="stable")]


def table(bits: Ints, scores: Floats) -> Scores:
    """One run, as a table of models and their pairs; several bits of a model are always drawn as coins."""
    models, pairs = np.indices(bits.shape)
    said: Bits = "coins" if bits.shape[1] > 1 else "unknown"
    return Scores(models.ravel(), pairs.ravel(), bits.ravel(), scores.ravel(), "substitute", bits=said)


def _all() -> Iterator[Scenario]:
    silent, wide, narrow = NormalScores(1.0, leak=0.0), NormalScores(1.0), NormalScores(0.5)
    yield Scenario("no leak, FPR 0.5", silent, 0.0)
    yield Scenario("no leak, FPR 0.1", silent, 1e-5, 0.1)
    yield Scenario("no leak, FPR 1/N", silent, 1e-5, None)
    yield Scenario("randomised response, ε = 1", Answers(1.0), 0.0)
    yield Scenario("randomised response, ε = 4", Answers(4.0), 1e-5)
    yield Scenario("Laplace, ε = 2, FPR 0.3", LaplaceScores(2.0), 0.0, 0.3)
    yield Scenario("Laplace, ε = 2, FPR 0.02", LaplaceScores(2.0), 1e-5, 0.02)
    yield Scenario("Gaussian, μ = 2, FPR 0.02", narrow, 1e-5, 0.02)
    yield Scenario("Gaussian, μ = 2, FPR 1/N", narrow, 1e-5, None)
    yield Scenario("randomised response, ε = 1, sizes 3 : 1", Answers(1.0), 0.0, n1=150, n0=50)
    yield Scenario("no leak, FPR 0.1, sizes 3 : 17", silent, 1e-5, 0.1, n1=30, n0=170)
    yield Scenario("no leak, best threshold", silent, 1e-5, chosen="same")
    yield Scenario("Gaussian, μ = 1, best threshold", wide, 1e-5, chosen="same")
    yield Scenario("no leak, threshold by a split", silent, 1e-5, chosen="split")
    yield Scenario("Gaussian, μ = 1, threshold by a split", wide, 1e-5, chosen="split")
    for name, source, fpr in (
        ("no leak, FPR 0.1", NormalScores(0.5, leak=0.0, shared=0.5), 0.1),
        ("Gaussian, FPR 0.24", NormalScores(0.5, shared=0.5), 0.24),  # = FNR
        ("Gaussian, FPR 0.05", NormalScores(0.5, shared=1.0), 0.05),
    ):
        yield Scenario(f"{name}, 20 models of 50 bits", source, 1e-5, fpr, n1=500, n0=500, pairs=50)
    yield Scenario("no leak, FPR 0.5, up to 5 looks", silent, 0.0, looks=5)
    yield Scenario("randomised response, ε = 3, up to 5 looks", Answers(3.0), 0.0, looks=5)


SCENARIOS: tuple[Scenario, ...] = tuple(_all())
