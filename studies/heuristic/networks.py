"""The study's own convolutional network, and digits as images for it."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from torch import nn

from epsgauge.data.digits import digits


def digit_images() -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Digits as [n, 1, 8, 8]."""
    images, labels = digits()
    return images.reshape(-1, 1, 8, 8), labels


def small_cnn() -> nn.Module:
    """Two convolutions of 8 and 16 channels, 1,898 parameters."""
    return nn.Sequential(
        *(nn.Conv2d(1, 8, 3, padding=1), nn.Tanh(), nn.MaxPool2d(2)),
        *(nn.Conv2d(8, 16, 3, padding=1), nn.Tanh(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64, 10)),
    )
