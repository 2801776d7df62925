"""The constants of a training without privacy: shuffled batches, mean gradients."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class PlainRecipe:
    """What `fit_many` needs to train as `sgd` does."""

    epochs: int
    batches: int  # of an epoch, as equal as can be; computed from the nominal number of points
    batch_size: int  # the largest of them
    learning_rate: float
    momentum: float

    @property
    def steps(self) -> int:
        return self.epochs * self.batches
