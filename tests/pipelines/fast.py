"""A pipeline that takes no time: the mean of the points with noise, and a point's distance from it."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

import epsgauge.mechanisms.privacy as promises


def data(n=60, shift=0.0):
    rng = np.random.default_rng(7)
    return rng.normal(size=(n, 3)) + shift, np.arange(n)


@dataclass(frozen=True)
class Mean:
    noise_multiplier: float = 1.0
    nap: float = 0.0  # the longest sleep of a training, in seconds

    def train(self, data, *, seed):
        rng = np.random.default_rng(seed)
        time.sleep(self.nap * rng.random())
        return data[0].mean(axis=0) + self.noise_multiplier * rng.normal(size=3) / len(data[0])

    def losses(self, model, points):
        return np.square(points[0] - model).sum(axis=1)

    def privacy(self, n):
        return promises.DPSGD(sample_rate=1.0, noise_multiplier=self.noise_multiplier, steps=1)
