"""Where the training of a network starts: at random, at one point for all models, at saved or at pretrained weights.

A known start is the worst case for black-box adversaries: where it fits the other records already, their gradients are
small and that of the canary stands out (Annamalai and De Cristofaro 2024).
"""

from __future__ import annotations

import functools
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from epsgauge.data.files import located
from epsgauge.errors import InvalidInput
from epsgauge.references import is_reference, load, users_code

if TYPE_CHECKING:
    from torch import Tensor, nn

NAMES = ("random", "fixed", "pretrained")
SAVED = ".npz"
State = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Pretrained:
    """Weights, and the points that they were trained on."""

    state: State
    points: frozenset[int]

    def check_apart(self, x: Tensor, y: Tensor) -> None:
        """No point to be trained on shaped the start: what is seen of it must come from the training."""
        known = len(self.points & fingerprints(x, y))
        if known:
            raise InvalidInput(
                f"init_data must have no points that the game trains on, but it has {known} of them. Keep some points "
                "out of [data] for it."
            )


def check(init: Any, data: Any) -> None:
    """The settings, without reading what they name."""
    if not isinstance(init, str) or (init not in NAMES and not init.endswith(SAVED)):
        raise InvalidInput(
            f"init must be one of {', '.join(NAMES)}, or a file of weights that ends in {SAVED}, but got {init!r}. "
            "Save a state dict with np.savez(path, **{name: w.numpy() for name, w in model.state_dict().items()})."
        )
    if (data is not None) != (init == "pretrained"):
        raise InvalidInput(
            f'init = "pretrained" and init_data go together, but got init = {init!r}, init_data = {data!r}.'
        )
    if data is not None and not is_reference(data):
        raise InvalidInput(f'init_data must be a function that gives points as "module:attr", but got {data!r}.')


def points(reference: str) -> Any:
    """What the user's function gives."""
    function = load(reference, "init_data")
    if not callable(function):
        raise InvalidInput(
            f"init_data {reference} must be a function that gives points, but it is a {type(function).__name__}."
        )
    with users_code(f"init_data {reference}"):
        return function()


def fingerprints(x: Tensor, y: Tensor) -> frozenset[int]:
    """One number per point, equal where the points are."""
    rows = zip(x.cpu().numpy(), y.tolist(), strict=True)
    return frozenset(hash((row.tobytes(), label)) for row, label in rows)


def saved(path: str | os.PathLike[str]) -> State:
    """The weights in a file; never a pickle."""
    file = located(path, "init, the file of weights,")
    return _read(file, file.stat().st_mtime_ns)


@functools.lru_cache(maxsize=4)
def _read(file: Path, written: int) -> State:
    """`written`: when the file was, so that a new one is read again."""
    try:
        with np.load(file, allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except (OSError, ValueError, EOFError, AttributeError, zipfile.BadZipFile):
        raise InvalidInput(
            f"init must be a file of arrays as np.savez writes it, without pickles, but {file} is not."
        ) from None


def put(model: nn.Module, state: State, name: str) -> None:
    """Weights into a model that has the same names and shapes."""
    import torch

    wanted = {key: tuple(value.shape) for key, value in model.state_dict().items()}
    found = {key: value.shape for key, value in state.items()}
    wrong = next((key for key in (*wanted, *found) if wanted.get(key) != found.get(key)), None)
    if wrong is not None:
        has, needs = (str(shapes[wrong]) if wrong in shapes else "none" for shapes in (found, wanted))
        raise InvalidInput(
            f"init must have the weights of the model, but {wrong} has shape {has} in {name} and {needs} in the model. "
            "Save the state dict of a model that is built with the same settings."
        )
    model.load_state_dict({key: torch.from_numpy(np.asarray(value)) for key, value in state.items()})
