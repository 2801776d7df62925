"""DP-SGD as strangers write it, in NumPy: a softmax regression, and bugs of public code in batches and clipping."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np

import epsgauge as eg

TRAIN_SIZE, ADJACENCY = 500, "add-remove"
LABELS = 3


@cache
def data():
    """Ten features, one of them 1 for few records, and three labels, one of them rare."""
    rng = np.random.default_rng(23)
    x = rng.normal(size=(600, 10))
    x[:, 4] = x[:, 4] > 1.8
    scores = x @ rng.normal(size=(10, LABELS)) + rng.normal(size=(600, LABELS)) - [0, 0, 4]
    return x, scores.argmax(axis=1)


@dataclass
class NoSwitch:
    """softmax regression, with no switch for the noise"""

    sigma: float = 1.5
    clip: float = 1.0
    batch: int = 40
    epochs: int = 4
    rate: float = 0.5

    def privacy(self, n):
        return eg.DPSGD(sample_rate=self.batch / n, noise_multiplier=self.sigma, steps=self.steps(n))

    def steps(self, n):
        return self.epochs * (n // self.batch)

    def train(self, data, *, seed, size=None, watch=None):
        x, y = self.prepared(*data)
        rng, n, self.weights = np.random.default_rng(seed), size or len(y), self.start(x)
        self.begin(x, y)
        for step in range(self.steps(n)):
            self.step = step
            self.rows = self.sample(rng, x, y, n)
            if self.skipped(x[self.rows], y[self.rows]):
                continue
            update = self.summed(self.gradients(x[self.rows], y[self.rows])) + self.noise(rng, self.weights.size)
            if watch is not None:
                update = self.seen(watch, update)
            self.move(update)
        return self.weights

    def seen(self, watch, update):
        """The parts of the update as arrays of their own."""
        cut = -LABELS
        shown = watch(self.step, [update[:cut].reshape(-1, LABELS), update[cut:]], max_grad_norm=self.clip)
        return np.concatenate([part.ravel() for part in shown])

    def losses(self, weights, points):
        p = self.chances(weights, points[0])
        return -np.log(np.maximum(p[np.arange(len(p)), points[1]], 1e-300))

    def chances(self, weights, x):
        scores = x @ weights[:-LABELS].reshape(-1, LABELS) + weights[-LABELS:]
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        return chances / chances.sum(axis=1, keepdims=True)

    # What a bug replaces

    def prepared(self, x, y):
        return x, y

    def start(self, x):
        return np.zeros((x.shape[1] + 1) * LABELS)

    def begin(self, x, y):
        """Before the first step."""

    def sample(self, rng, x, y, n):
        return np.flatnonzero(rng.random(len(x)) < self.batch / n)

    def skipped(self, x, y):
        return False

    def targets(self, y):
        return np.eye(LABELS)[y]

    def gradients(self, x, y):
        """Of each record, as a row."""
        errors = self.chances(self.weights, x) - self.targets(y)
        outer = (x[:, :, None] * errors[:, None, :]).reshape(len(x), x.shape[1] * LABELS)
        return np.concatenate([outer, errors], axis=1)

    def factors(self, norms):
        return np.minimum(1, self.clip / np.maximum(norms, 1e-12))

    def clipped(self, g):
        return g * self.factors(np.linalg.norm(g, axis=1))[:, None]

    def summed(self, g):
        return self.clipped(g).sum(axis=0)

    def noise(self, rng, size):
        return rng.normal(0, self.sigma * self.clip, size)

    def move(self, update):
        self.weights = self.weights - self.rate * update / self.batch


@dataclass
class Softmax(NoSwitch):
    """softmax regression"""

    def without_noise(self):
        return replace(self, sigma=0.0)


# What other records of the batch do to a gradient


class WeightsOfBatch(NoSwitch):
    """the loss is weighted by how rare a label is in the batch"""

    def gradients(self, x, y):
        counts = np.bincount(y, minlength=LABELS)
        return super().gradients(x, y) * (len(y) / LABELS / counts.clip(1))[y][:, None]


class Centres(Softmax):
    """the mean gradient of the batch is subtracted from each before it is clipped"""

    def clipped(self, g):
        return super().clipped(g - g.mean(axis=0)) if len(g) else g


class Hardest(Softmax):
    """the twenty records with the highest loss in the batch are used"""

    def summed(self, g):
        p = self.chances(self.weights, self.x[self.rows])
        order = np.argsort(p[np.arange(len(p)), self.y[self.rows]])
        return super().summed(g[order[:20]])

    def begin(self, x, y):
        self.x, self.y = x, y


class WeighsByLoss(Softmax):
    """clipped gradients are weighted by their loss, relative to the mean loss of the batch"""

    def summed(self, g):
        p = self.chances(self.weights, self.x[self.rows])
        losses = -np.log(p[np.arange(len(p)), self.y[self.rows]] + 1e-12)
        return (losses / max(losses.mean(), 1e-12)) @ self.clipped(g) if len(g) else super().summed(g)

    begin = Hardest.begin


class ToMedian(Softmax):
    """gradients are clipped to the median norm of the batch, and the noise is of the stated norm"""

    def factors(self, norms):
        most = min(self.clip, np.median(norms)) if len(norms) else self.clip
        return np.minimum(1, most / np.maximum(norms, 1e-12))


class NoiseOfMedian(Softmax):
    """gradients are clipped to the median norm of the batch; noise and watch have that norm, too"""

    def clipped(self, g):
        self.clip = max(float(np.median(np.linalg.norm(g, axis=1))), 1e-3) if len(g) else self.clip
        return super().clipped(g)


class DropsOutliers(Softmax):
    """records of the batch with a gradient longer than the mean and two deviations are dropped"""

    def summed(self, g):
        norms = np.linalg.norm(g, axis=1)
        return super().summed(g[norms <= norms.mean() + 2 * norms.std()] if len(g) else g)


class OverLongest(Softmax):
    """gradients are divided by the longest of the batch"""

    def factors(self, norms):
        return np.full(len(norms), self.clip / max(norms.max(initial=0), 1e-12))


class MixesUp(NoSwitch):
    """each record is mixed with the next one of the batch (mixup)"""

    def gradients(self, x, y):
        self.mixed = 0.5 * (np.eye(LABELS)[y] + np.roll(np.eye(LABELS)[y], 1, axis=0))
        return super().gradients(0.5 * (x + np.roll(x, 1, axis=0)), y)

    def targets(self, y):
        return self.mixed


class MeansOfBatch(NoSwitch):
    """sums are divided by the size of the batch as drawn, and the noise by the expected size"""

    def summed(self, g):
        return super().summed(g) * self.batch / max(1, len(g))


class MasksOfRecords(NoSwitch):
    """the seed of the dropout masks is made of the records of the batch"""

    def gradients(self, x, y):
        masks = np.random.default_rng(int(np.abs(x).sum() * 1e6)).random(x.shape) < 0.5
        return super().gradients(2 * x * masks, y)


# Clipping in a narrow window, to other norms, or with old factors


class Window(Softmax):
    """gradients are clipped only if they are longer than twice the norm"""

    def factors(self, norms):
        return np.where(norms > 2 * self.clip, super().factors(norms), 1.0)


@dataclass
class Squared(Softmax):
    """the factor has the squared norm in place of the norm"""

    clip: float = 0.25

    def factors(self, norms):
        return super().factors(norms**2)


@dataclass
class OfFirstLayer(Softmax):
    """gradients are clipped by the norm of the weights' part, without the biases'"""

    clip: float = 0.25

    def clipped(self, g):
        return g * self.factors(np.linalg.norm(g[:, :-LABELS], axis=1))[:, None]


class LargestNumber(NoSwitch):
    """gradients are clipped by their largest number in place of their length"""

    def clipped(self, g):
        return g * self.factors(np.abs(g).max(axis=1, initial=0))[:, None]


class EachNumber(NoSwitch):
    """each number of a gradient is clipped, as by clip_grad_value_"""

    def clipped(self, g):
        return np.clip(g, -self.clip, self.clip)


class Stale(NoSwitch):
    """the norm of a record's gradient is computed once in an epoch"""

    def begin(self, x, y):
        self.x, self.y = x, y

    def clipped(self, g):
        if self.step % 12 == 0:
            self.norms = np.linalg.norm(self.gradients(self.x, self.y), axis=1)
        return g * self.factors(self.norms[self.rows])[:, None]


class OfLastStep(NoSwitch):
    """the factors are those of the last step's batch, by their place in it"""

    def clipped(self, g):
        norms = np.linalg.norm(g, axis=1)
        last = self.__dict__.get("last", norms)
        self.last = norms
        return g * self.factors(np.resize(last, len(g)) if len(last) else norms)[:, None]


class BothViews(NoSwitch):
    """two views of each record are clipped, each as a record of its own"""

    def summed(self, g):
        return super().summed(g) + super().summed(self.gradients(-self.x[self.rows], self.y[self.rows]))

    begin = Hardest.begin


BUGS = {
    "weights of the batch's labels": WeightsOfBatch,
    "gradients centred": Centres,
    "hardest records": Hardest,
    "weighed by loss": WeighsByLoss,
    "clipped to the median": ToMedian,
    "median norm": NoiseOfMedian,
    "outliers of a batch dropped": DropsOutliers,
    "over the longest": OverLongest,
    "mixup": MixesUp,
    "means of drawn sizes": MeansOfBatch,
    "masks from records": MasksOfRecords,
    "window of norms": Window,
    "squared norm": Squared,
    "norm of one layer": OfFirstLayer,
    "largest number clipped": LargestNumber,
    "each number clipped": EachNumber,
    "stale norms": Stale,
    "factors of the last step": OfLastStep,
    "two views": BothViews,
}
TWINS: dict[str, type] = {}
