"""More bugs of public code: records outside of a batch, sampling, noise, and what is done after an update."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from zoo.strangers import ADJACENCY, LABELS, TRAIN_SIZE, NoSwitch, Softmax, data  # noqa: F401

# What records do that are in no batch


class ClassWeights(NoSwitch):
    """clipped gradients of frequent labels are made shorter, by private frequencies"""

    def begin(self, x, y):
        counts = np.bincount(y, minlength=LABELS)
        self.shares = np.sqrt(counts.min() / counts.clip(1))[y]

    def clipped(self, g):
        return super().clipped(g) * self.shares[self.rows][:, None]


class Smooths(NoSwitch):
    """labels are smoothed by the private frequencies of labels"""

    def begin(self, x, y):
        self.frequencies = np.bincount(y, minlength=LABELS) / len(y)

    def targets(self, y):
        return 0.9 * super().targets(y) + 0.1 * self.frequencies


class NoiseOfLabels(NoSwitch):
    """there is more noise, by the private number of records with a rare label"""

    def begin(self, x, y):
        self.more = 1 + 1 / max(1, (y == 2).sum())

    def noise(self, rng, size):
        return self.more * super().noise(rng, size)


class Neighbours(NoSwitch):
    """features are averaged with those of the nearest record of the data"""

    def prepared(self, x, y):
        apart = ((x[:, None] - x[None]) ** 2).sum(axis=2) + 1e9 * np.eye(len(x))
        return (x + x[apart.argmin(axis=1)]) / 2, y


class DropsData(NoSwitch):
    """records with features beyond three deviations of the data are never in a batch"""

    def begin(self, x, y):
        self.usual = (np.abs(x - x.mean(axis=0)) <= 3 * x.std(axis=0) + 1e-9).all(axis=1)

    def sample(self, rng, x, y, n):
        rows = super().sample(rng, x, y, n)
        return rows[self.usual[rows]]


class RunningScale(NoSwitch):
    """features are divided by a running mean of their size in batches"""

    def gradients(self, x, y):
        size = np.abs(x).mean() if len(x) else 1.0
        self.size = 0.9 * self.__dict__.get("size", 1.0) + 0.1 * size
        return super().gradients(x / self.size, y)


class CleanMomentum(NoSwitch):
    """momentum is of sums without noise, and noise is added to it"""

    def summed(self, g):
        self.velocity = 0.9 * self.__dict__.get("velocity", 0.0) + 0.1 * super().summed(g)
        return self.velocity


class BatchAgain(NoSwitch):
    """the records of the last batch are used again in the next one"""

    def sample(self, rng, x, y, n):
        rows = super().sample(rng, x, y, n)
        both, self.last = np.union1d(rows, self.__dict__.get("last", rows)), rows
        return both


# Sampling


class ByLength(NoSwitch):
    """records are drawn in proportion to the length of their features"""

    def sample(self, rng, x, y, n):
        lengths = np.linalg.norm(x, axis=1)
        return np.flatnonzero(rng.random(len(x)) < self.batch / n * lengths / np.median(lengths))


class DrawsTail(NoSwitch):
    """records with one large feature are drawn four times as often"""

    def sample(self, rng, x, y, n):
        return np.flatnonzero(rng.random(len(x)) < self.batch / n * np.where(x[:, 0] > 2, 4, 1))


class Pads(NoSwitch):
    """a batch that is too small is filled with its first record"""

    def sample(self, rng, x, y, n):
        rows = super().sample(rng, x, y, n)
        return np.concatenate([rows, np.repeat(rows[:1], max(0, self.batch - len(rows)))])


class CutsOff(NoSwitch):
    """a batch that is larger than expected is cut off"""

    def sample(self, rng, x, y, n):
        return super().sample(rng, x, y, n)[: self.batch]


class OfEachLabel(NoSwitch):
    """a batch has as many records of each label"""

    def sample(self, rng, x, y, n):
        kinds = [np.flatnonzero(y == label) for label in range(LABELS)]
        return np.concatenate([rng.choice(rows, self.batch // LABELS) for rows in kinds if len(rows)])


class TwoEpochs(NoSwitch):
    """batches are cut from two shuffled copies of the data"""

    def sample(self, rng, x, y, n):
        place = self.step % (2 * (n // self.batch))
        if place == 0:
            self.order = rng.permutation(np.tile(np.arange(len(x)), 2))
        return self.order[place * self.batch : (place + 1) * self.batch]


class Fakes(NoSwitch):
    """batches of one size, and made-up records that are drawn in each step (a discriminator)"""

    def sample(self, rng, x, y, n):
        return rng.choice(len(x), self.batch, replace=False)

    def noise(self, rng, size):
        fakes = rng.normal(size=(self.batch, (size // LABELS) - 1))
        return super().noise(rng, size) + self.gradients(fakes, rng.integers(LABELS, size=self.batch)).sum(axis=0)


class BetterOfTwo(NoSwitch):
    """of two batches, the one with the lower loss is used"""

    def sample(self, rng, x, y, n):
        tried = [super(BetterOfTwo, self).sample(rng, x, y, n) for _ in range(2)]
        return min(tried, key=lambda rows: self.losses(self.weights, (x[rows], y[rows])).mean() if len(rows) else 0)


# Noise


@dataclass
class Variance(NoSwitch):
    """the square of the noise's deviation is taken for the deviation"""

    sigma: float = 0.7

    def noise(self, rng, size):
        return super().noise(rng, size) * self.sigma


class DividedTwice(Softmax):
    """the noise is divided by the batch size before the sum is, too"""

    def noise(self, rng, size):
        return super().noise(rng, size) / self.batch


class UsedTwice(NoSwitch):
    """the noise of a step is used for the next step, too"""

    def noise(self, rng, size):
        if self.step % 2 == 0:
            self.drawn = super().noise(rng, size)
        return self.drawn


class SomeSteps(NoSwitch):
    """only the first of four pieces of an epoch has noise"""

    def noise(self, rng, size):
        return super().noise(rng, size) * (self.step % 4 == 0)


class Uniform(Softmax):
    """uniform noise of the right deviation"""

    def noise(self, rng, size):
        return rng.uniform(-1, 1, size) * 3**0.5 * self.sigma * self.clip


class Laplace(NoSwitch):
    """Laplace noise of the right deviation"""

    def noise(self, rng, size):
        return rng.laplace(0, 0.5**0.5 * self.sigma * self.clip, size)


# After the update


class RateOfClean(NoSwitch):
    """the learning rate is divided by the length of the sum without noise"""

    def summed(self, g):
        total = super().summed(g)
        self.rate = 0.5 / max(1.0, np.linalg.norm(total))
        return total


class ExitsEarly(NoSwitch):
    """a step is left out when the loss of its batch is low"""

    def skipped(self, x, y):
        return len(y) > 0 and self.losses(self.weights, (x, y)).mean() < 1.0


class StopsWhenGood(NoSwitch):
    """training stops when the private loss is low"""

    def begin(self, x, y):
        self.all = x, y

    def skipped(self, x, y):
        self.done = self.__dict__.get("done", False) or self.losses(self.weights, self.all).mean() < 0.9
        return self.done


BUGS = {
    "class weights after clipping": ClassWeights,
    "labels smoothed": Smooths,
    "noise by labels": NoiseOfLabels,
    "neighbours averaged": Neighbours,
    "outliers of the data dropped": DropsData,
    "running scale": RunningScale,
    "clean momentum": CleanMomentum,
    "batches used again": BatchAgain,
    "drawn by length": ByLength,
    "tail drawn more often": DrawsTail,
    "padded": Pads,
    "cut off": CutsOff,
    "as many of each label": OfEachLabel,
    "two epochs shuffled": TwoEpochs,
    "one size with fakes": Fakes,
    "better of two batches": BetterOfTwo,
    "variance for deviation": Variance,
    "noise divided twice": DividedTwice,
    "noise used twice": UsedTwice,
    "noise in some steps": SomeSteps,
    "uniform noise": Uniform,
    "Laplace noise": Laplace,
    "rate from clean sums": RateOfClean,
    "steps left out": ExitsEarly,
    "stops when good": StopsWhenGood,
}
TWINS: dict[str, type] = {}
