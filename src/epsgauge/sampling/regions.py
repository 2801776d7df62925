"""Regions: ways to learn from samples set apart which outputs speak for which data set, one class per way.

Each gives log-odds of b = 1. A region is where these are high; how high is chosen later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from epsgauge.sampling.features import Atoms, Places
from epsgauge.sampling.outputs import Outputs
from epsgauge.sampling.trees import Trees
from epsgauge.stats import special
from epsgauge.stats.arrays import Floats, Ints

LogOdds = Callable[[Outputs], Floats]
# Outputs, bits, what is drawn at random, and the ε that is claimed (0: none).
Learn = Callable[[Outputs, Ints, np.random.Generator, float], LogOdds]

LARGEST = 30.0
BINS = 64
WAVES = 128  # of the kernel, at random (Rahimi and Recht 2007)
ENOUGH = 2000  # samples for trees over digits; fewer find one column
STEPS, RIDGE = 12, 1.0


@dataclass(frozen=True)
class Region:
    """A way to learn, what it is, and whom it follows."""

    name: str
    meaning: str
    learn: Learn
    remedy: str = ""  # what mends a mechanism that it refutes, where that is known


def _events(outputs: Outputs, bits: Ints, rng: np.random.Generator, eps: float) -> LogOdds:
    """Values that come again, or intervals of one number, whichever tell most."""
    places = Places.of(outputs, bits)
    keys = places.keys(outputs)
    tells, atoms = [_information(column, bits) for column in Atoms.across(keys, bits).T], Atoms.of(keys, bits)
    of_numbers, intervals, column = _intervals(places.values(outputs), bits)
    best = int(np.argmax(tells))
    if tells[best] >= of_numbers:
        return lambda new: atoms.values(places.keys(new))[:, best]
    return lambda new: intervals.values(places.values(new)[:, column])


def _intervals(values: Floats, bits: Ints) -> tuple[float, Intervals, int]:
    """Of the column whose intervals tell most: how much, the intervals, and which it is."""
    tells = [_information(Intervals.across(column, bits), bits) for column in values.T]
    best = int(np.argmax(tells))
    return tells[best], Intervals.of(values[:, best], bits), best


def _trees(outputs: Outputs, bits: Ints, rng: np.random.Generator, eps: float) -> LogOdds:
    seen = Seen.of(outputs, bits)
    trees = Trees.fit(seen.learned, bits)
    return lambda new: trees.log_odds(seen.values(new))


def _hockey_stick(outputs: Outputs, bits: Ints, rng: np.random.Generator, eps: float) -> LogOdds:
    """Where either data set is more than e^ε times as likely: the set that the hockey-stick divergence is taken over.

    Samples of the other data set weigh e^ε times as much, so that what is learned is exact where that ratio is met.
    """
    seen, grown = Seen.of(outputs, bits), np.exp(min(eps, LARGEST))
    above, below = (
        Trees.fit(seen.learned, bits, weights=np.where(bits == other, grown, 1.0) / (1.0 + grown)) for other in (0, 1)
    )

    def log_odds(new: Outputs) -> Floats:
        values = seen.values(new)
        high, low = above.log_odds(values) + eps, below.log_odds(values) - eps
        return np.where(high + low > 0, high, low)

    return log_odds


def _digits(outputs: Outputs, bits: Ints, rng: np.random.Generator, eps: float) -> LogOdds:
    places = Places.of(outputs, bits)
    if len(bits) < ENOUGH:
        _, intervals, column = _intervals(places.digits(outputs), bits)
        return lambda new: intervals.values(places.digits(new)[:, column])

    def seen(new: Outputs) -> Floats:
        return np.concatenate([places.digits(new), places.values(new)], axis=1)

    trees = Trees.fit(seen(outputs), bits)
    return lambda new: trees.log_odds(seen(new))


def _linear(outputs: Outputs, bits: Ints, rng: np.random.Generator, eps: float) -> LogOdds:
    places = Places.of(outputs, bits)
    scale = Scale.of(places.values(outputs))

    def seen(new: Outputs) -> Floats:
        x = scale.values(places.values(new))
        return np.concatenate([x, np.abs(x)], axis=1)

    model = Logistic.of(seen(outputs), bits)
    return lambda new: model.log_odds(seen(new))


def _mmd(outputs: Outputs, bits: Ints, rng: np.random.Generator, eps: float) -> LogOdds:
    places = Places.of(outputs, bits)
    scale = Scale.of(places.values(outputs))
    width = len(scale.middle)
    waves = rng.normal(size=(width, WAVES)) / np.sqrt(width) * rng.choice([0.5, 1.0, 2.0, 4.0], WAVES)
    phase = rng.uniform(0, 2 * np.pi, WAVES)

    def seen(new: Outputs) -> Floats:
        out: Floats = np.cos(scale.values(places.values(new)) @ waves + phase)
        return out

    first = seen(outputs)
    witness = first[bits == 1].mean(axis=0) - first[bits == 0].mean(axis=0)
    model = Logistic.of((first @ witness)[:, None], bits)
    return lambda new: model.log_odds((seen(new) @ witness)[:, None])


REGIONS: Mapping[str, Region] = {
    region.name: region
    for region in (
        Region("events", "intervals of one number of the output, or values that come again (StatDP)", _events),
        Region("linear", "a threshold of a linear classifier (DP-Sniper)", _linear),
        Region("trees", "a threshold of boosted trees over all numbers of the output", _trees),
        Region("hockey-stick", "trees that seek where the claimed e^ε is exceeded (DP-Auditorium)", _hockey_stick),
        Region("mmd", "a threshold of the witness of a kernel distance, MMD (DP-Auditorium)", _mmd),
        Region(
            "digits",
            "how floats are stored: their last digits and exponents",
            _digits,
            "Round outputs to a grid that is the same for all inputs, or take noise that is made for floats, as in "
            "OpenDP. Then audit again.",
        ),
    )
}


@dataclass(frozen=True, eq=False)
class Seen:
    """What trees look at: numbers of the output, and log-odds of values that come again."""

    places: Places
    atoms: Atoms
    again: list[int]
    learned: Floats  # of the samples that are learned from: no row says its own bit

    @classmethod
    def of(cls, outputs: Outputs, bits: Ints) -> Seen:
        places = Places.of(outputs, bits)
        keys = places.keys(outputs)
        atoms = Atoms.of(keys, bits)
        again = [c for c, known in enumerate(atoms.keys) if len(known)]
        learned = np.concatenate([places.values(outputs), Atoms.across(keys, bits)[:, again]], axis=1)
        return cls(places, atoms, again, learned)

    def values(self, new: Outputs) -> Floats:
        known = self.atoms.values(self.places.keys(new))[:, self.again]
        return np.concatenate([self.places.values(new), known], axis=1)


@dataclass(frozen=True, eq=False)
class Intervals:
    """A number in intervals, each with its log-odds: any union of them is a region, with two cuts or more."""

    edges: Floats
    log_odds: Floats  # the first is of what is no number

    @classmethod
    def of(cls, column: Floats, bits: Ints) -> Intervals:
        finite = column[np.isfinite(column)]
        n_bins = int(np.clip(len(column) // 50, 4, BINS))
        edges = np.unique(np.quantile(finite, np.linspace(0, 1, n_bins + 1)[1:-1])) if len(finite) else np.empty(0)
        at = cls._at(column, edges)
        n = np.bincount(at, minlength=len(edges) + 2)
        ones = np.bincount(at, weights=bits, minlength=len(edges) + 2)
        return cls(edges, np.log((ones + 0.5) / (n - ones + 0.5)))

    def values(self, column: Floats) -> Floats:
        return self.log_odds[self._at(column, self.edges)]

    @classmethod
    def across(cls, column: Floats, bits: Ints) -> Floats:
        """Of each row by the other half of the rows."""
        out, half = np.empty(len(column)), np.arange(len(bits)) % 2 == 0
        for one, other in ((half, ~half), (~half, half)):
            out[one] = cls.of(column[other], bits[other]).values(column[one])
        return out

    @staticmethod
    def _at(column: Floats, edges: Floats) -> Ints:
        out: Ints = np.where(np.isnan(column), 0, np.searchsorted(edges, column, side="right") + 1)
        return out


@dataclass(frozen=True, eq=False)
class Scale:
    """Columns in units of their spread, without far ones; what is no number is in the middle, and is said."""

    middle: Floats
    spread: Floats

    @classmethod
    def of(cls, values: Floats) -> Scale:
        known = np.append(values, np.zeros((1, values.shape[1])), axis=0)
        clean = np.where(np.isnan(values), np.nanmedian(known, axis=0), values)
        low, middle, high = np.quantile(clean, (0.25, 0.5, 0.75), axis=0)
        spread = np.where(high > low, high - low, np.where(clean.std(axis=0) > 0, clean.std(axis=0), 1.0))
        return cls(middle, spread)

    def values(self, values: Floats) -> Floats:
        with np.errstate(over="ignore"):
            out: Floats = np.clip(np.nan_to_num((values - self.middle) / self.spread, nan=0.0), -8.0, 8.0)
        return out


@dataclass(frozen=True, eq=False)
class Logistic:
    """A logistic regression with a small ridge, by Newton's steps."""

    weights: Floats

    @classmethod
    def of(cls, x: Floats, bits: Ints) -> Logistic:
        design = np.concatenate([np.ones((len(x), 1)), x], axis=1)
        weights, ridge = np.zeros(design.shape[1]), RIDGE * np.eye(design.shape[1])
        for _ in range(STEPS):
            p = special.expit(np.clip(design @ weights, -LARGEST, LARGEST))
            slope = design.T @ (bits - p) - RIDGE * weights
            step = np.linalg.solve((design * (p * (1.0 - p))[:, None]).T @ design + ridge, slope)
            size = float(np.abs(step).max())
            weights = weights + step * min(1.0, 4.0 / max(size, 1e-300))
            if size < 1e-6:
                break
        return cls(weights)

    def log_odds(self, x: Floats) -> Floats:
        out: Floats = self.weights[0] + x @ self.weights[1:]
        return out


def _information(log_odds: Floats, bits: Ints) -> float:
    """How much these log-odds say of the bits, in nats per bit; below 0 where they mislead."""
    return float(np.mean(np.log(2.0) - np.logaddexp(0.0, np.where(bits == 1, -log_odds, log_odds))))
