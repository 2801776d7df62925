"""Mechanisms to audit: `epsgauge mechanism zoo.mechanisms:noisy_sum --d0 "[0, 0]" --d1 "[0, 1]" --eps 1`."""

import numpy as np


def noisy_sum(data, rng, size):
    """Laplace noise in floating point. Its last digits tell more than ε = 1."""
    return sum(data) + rng.laplace(0, 1, size)


def on_a_grid(data, rng, size):
    """The same on a grid that does not depend on the data: ε = 1."""
    return np.round(noisy_sum(data, rng, size) * 1024) / 1024


def noisy_max(answers, rng, size):
    """Which of several answers is the largest, with Laplace noise of scale 2: ε = 1 if each changes by at most 1."""
    return np.argmax(np.asarray(answers) + rng.laplace(0, 2, (size, len(answers))), axis=1)
