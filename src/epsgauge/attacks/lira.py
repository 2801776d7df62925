"""LiRA: the likelihood ratio of a point's margin, by Gaussians fitted to models with the point and without it.

Carlini et al. 2022, "Membership inference attacks from first principles" (arXiv:2112.03570), algorithm 1. A margin is
log p − log(1 − p), with p the probability of the label: nearly Gaussian over models, where losses are not. It is the
channel "margin" where the trainer gives one, else it comes from the loss −log p. Losses below 0 are not of that kind,
and are taken with their sign turned.

Of few models the variance is known badly, so that all points share one, as in the paper: that around the mean of each
point. Where each point has one model only, it is the variance of all numbers, as nothing else is known then.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from epsgauge.attacks.apart import OfPoints, members
from epsgauge.attacks.margin import scaled
from epsgauge.games.signals import Signals
from epsgauge.stats.arrays import Bools, Floats

# With fewer models with a point, or without it, all points share one variance.
FEWEST = 32
# A loss counts as no lower: one of 0 would have an infinite margin.
LOWEST_LOSS = 1e-45
# A standard deviation is at least this part of that of all numbers: a trainer may have no noise at all.
NARROWEST = 1e-6


@dataclass(frozen=True, eq=False)
class Gaussians:
    """One for each point."""

    mean: Floats  # [m]
    std: Floats  # [m]

    def standardised(self, values: Floats) -> Floats:
        out: Floats = (values - self.mean) / self.std
        return out

    def log_density(self, values: Floats) -> Floats:
        """Up to a constant."""
        out: Floats = -(self.standardised(values) ** 2) / 2 - np.log(self.std)
        return out


class Lira(OfPoints):
    """The online attack: with models of both kinds."""

    name = "lira"
    meaning = "how much likelier the margins of the pair's points are in models set apart with b = 1 than with b = 0"
    axis = "score: log-likelihood ratio (LiRA)"

    def of_point(self, signals: Signals, apart: Signals, side: int) -> Floats:
        seen, known, inside = margins(signals, apart, side), margins(apart, apart, side), members(apart, side)
        with_point, without = fitted(known, inside), fitted(known, ~inside)
        return with_point.log_density(seen) - without.log_density(seen)


def margins(signals: Signals, apart: Signals, side: int) -> Floats:
    """Of each z0 or z1, [n, m]. The models set apart decide what stands for it, so that no judged model does."""
    if "margin" in signals.channels:
        return signals["margin"][..., side]
    loss = signals["loss"][..., side]
    return -loss if (apart["loss"][..., side] < 0).any() else scaled(loss, LOWEST_LOSS)


def fitted(known: Floats, which: Bools) -> Gaussians:
    """To the numbers of some models for each point, both [k, m]; each point has one model at least."""
    counts = which.sum(axis=0)
    mean = np.where(which, known, 0.0).sum(axis=0) / counts
    squares = (np.where(which, known - mean, 0.0) ** 2).sum(axis=0)
    everything = float(known.std())
    if counts.min() >= FEWEST:
        std = np.sqrt(squares / (counts - 1))
    elif counts.max() > 1:
        std = np.full_like(mean, np.sqrt(squares.sum() / (counts - 1).sum()))
    else:
        std = np.full_like(mean, everything)
    return Gaussians(mean, np.maximum(std, NARROWEST * (everything or 1.0)))
