"""Callbacks for Lightning: a watch of the training, and the scores of canaries when it ends."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from epsgauge.errors import MissingExtra
from epsgauge.integrations.hooks import CanaryScores, Losses, attach
from epsgauge.trainers.watch import Watch

try:
    from lightning.pytorch import Callback
except ImportError:
    raise MissingExtra("these callbacks need Lightning. Install it with: pip install lightning") from None


class WatchCallback(Callback):  # type: ignore[misc]  # of a library that is not followed
    """Shows every step of a private training to `watch`: `Trainer(callbacks=[WatchCallback(watch)])`."""

    def __init__(self, watch: Watch | None, model: Any = None) -> None:
        self.watch, self.model = watch, model

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if self.watch is not None:
            for optimizer in trainer.optimizers:
                attach(optimizer, self.watch, self.model)


class CanaryScoresCallback(Callback):  # type: ignore[misc]  # of a library that is not followed
    """Writes the scores of canaries to `out` when the training ends; `losses` is given the LightningModule."""

    def __init__(self, ids: Sequence[str], losses: Losses, out: str | os.PathLike[str]) -> None:
        self.scores = CanaryScores(ids, losses, out)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.scores.write(pl_module)
