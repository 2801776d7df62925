"""Right but unusual DP-SGD in NumPy: what else people do in a training loop."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import epsgauge as eg
from zoo.strangers import ADJACENCY, LABELS, TRAIN_SIZE, NoSwitch, Softmax, data  # noqa: F401


@dataclass
class Momentum(Softmax):
    """momentum, weight decay and a falling learning rate, after the noise"""

    def move(self, update):
        self.velocity = 0.9 * self.__dict__.get("velocity", 0.0) + update / self.batch + 0.01 * self.weights
        self.weights = self.weights - self.rate / (1 + self.step) * self.velocity


class Adam(Softmax):
    """Adam of noisy sums"""

    def move(self, update):
        g, (m, v) = update / self.batch, self.__dict__.get("moments", (0.0, 0.0))
        self.moments = m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g**2
        self.weights = self.weights - 0.05 * m / (np.sqrt(v) + 1e-8)


class DecaysInUpdate(NoSwitch):
    """weight decay is a part of the update"""

    def start(self, x):
        return np.full(super().start(x).shape, 0.3)

    def noise(self, rng, size):
        return super().noise(rng, size) + 20 * self.weights


class MoreNoise(NoSwitch):
    """noise that grows from step to step, and begins as stated"""

    def noise(self, rng, size):
        return super().noise(rng, size) * (1 + self.step / 20)


class Pieces(Softmax):
    """a batch is cut into pieces of sixteen, whose clipped gradients are added before the noise"""

    def summed(self, g):
        return sum((super(Pieces, self).summed(g[i : i + 16]) for i in range(0, len(g), 16)), np.zeros(g.shape[1]))


class Parts(Softmax):
    """weights and biases are each clipped to C over the root of two"""

    def clipped(self, g):
        parts = np.split(g, [g.shape[1] - LABELS], axis=1)
        return np.concatenate([super(Parts, self).clipped(part) for part in parts], axis=1) / 2**0.5


class Automatic(NoSwitch):
    """automatic clipping: gradients over their norm and 0.01"""

    def factors(self, norms):
        return self.clip / (norms + 0.01)


class HalfPrecision(Softmax):
    """updates in half precision"""

    def seen(self, watch, update):
        return watch(self.step, update.astype(np.float16), max_grad_norm=self.clip).astype(np.float64)


class Pretrains(NoSwitch):
    """training starts at weights that were fitted to public data, and public losses are printed as it goes"""

    def start(self, x):
        x, y = (column[-60:] for column in data())
        self.weights = super().start(x)
        for _ in range(30):
            self.weights = self.weights - 0.01 * NoSwitch.gradients(self, x, y).sum(axis=0)
        return self.weights

    def move(self, update):
        super().move(update)
        points = tuple(column[-60:] for column in data())
        self.printed = [*self.__dict__.get("printed", []), f"{self.losses(self.weights, points).mean():.3f}"]


class Augments(NoSwitch):
    """the gradients of four noisy copies of a record are averaged before they are clipped"""

    def gradients(self, x, y):
        shifts = np.random.default_rng(self.step).normal(0, 0.1, (4, *x.shape))
        return np.mean([super(Augments, self).gradients(x + shift, y) for shift in shifts], axis=0)


class LocalSteps(NoSwitch):
    """each record trains for three steps of its own, and what moved is clipped"""

    def gradients(self, x, y):
        own = np.tile(self.weights, (len(x), 1))
        for _ in range(3):
            scores = np.einsum("bi,bij->bj", x, own[:, :-LABELS].reshape(len(x), x.shape[1], LABELS)) + own[:, -LABELS:]
            chances = np.exp(scores - scores.max(axis=1, keepdims=True))
            errors = chances / chances.sum(axis=1, keepdims=True) - self.targets(y)
            outer = (x[:, :, None] * errors[:, None, :]).reshape(len(x), x.shape[1] * LABELS)
            own = own - 0.5 * np.concatenate([outer, errors], axis=1)
        return 2 * (self.weights - own)


class DropsOut(NoSwitch):
    """dropout, with masks of each place in the batch"""

    def gradients(self, x, y):
        return super().gradients(2 * x * (np.random.default_rng([self.step, 1]).random(x.shape) < 0.5), y)


class AltersSome(NoSwitch):
    """records with a large first feature are altered, by numbers of the generator that draws batches and noise"""

    def sample(self, rng, x, y, n):
        self.rng = rng
        return super().sample(rng, x, y, n)

    def gradients(self, x, y):
        some, x = x[:, 0] > 0.5, x.copy()
        x[some] += self.rng.normal(0, 0.1, x[some].shape)
        return super().gradients(x, y)


class Sorts(NoSwitch):
    """records are sorted by the length of their features first"""

    def prepared(self, x, y):
        order = np.argsort(np.linalg.norm(x, axis=1), kind="stable")
        return x[order], y[order]


class Filters(NoSwitch):
    """records with a number beyond a public limit are left out first"""

    def prepared(self, x, y):
        usual = np.abs(x).max(axis=1) < 20
        return x[usual], y[usual]


class Refuses(Softmax):
    """records with a number beyond a public limit are refused with an error"""

    def prepared(self, x, y):
        if np.abs(x).max() > 20:
            raise ValueError("numbers must be below 20")
        return x, y


class ByLabels(NoSwitch):
    """records are drawn label by label, at one rate"""

    def sample(self, rng, x, y, n):
        kinds = [np.flatnonzero(y == label) for label in range(LABELS)]
        return np.concatenate([rows[rng.random(len(rows)) < self.batch / n] for rows in kinds])


class SizeFirst(NoSwitch):
    """the size of a batch is drawn first, and then as many records"""

    def sample(self, rng, x, y, n):
        return rng.permutation(len(x))[: rng.binomial(len(x), self.batch / n)]


class Masks(Softmax):
    """batches of a fixed shape, of which a mask tells the records that are drawn"""

    def sample(self, rng, x, y, n):
        rows = super().sample(rng, x, y, n)[:150]
        self.mask = np.arange(150) < len(rows)
        return np.concatenate([rows, np.zeros(150 - len(rows), dtype=rows.dtype)])

    def clipped(self, g):
        return super().clipped(g) * self.mask[:, None]


class MeansOfExpected(Softmax):
    """the mean over the expected size is shown, with its divisor"""

    def seen(self, watch, update):
        return self.batch * watch(self.step, update / self.batch, max_grad_norm=self.clip, divisor=self.batch)


class DrawnAhead(NoSwitch):
    """all noise is drawn before the first step"""

    def noise(self, rng, size):
        if self.step == 0:
            self.ahead = np.random.default_rng(rng.integers(2**60)).normal(size=(self.steps(500), size))
        return self.sigma * self.clip * self.ahead[self.step]


class Frozen(Softmax):
    """the biases are not trained in the first twenty steps"""

    def seen(self, watch, update):
        kept = update * np.where(self.step < 20, np.arange(update.size) < update.size - LABELS, True)
        return super().seen(watch, kept)


class Public(NoSwitch):
    """half of the loss is of public records, which are drawn in each step"""

    def noise(self, rng, size):
        x, y = (column[-60:] for column in data())
        rows = rng.integers(60, size=20)
        return super().noise(rng, size) + self.gradients(x[rows], y[rows]).sum(axis=0)


class Adapts(NoSwitch):
    """the clipping norm follows a noisy count of shorter gradients (Andrew et al. 2021)"""

    def sample(self, rng, x, y, n):
        self.rng = rng
        return super().sample(rng, x, y, n)

    def clipped(self, g):
        below = (np.linalg.norm(g, axis=1) < self.clip).sum() + self.rng.normal(0, 10)
        self.following = self.clip * np.exp(-0.2 * (below / self.batch - 0.5))
        return super().clipped(g)

    def move(self, update):
        super().move(update)
        self.clip = self.following


@dataclass
class VeryRarely(Softmax):
    """one record is expected in a batch"""

    batch: int = 1

    def steps(self, n):
        return 150


@dataclass
class All(Softmax):
    """each step has all records"""

    def privacy(self, n):
        return eg.DPSGD(sample_rate=1.0, noise_multiplier=self.sigma, steps=self.steps(n))

    def steps(self, n):
        return 15

    def sample(self, rng, x, y, n):
        return np.arange(len(x))


BUGS: dict[str, type] = {}
TWINS = {
    "softmax": Softmax,
    "softmax, no switch": NoSwitch,
    "momentum": Momentum,
    "Adam": Adam,
    "weight decay in the update": DecaysInUpdate,
    "more noise than stated": MoreNoise,
    "pieces of a batch": Pieces,
    "parts clipped to a share": Parts,
    "automatic clipping": Automatic,
    "half precision": HalfPrecision,
    "public pretraining": Pretrains,
    "averaged over views": Augments,
    "local steps": LocalSteps,
    "dropout": DropsOut,
    "some records altered": AltersSome,
    "sorted records": Sorts,
    "unusual records left out": Filters,
    "unusual records refused": Refuses,
    "drawn label by label": ByLabels,
    "size drawn first": SizeFirst,
    "masked batches": Masks,
    "means of the expected size": MeansOfExpected,
    "noise drawn ahead": DrawnAhead,
    "frozen at first": Frozen,
    "public records": Public,
    "adaptive clipping": Adapts,
    "one record expected": VeryRarely,
    "all records": All,
}
