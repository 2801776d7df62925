"""What the study trains on: digits beside an empty part of the image, canaries in that part, and a small network."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from epsgauge.data.digits import digits

Points = tuple[NDArray[np.float32], NDArray[np.int64]]
PAIRS = 4000  # of which each model gets m
STRENGTH = 0.5  # of a pixel of a canary; those of digits are between 0 and 1


def beside_blank(columns: int = 8) -> Points:
    """16,173 images: every digit and its eight shifts by a pixel, with so many empty columns to its right."""
    images, labels = digits()
    padded = np.pad(images.reshape(-1, 8, 8), ((0, 0), (1, 1), (1, 1)))
    shifted = np.concatenate([padded[:, i : i + 8, j : j + 8] for i in range(3) for j in range(3)])
    wide = np.pad(shifted, ((0, 0), (0, 0), (0, columns)))
    return wide.reshape(len(wide), -1), np.tile(labels, 9)


def odd(data: Points) -> tuple[Points, Points]:
    """Pairs of opposite records: z1 is a pattern of random signs in the empty part, with a random label; z0 is −z1.

    A pattern has a direction of its own, but there are more patterns than empty pixels, so that directions overlap.
    """
    images, labels = data
    empty = np.ptp(images, axis=0) == 0
    rng = np.random.default_rng(0)
    signs = rng.choice(np.array([-1, 1], np.float32), size=(PAIRS, len(empty)))
    patterns: Any = np.where(empty, np.float32(STRENGTH) * signs, np.float32(0))
    some = rng.integers(0, labels.max() + 1, PAIRS)
    return (-patterns, some), (patterns, some)


def network() -> nn.Module:
    """One hidden layer of 16, 2,234 parameters."""
    return nn.Sequential(nn.Linear(128, 16), nn.Tanh(), nn.Linear(16, 10))
