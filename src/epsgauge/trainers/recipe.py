"""The constants of one DP-SGD training, all computed from the nominal number of points."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What an engine needs beside the model, the points and the random streams."""

    steps: int
    sample_rate: float
    batch_size: int  # expected; the divisor of every sum of gradients, however many points were drawn
    noise_multiplier: float
    max_grad_norm: float
    learning_rate: float
    momentum: float
    optimiser: str = "sgd"  # or "adam"; the stacked engine knows "sgd" alone
    physical_batch: int | None = None  # gradients that are held at once; the stacked engine has pieces of its own width
