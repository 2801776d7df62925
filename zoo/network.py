"""DP-SGD of a small network in NumPy, and what goes wrong with it in practice: each bug is one method that differs."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from sklearn.datasets import load_digits

import epsgauge as eg

HIDDEN = 16


@cache
def data():
    """Digits, of which one label is rare."""
    x, y = load_digits(return_X_y=True)
    kept = (y < 9) | (np.cumsum(y == 9) <= 5)
    return (x / 16)[kept], y[kept].astype(np.int64)


@dataclass
class Model:
    weights: list[np.ndarray]
    prepare: object  # what is done to records first
    path: list[list[np.ndarray]] = field(default_factory=list)  # the weights after each step


def forward(weights, x):
    hidden = np.maximum(x @ weights[0] + weights[1], 0)
    return hidden, hidden @ weights[2] + weights[3]


def factors(weights, x, y):
    """A record's gradient in each layer is the outer product of its input and its error: [(inputs, errors), …]."""
    hidden, scores = forward(weights, x)
    error = np.exp(scores - scores.max(axis=1, keepdims=True))
    error /= error.sum(axis=1, keepdims=True)
    error[np.arange(len(y)), y] -= 1
    return [(x, error @ weights[2].T * (hidden > 0)), (hidden, error)]


def loss(weights, x, y):
    scores = forward(weights, x)[1]
    top = scores.max(axis=1)
    return np.log(np.exp(scores - top[:, None]).sum(axis=1)) + top - scores[np.arange(len(y)), y]


@dataclass(frozen=True)
class Correct:
    """no bug"""

    noise_multiplier: float = 2.0
    clip: float = 1.0
    epochs: int = 4
    batch: int = 50
    rate: float = 0.5
    path: bool = False  # whether the adversary sees the model after each step

    def privacy(self, n):
        return eg.DPSGD(sample_rate=self.batch / n, noise_multiplier=self.noise_multiplier, steps=self.steps(n))

    def steps(self, n):
        return self.epochs * (n // self.batch)

    def train(self, data, *, seed, size=None, watch=None):
        return self.fit(data, seed, size or len(data[0]), watch)

    def fit(self, data, seed, n, watch=None):
        x, y = data
        prepare = self.preparation(x)
        x, y = self.records(prepare(x), y)
        rng, model = np.random.default_rng(seed), Model(self.start(x, y), prepare)
        weights = model.weights
        for step in range(self.steps(n)):
            rows = self.sample(rng, y, n, step, seed)
            layers = factors(weights, self.in_batch(x[rows]), y[rows])
            noise = self.noise_of(rng, step, n, [w.shape for w in weights], seed)
            update = [g + z for g, z in zip(self.clipped_sum(layers), noise, strict=True)]
            if watch is not None:
                update = watch(step, update, max_grad_norm=self.clip, gradients=self.seen(watch, weights, prepare))
            for w, u in zip(weights, update, strict=True):
                w -= self.rate * u / self.batch
            if self.path:
                model.path.append([w.copy() for w in weights])
        return model

    def losses(self, model, points):
        x, y = model.prepare(points[0]), points[1]
        found = np.clip(loss(model.weights, x, y), 0, 1e6)
        if not self.path:
            return found
        return {"loss": found, "trajectory": np.stack([loss(weights, x, y) for weights in model.path], axis=1)}

    def seen(self, watch, weights, prepare):
        """The gradients of the records that a watch compares updates with."""
        if not hasattr(watch, "records"):
            return None
        layers = factors(weights, prepare(watch.records[0]), watch.records[1])
        count = len(watch.records[1])
        return [[g for a, e in layers for g in (np.outer(a[i], e[i]), e[i])] for i in range(count)]

    # What a bug replaces

    def preparation(self, x):
        return lambda x: x

    def records(self, x, y):
        return x, y

    def start(self, x, y):
        rng = np.random.default_rng(7)  # known to the adversary
        first, last = rng.normal(0, 0.125, (x.shape[1], HIDDEN)), rng.normal(0, 0.25, (HIDDEN, 10))
        return [first, np.zeros(HIDDEN), last, np.zeros(10)]

    def sample(self, rng, y, n, step, seed):
        return np.flatnonzero(rng.random(len(y)) < self.batch / n)

    def in_batch(self, x):
        return x

    def clipped_sum(self, layers):
        norms = np.sqrt([((a**2).sum(axis=1) + 1) * (e**2).sum(axis=1) for a, e in layers])
        kept = self.kept(norms)
        return [g for (a, e), k in zip(layers, kept, strict=True) for g in (a.T @ (e * k[:, None]), k @ e)]

    def kept(self, norms):
        """How much of a gradient is kept in each layer, given its norms there."""
        whole = np.sqrt((norms**2).sum(axis=0))
        return np.broadcast_to(self.to(self.clip, whole), norms.shape)

    def to(self, clip, norms):
        return np.minimum(1, clip / np.maximum(norms, 1e-12))

    def noise_of(self, rng, step, n, shapes, seed):
        return self.noise(rng, shapes, seed)

    def noise(self, rng, shapes, seed):
        return [rng.normal(0, self.noise_multiplier * self.clip, shape) for shape in shapes]


# Noise


class NoNoise(Correct):
    """no noise is added"""

    def noise(self, rng, shapes, seed):
        return [np.zeros(shape) for shape in shapes]


class Workers(Correct):
    """each of four workers adds a quarter of the noise, so that half of it is left"""

    share = 1 / 4

    def noise(self, rng, shapes, seed):
        each = [super(Workers, self).noise(rng, shapes, seed) for _ in range(4)]
        return [self.share * sum(tensors) for tensors in zip(*each, strict=True)]


@dataclass(frozen=True)
class NoiseWithoutClip(Correct):
    """the noise has scale σ, and not σ times the clipping norm 4"""

    clip: float = 4.0

    def noise(self, rng, shapes, seed):
        return [rng.normal(0, self.noise_multiplier, shape) for shape in shapes]


class NoiseOnOneLayer(Correct):
    """the last layer gets no noise"""

    def noise(self, rng, shapes, seed):
        found = super().noise(rng, shapes, seed)
        return [*found[:2], *(np.zeros_like(z) for z in found[2:])]


class SeedOfModels(Correct):
    """a fixed seed: all models get the same noise"""

    def fit(self, data, seed, n, watch=None):
        return super().fit(data, 0, n, watch)


class SeedOfEpochs(Correct):
    """the generator is made anew in each epoch: all epochs get the same noise"""

    def noise_of(self, rng, step, n, shapes, seed):
        return super().noise_of(np.random.default_rng([seed, 3, step % (n // self.batch)]), step, n, shapes, seed)


class NoiseOfRows(Correct):
    """one vector of noise is drawn for all rows of a matrix"""

    def noise(self, rng, shapes, seed):
        return [np.broadcast_to(z[0], z.shape) if z.ndim == 2 else z for z in super().noise(rng, shapes, seed)]


class SeedOfSteps(Correct):
    """the generator is made anew at each step: all steps get the same noise"""

    def noise(self, rng, shapes, seed):
        return super().noise(np.random.default_rng([seed, 1]), shapes, seed)


# Clipping


class NoClipping(Correct):
    """gradients are not clipped"""

    def kept(self, norms):
        return np.ones_like(norms)


class ClipsTheMean(Correct):
    """the mean gradient of a batch is clipped, and not that of each record"""

    def clipped_sum(self, layers):
        total = [g for a, e in layers for g in (a.T @ e, e.sum(axis=0))]
        mean = np.sqrt(sum((g**2).sum() for g in total)) / self.batch
        return [g * self.to(self.clip, mean) for g in total]


class ClipsMicrobatches(Correct):
    """the mean gradient of each microbatch of five is clipped, and not that of each record"""

    def clipped_sum(self, layers):
        total = [np.zeros((a.shape[1], e.shape[1])) for a, e in layers]
        found = [g for w in total for g in (w, np.zeros(w.shape[1]))]
        for start in range(0, len(layers[0][0]), 5):
            piece = [(a[start : start + 5], e[start : start + 5]) for a, e in layers]
            mean = [g / len(piece[0][0]) for a, e in piece for g in (a.T @ e, e.sum(axis=0))]
            kept = len(piece[0][0]) * self.to(self.clip, np.sqrt(sum((g**2).sum() for g in mean)))
            found = [f + kept * g for f, g in zip(found, mean, strict=True)]
        return found


class ClipsTheBatch(Correct):
    """the sum of a batch is clipped, as by clip_grad_norm_, and not the gradient of each record"""

    def clipped_sum(self, layers):
        total = [g for a, e in layers for g in (a.T @ e, e.sum(axis=0))]
        return [g * self.to(self.clip, np.sqrt(sum((g**2).sum() for g in total))) for g in total]


class ClipsTheBatchOfMeans(ClipsTheBatch):
    """the mean gradient of a batch is clipped, as by clip_grad_norm_, and noise σC is added to the mean"""

    def clipped_sum(self, layers):
        return super().clipped_sum([(a, e / max(1, len(e))) for a, e in layers])


@dataclass(frozen=True)
class ClipsAllAtOnce(ClipsTheBatch):
    """the gradient of all records is clipped, with neighbours that add or remove one"""

    noise_multiplier: float = 8.0

    def privacy(self, n):
        return eg.DPSGD(sample_rate=1.0, noise_multiplier=self.noise_multiplier, steps=self.steps(n))

    def sample(self, rng, y, n, step, seed):
        return np.arange(len(y))


class DividesFirst(Correct):
    """gradients are divided by the batch size before they are clipped"""

    def to(self, clip, norms):
        return super().to(clip * self.batch, norms)


@dataclass(frozen=True)
class ClipsToOne(Correct):
    """gradients are clipped to 1, whatever the clipping norm, here 0.25"""

    clip: float = 0.25

    def to(self, clip, norms):
        return super().to(1.0, norms)


class MixesIn(Correct):
    """a tenth of the unclipped gradients is mixed in"""

    def clipped_sum(self, layers):
        plain = [g for a, e in layers for g in (a.T @ e, e.sum(axis=0))]
        return [g + 0.1 * p for g, p in zip(super().clipped_sum(layers), plain, strict=True)]


class ClipsLayers(Correct):
    """each layer is clipped to the whole norm"""

    share = 1.0

    def kept(self, norms):
        return self.to(self.share * self.clip, norms)


class BiasUnclipped(Correct):
    """biases are left out of the clipping"""

    def clipped_sum(self, layers):
        found = super().clipped_sum(layers)
        return [found[0], layers[0][1].sum(axis=0), found[2], layers[1][1].sum(axis=0)]


# Sampling and accounting


class Shuffles(Correct):
    """batches are shuffled, and accounted for as if each record were drawn by a coin"""

    def sample(self, rng, y, n, step, seed):
        epoch, place = divmod(step, n // self.batch)
        order = np.random.default_rng([seed, 2, epoch]).permutation(len(y))
        return order[place * self.batch : (place + 1) * self.batch]


class FixedSize(Correct):
    """batches have a fixed size, and are accounted for as if each record were drawn by a coin"""

    def sample(self, rng, y, n, step, seed):
        return rng.permutation(len(y))[: self.batch]


class DrawsTwice(Correct):
    """records are drawn with replacement, so that one can be in a batch twice"""

    def sample(self, rng, y, n, step, seed):
        return rng.integers(len(y), size=rng.binomial(n, self.batch / n))


class Balances(Correct):
    """rare labels are drawn more often, and accounted for as if they were not"""

    def sample(self, rng, y, n, step, seed):
        rates = np.minimum(1, self.batch / 10 / np.bincount(y, minlength=10).clip(1))
        return np.flatnonzero(rng.random(len(y)) < rates[y])


class WeightsClasses(Correct):
    """the loss is weighted by how rare a label is in the private data"""

    def sample(self, rng, y, n, step, seed):
        rows = super().sample(rng, y, n, step, seed)
        self.__dict__["weights"] = (len(y) / 10 / np.bincount(y, minlength=10).clip(1))[y[rows]]
        return rows

    def clipped_sum(self, layers):
        return super().clipped_sum([(a, e * self.weights[:, None]) for a, e in layers])


class Repeats(Correct):
    """each record is in the data four times"""

    def records(self, x, y):
        return np.repeat(x, 4, axis=0), np.repeat(y, 4)


class Augments(Correct):
    """four altered copies of each record are in the data, each as a record of its own"""

    def records(self, x, y):
        rng = np.random.default_rng(5)
        return np.concatenate([x + 0.1 * rng.normal(size=x.shape) for _ in range(4)]), np.tile(y, 4)


class SizeOfData(Correct):
    """steps and rate come from the private number of records, with neighbours that add or remove one"""

    def train(self, data, *, seed, watch=None):
        return self.fit(data, seed, len(data[0]), watch)

    def steps(self, n):
        return self.epochs * n // self.batch


class CountsEpochs(Correct):
    """the accountant is given the number of epochs as that of steps"""

    def privacy(self, n):
        return eg.DPSGD(sample_rate=self.batch / n, noise_multiplier=self.noise_multiplier, steps=self.epochs)


class RateOfWorker(Correct):
    """the accountant is given the batch of one of four workers"""

    def privacy(self, n):
        return eg.DPSGD(sample_rate=self.batch / 4 / n, noise_multiplier=self.noise_multiplier, steps=self.steps(n))


class TwiceTheNoise(Correct):
    """the accountant is given twice the noise"""

    def privacy(self, n):
        return eg.DPSGD(sample_rate=self.batch / n, noise_multiplier=2 * self.noise_multiplier, steps=self.steps(n))


# Around the training


class Standardises(Correct):
    """records are scaled by the mean and spread of the private data"""

    def preparation(self, x):
        mean, spread = x.mean(axis=0), x.std(axis=0) + 1e-3
        return lambda x: (x - mean) / spread


class ScalesByMost(Correct):
    """records are divided by the largest private number"""

    def preparation(self, x):
        most = np.abs(x).max()
        return lambda x: x / most


class BatchNorm(Correct):
    """records are normalised by the statistics of their batch"""

    def in_batch(self, x):
        return (x - x.mean(axis=0)) / (x.std(axis=0) + 0.1) if len(x) else x


class BestOfTen(Correct):
    """ten models are trained, and the one that fits the private data best is released"""

    def train(self, data, *, seed, size=None, watch=None):
        models = [self.fit(data, 10 * seed + i, size or len(data[0]), watch) for i in range(10)]
        return min(models, key=lambda model: loss(model.weights, *data).mean())


class StopsEarly(Correct):
    """of the models after each step, the one that fits the private data best is released"""

    def fit(self, data, seed, n, watch=None):
        model = replace(self, path=True)._fit(data, seed, n, watch)
        model.weights = min(model.path, key=lambda weights: loss(weights, *data).mean())
        return model

    def _fit(self, data, seed, n, watch):
        return Correct.fit(self, data, seed, n, watch)


class TunesRate(Correct):
    """the learning rate is the best of two on the private data"""

    def fit(self, data, seed, n, watch=None):
        tried = [replace(self, rate=rate) for rate in (0.25, 1.0)]
        fits = [loss(Correct.fit(each, data, 0, n).weights, *data).mean() for each in tried]
        return Correct.fit(tried[int(np.argmin(fits))], data, seed, n, watch)


class SavesData(Correct):
    """the model keeps the records that it was trained on"""

    def fit(self, data, seed, n, watch=None):
        model = super().fit(data, seed, n, watch)
        model.examples = data[0]
        return model


class WarmStart(Correct):
    """training starts at weights that were fitted to the private data"""

    def start(self, x, y):
        weights = super().start(x, y)
        for _ in range(10):
            for w, (a, e) in zip(weights[::2], factors(weights, x, y), strict=True):
                w -= a.T @ e / len(x)
        return weights


# Twins without the bug


class WorkersRight(Workers):
    """each of four workers adds half of the noise, so that all of it is there"""

    share = 1 / 2


@dataclass(frozen=True)
class NoiseWithClip(Correct):
    """the noise has scale σ times the clipping norm 4"""

    clip: float = 4.0


class ClipsLayersRight(ClipsLayers):
    """each of both layers is clipped to its share of the norm"""

    share = 0.5**0.5


@dataclass(frozen=True)
class AllAtOnce(ClipsAllAtOnce):
    """each step has all records, each clipped"""

    clipped_sum = Correct.clipped_sum


class Normalises(Correct):
    """gradients are scaled to the clipping norm, long and short ones"""

    def to(self, clip, norms):
        return clip / (norms + 0.01)


class Projects(Correct):
    """each record is clipped, and then the sum of a batch is, too"""

    def clipped_sum(self, layers):
        total = super().clipped_sum(layers)
        return [g * self.to(self.clip, np.sqrt(sum((g**2).sum() for g in total))) for g in total]


class ScalesByPublic(Correct):
    """records are scaled by public numbers"""

    def preparation(self, x):
        return lambda x: 2 * x - 1


class OneOfTen(Correct):
    """of ten models, the one that is drawn by lot is released"""

    def train(self, data, *, seed, size=None, watch=None):
        return self.fit(data, 10 * seed + seed % 10, size or len(data[0]), watch)


BUGS = {
    "no noise": NoNoise,
    "noise shared out wrongly": Workers,
    "noise without the clipping norm": NoiseWithoutClip,
    "a layer without noise": NoiseOnOneLayer,
    "same noise in all models": SeedOfModels,
    "same noise in all epochs": SeedOfEpochs,
    "same noise in all steps": SeedOfSteps,
    "same noise in all rows": NoiseOfRows,
    "no clipping": NoClipping,
    "mean clipped": ClipsTheMean,
    "means of microbatches clipped": ClipsMicrobatches,
    "batch clipped": ClipsTheBatch,
    "mean of the batch clipped": ClipsTheBatchOfMeans,
    "divided before clipping": DividesFirst,
    "clipped to 1": ClipsToOne,
    "unclipped part": MixesIn,
    "layers clipped": ClipsLayers,
    "biases unclipped": BiasUnclipped,
    "shuffled batches": Shuffles,
    "batches of fixed size": FixedSize,
    "drawn with replacement": DrawsTwice,
    "balanced batches": Balances,
    "classes weighted": WeightsClasses,
    "records repeated": Repeats,
    "records augmented": Augments,
    "steps from the data": SizeOfData,
    "epochs counted as steps": CountsEpochs,
    "rate of one worker": RateOfWorker,
    "twice the noise accounted": TwiceTheNoise,
    "standardised": Standardises,
    "scaled by the largest": ScalesByMost,
    "batch statistics": BatchNorm,
    "best of ten": BestOfTen,
    "best step": StopsEarly,
    "rate tuned on the data": TunesRate,
    "data saved": SavesData,
    "start fitted to the data": WarmStart,
}
TWINS = {
    "correct": Correct,
    "noise shared out rightly": WorkersRight,
    "noise with the clipping norm": NoiseWithClip,
    "layers clipped to a share": ClipsLayersRight,
    "all at once": AllAtOnce,
    "normalised gradients": Normalises,
    "projected sum": Projects,
    "scaled by public numbers": ScalesByPublic,
    "one of ten by lot": OneOfTen,
}
