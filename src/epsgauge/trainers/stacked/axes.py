"""How K models with B points each are one tensor.

Points with one dimension are columns, [K, F, B], so that long rows of B numbers are what is multiplied and reduced.
Images have their channels last, [K, B, H, W, C], so that patches are copied in long runs. Other points are [K, B, …].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


def by_point(x: Tensor) -> Tensor:
    """[K, B, …] with the dimensions of a point as its module has them: a view."""
    if x.ndim == 3:
        return x.mT
    return x.movedim(-1, 2) if x.ndim == 5 else x


def stacked(x: Tensor) -> Tensor:
    """The way back from `by_point`, in memory too."""
    if x.ndim == 3:
        return x.mT.contiguous()
    return x.movedim(2, -1).contiguous() if x.ndim == 5 else x.contiguous()


def split(x: Tensor, axis: int, sizes: Sequence[int]) -> Tensor:
    """One axis as several."""
    out: Tensor = x.unflatten(axis, tuple(sizes))  # type: ignore[no-untyped-call]
    return out
