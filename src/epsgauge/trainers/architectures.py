"""The networks of the paper's two pipelines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from epsgauge.data.encoders import encoder_folder
from epsgauge.trainers.pretrained import fresh

if TYPE_CHECKING:
    from torch import nn


def cifar10_cnn() -> nn.Module:
    """For images [n, 3, 32, 32] of ten classes: three convolutions and a linear layer, 973,962 parameters."""
    from torch import nn

    return nn.Sequential(
        nn.Conv2d(3, 128, 8, stride=2, padding=3),
        nn.Tanh(),
        nn.MaxPool2d(3, stride=1),
        nn.Conv2d(128, 256, 3),
        nn.Tanh(),
        nn.Conv2d(256, 256, 3),
        nn.Tanh(),
        nn.AvgPool2d(2, stride=2),
        nn.Flatten(),
        nn.Linear(6400, 10),
    )


def transformer(encoder: str, n_classes: int) -> nn.Module:
    """For token ids [n, length], padded on the right: a pretrained encoder with a new head, all of it to be trained."""
    model: nn.Module = fresh(encoder_folder(encoder), n_classes)
    return model
