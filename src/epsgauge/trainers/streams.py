"""The random streams of one training: initialisation, batches and noise, each of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import torch


class Streams(NamedTuple):
    """Children of one seed: changing what one of them is used for leaves the others as they were."""

    initialisation: np.random.SeedSequence
    batches: np.random.SeedSequence
    noise: np.random.SeedSequence


def streams(seed: int) -> Streams:
    return Streams(*np.random.SeedSequence(seed).spawn(3))


def torch_seed(stream: np.random.SeedSequence) -> int:
    return int(stream.generate_state(1, np.uint64)[0])


@contextmanager
def torch_seeded(stream: np.random.SeedSequence, device: torch.device) -> Iterator[None]:
    """torch's global generators follow `stream` inside, and are what they were before outside.

    Layers draw their first weights from them, and dropout its masks.
    """
    import torch

    kept = {"devices": [device], "device_type": device.type} if device.type != "cpu" else {"devices": []}
    with torch.random.fork_rng(**kept):
        # torch.manual_seed formats a traceback at every call, for devices that are not there
        (torch.default_generator.manual_seed if device.type == "cpu" else torch.manual_seed)(torch_seed(stream))
        yield
