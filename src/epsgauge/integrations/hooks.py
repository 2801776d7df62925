"""What callbacks of training libraries share: the watch at their optimizer, and the scores of canaries in a file."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.files import replace
from epsgauge.trainers.watch import Watch

Losses = Callable[[Any], Sequence[float]]  # a model -> one loss per canary


def attach(optimizers: Any, watch: Watch, model: Any = None) -> None:
    """Let `watch` see the steps of an optimizer of Opacus, however training libraries have wrapped it.

    `model` is the one that `make_private` returned, which canaries that are records need.
    """
    found = optimizers
    while not hasattr(found, "attach_step_hook"):
        inner = getattr(found, "optimizer", None)
        if inner is None:
            raise InvalidInput(
                f"a watch needs an optimizer of Opacus, but got {type(optimizers).__name__}. Make the training private "
                "(PrivacyEngine.make_private) before it begins, or call watch(step, update, max_grad_norm=...)."
            )
        found = inner
    found.attach_step_hook(watch.of(model))


class CanaryScores:
    """The scores of canaries when a training ends, as a file with the columns id and score: the negative loss."""

    def __init__(self, ids: Sequence[str], losses: Losses, out: str | os.PathLike[str]) -> None:
        self.ids, self.losses, self.out = [str(name) for name in ids], losses, Path(out)
        if not self.out.parent.is_dir():  # before the training, and not after
            raise InvalidInput(f"the folder of the scores must exist, but got {str(self.out.parent)!r}. Make it first.")

    def write(self, model: Any) -> None:
        """Ask for the losses and write the file."""
        found = np.asarray(self.losses(model), dtype=float)
        if found.shape != (len(self.ids),):
            raise InvalidInput(
                f"losses(model) must give one number for each of {len(self.ids)} canaries, but gave an array of shape "
                f"{found.shape}."
            )
        text = io.StringIO()
        rows = csv.writer(text, lineterminator="\n")
        rows.writerow(["id", "score"])
        rows.writerows(zip(self.ids, (-found).tolist(), strict=True))
        replace(self.out, text.getvalue())
