"""How a gradient moves the weights: SGD or Adam."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from epsgauge.errors import InvalidInput

if TYPE_CHECKING:
    from torch import nn, optim

NAMES = ("sgd", "adam")


def check(name: str, *, momentum: float) -> None:
    if name not in NAMES:
        raise InvalidInput(f"optimiser must be one of {', '.join(NAMES)}, but got {name!r}.")
    if name == "adam" and momentum:
        raise InvalidInput(f'momentum must be 0 with optimiser = "adam", which has its own, but got {momentum}.')


def made(name: str, parameters: Iterable[nn.Parameter], *, learning_rate: float, momentum: float) -> optim.Optimizer:
    """torch's optimiser, without weight decay."""
    from torch import optim

    if name == "adam":
        return optim.Adam(parameters, lr=learning_rate)
    return optim.SGD(parameters, lr=learning_rate, momentum=momentum)
