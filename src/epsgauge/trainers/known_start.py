"""A start that the adversary knows: all models of a run begin with the same weights, whatever their seeds.

DP holds for every start that does not depend on the data, and an adversary may know it. A trainer that has a setting
`init` is asked for a fixed start. Elsewhere the functions of `torch.nn.init`, which layers call for their first
weights, draw from a seed of their own while a model is trained. Noise and batches keep theirs.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epsgauge.trainers.protocol import Observer, Trainer

# The seed of all known starts.
SEED = 0


def with_known_start(trainer: Trainer | Observer) -> Trainer | Observer:
    """The trainer with a fixed start, where it has such a setting and leaves it to chance; else the trainer itself."""
    if dataclasses.is_dataclass(trainer) and getattr(trainer, "init", None) == "random":
        return dataclasses.replace(trainer, init="fixed")
    return trainer


@contextmanager
def knowing_start() -> Iterator[None]:
    """Inside, layers of torch draw the same first weights every time; nothing where torch is not loaded."""
    if "torch" not in sys.modules:
        yield
        return
    from unittest.mock import patch

    from torch.nn import init

    numbers = itertools.count()
    with ExitStack() as stack:
        for name, function in vars(init).items():
            if callable(function) and name.endswith("_") and not name.startswith("_"):
                stack.enter_context(patch.object(init, name, _from_own_seed(function, numbers)))
        yield


def _from_own_seed(function: Callable[..., Any], numbers: Iterator[int]) -> Callable[..., Any]:
    import torch

    @functools.wraps(function)
    def drawn(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("generator") is not None:
            return function(*args, **kwargs)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(SEED + next(numbers))
            return function(*args, **kwargs)

    return drawn
