"""Which stacked layer stands for which module, and what cannot be stacked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from epsgauge.trainers.stacked.convolution import Conv2d
from epsgauge.trainers.stacked.elementwise import Elementwise, elementwise
from epsgauge.trainers.stacked.images import pool
from epsgauge.trainers.stacked.layers import Layer, Trained
from epsgauge.trainers.stacked.linear import Linear
from epsgauge.trainers.stacked.norms import GroupNorm, LayerNorm
from epsgauge.trainers.stacked.sequences import Embedding, LinearAtEach
from epsgauge.trainers.stacked.shapes import Dropout, Flatten, Softmax

if TYPE_CHECKING:
    from torch import nn


class Unsupported(Exception):
    """Its text says what of a module cannot be stacked."""


def layers_of(module: nn.Module, rank: int) -> tuple[list[tuple[Layer, bool]], bool]:
    """Layers with whether they are trained, and whether points of `rank` dimensions are to be flattened first."""
    from torch import nn

    if rank < 1:
        raise Unsupported("a point is a single number")
    found: list[tuple[Layer, bool]] = []
    flat, seen = False, set[int]()
    for name, leaf in _leaves(module, ""):
        where = f"its layer {name or 'itself'} is a {type(leaf).__name__}"
        parameters = list(leaf.parameters())
        if any(id(p) in seen for p in parameters):
            raise Unsupported(f"its layer {name or 'itself'} shares parameters with another")
        seen.update(id(p) for p in parameters)
        trained = {p.requires_grad for p in parameters}
        if len(trained) == 2:
            raise Unsupported(f"{where} of which only a part is trained")
        if isinstance(leaf, nn.Identity):
            continue
        if not found and isinstance(leaf, nn.Flatten) and (leaf.start_dim, leaf.end_dim) == (1, -1):
            flat, rank = True, 1
            continue
        layer, rank = _layer(leaf, rank, where)
        found.append((layer, trained == {True}))
    layers = [None, *(x for x, _ in found), None]
    for below, here, above in zip(layers, layers[1:], layers[2:], strict=False):
        if isinstance(here, Elementwise):
            here.between(below, above)
    if rank != 1:
        raise Unsupported(f"its outputs have {rank} dimensions a point")
    if not any(trained and isinstance(layer, Trained) for layer, trained in found):
        raise Unsupported("it has no parameters to train")
    return found, flat


def _leaves(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    """The layers of a tree of nn.Sequential, in the order in which they are applied."""
    from torch import nn

    if module._forward_hooks or module._forward_pre_hooks or module._backward_hooks or module._backward_pre_hooks:
        raise Unsupported(f"its layer {name or 'itself'} has hooks")
    if type(module) is not nn.Sequential:
        yield name, module
        return
    for key, child in module._modules.items():  # named_children leaves out a layer that comes again
        assert child is not None
        yield from _leaves(child, f"{name}.{key}" if name else key)


def _layer(module: nn.Module, rank: int, where: str) -> tuple[Layer, int]:
    """The layer for points of `rank` dimensions, and how many dimensions its outputs have."""
    from torch import nn

    if not type(module).__module__.startswith("torch.nn.modules."):  # a subclass may do anything in its forward
        raise Unsupported(f"{where}, whose forward is not known")
    match module:
        case nn.Linear() if type(module) is nn.Linear:
            return (Linear(module) if rank == 1 else LinearAtEach(module)), rank
        case nn.Conv2d() if type(module) is nn.Conv2d and rank == 3:
            return Conv2d(module, _padding(module, where)), 3
        case nn.Embedding():
            if module.padding_idx is not None or module.max_norm is not None or module.scale_grad_by_freq:
                raise Unsupported(f"{where} with padding_idx, max_norm or scale_grad_by_freq")
            return Embedding(module), rank + 1
        case nn.GroupNorm():
            return GroupNorm(module), rank
        case nn.LayerNorm() if len(module.normalized_shape) <= rank:
            return LayerNorm(module), rank
        case nn.Flatten(start_dim=1, end_dim=-1):
            return Flatten(), 1
        case nn.Softmax(dim=int(d)) if _dimension(d, rank) is not None:
            return Softmax(d % (rank + 1) - 1, log=False), rank
        case nn.LogSoftmax(dim=int(d)) if _dimension(d, rank) is not None:
            return Softmax(d % (rank + 1) - 1, log=True), rank
        case nn.Dropout(p=p):
            return Dropout(p), rank
    layer = elementwise(module) or (pool(module) if rank == 3 else None)
    if layer is None:
        raise Unsupported(where)
    return layer, rank


def _dimension(d: int, rank: int) -> int | None:
    """The dimension of a point that dimension `d` of a batch is; None for that of the points itself."""
    place = d % (rank + 1) - 1 if -rank - 1 <= d <= rank else -1
    return place if place >= 0 else None


def _padding(module: nn.Conv2d, where: str) -> tuple[int, int]:
    """Rows and columns of zeros on each side."""
    if module.groups != 1 or module.padding_mode != "zeros":
        raise Unsupported(f"{where} with groups or padding that is not zeros")
    if module.padding == "valid":
        return 0, 0
    if module.padding == "same":
        both = [d * (k - 1) for d, k in zip(module.dilation, module.kernel_size, strict=True)]
        if any(n % 2 for n in both):
            raise Unsupported(f"{where} with padding that is not the same on both sides")
        return both[0] // 2, both[1] // 2
    return int(module.padding[0]), int(module.padding[1])
