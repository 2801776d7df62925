"""Points as tensors on the device of the training."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from epsgauge.errors import InvalidInput, MissingExtra
from epsgauge.trainers.points import labelled

if TYPE_CHECKING:
    import torch


def need_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingExtra(
            "this needs PyTorch. Install it with: pip install '.[torch]' in the folder of epsgauge"
        ) from None


def device_of(name: str) -> torch.device:
    """The device, if this machine has it."""
    need_torch()
    import torch

    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    there: dict[str, Callable[[], bool]] = {
        "cpu": lambda: True,
        "cuda": lambda: torch.cuda.is_available() and (device.index or 0) < torch.cuda.device_count(),
        "mps": torch.backends.mps.is_available,
    }
    if device.type not in there:
        raise InvalidInput(f'device must be "cpu", "cuda" or "mps", but got {name!r}.')
    if not there[device.type]():
        raise InvalidInput(f'device must be one that this machine has, but got {name!r}. "cpu" always works.')
    return device


def tensors(data: Any, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Features and labels. Real numbers become float32; whole ones stay so, as an embedding needs them."""
    import torch

    x, y = labelled(data)
    if x.dtype.kind not in "fiub" or y.dtype.kind not in "iub":
        raise InvalidInput(
            f"x must be numbers and y whole numbers, the classes from 0 up, but got {x.dtype} and {y.dtype}."
        )
    if len(y) and y.min() < 0:
        raise InvalidInput(f"y must be the classes from 0 up, but got {y.min()}.")
    x = x.astype(np.float32 if x.dtype.kind == "f" else np.int64)
    return torch.from_numpy(x).to(device), torch.from_numpy(y.astype(np.int64)).to(device)
