"""All numbers and texts that a model holds, by the name under which they are found."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from epsgauge.stats.arrays import Floats
from epsgauge.trainers.watch import Watch

# No deeper, and no more items of a list: a model that holds a data set is known by its first points.
DEEPEST, LONGEST = 8, 10_000


def contents(model: Any) -> dict[str, bytes]:
    """Of modules of torch what `state_dict` has, of other objects their attributes, also in lists and closures.

    Names that begin with _ are left out: they are how a library works, and not what a model is.
    """
    return {name: _bytes(thing) for name, thing in _inside("model", model, 0, {})}


def weights(model: Any) -> Floats:
    """All real numbers that a model holds in arrays, as one list: what it has learned, if it has nothing else."""
    found = [thing for _, thing in _inside("model", model, 0, {}) if isinstance(thing, np.ndarray)]
    real = [thing.astype(np.float64).ravel() for thing in found if thing.dtype.kind == "f"]
    return np.concatenate(real) if real else np.empty(0)


def _bytes(thing: Any) -> bytes:
    if not isinstance(thing, np.ndarray):
        return repr(thing).encode()
    return thing.tobytes() if thing.dtype != object else repr(thing.tolist()).encode()


def _inside(name: str, thing: Any, depth: int, seen: dict[int, Any]) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, bool | numbers.Number | str | bytes | np.generic):
        yield name, thing
        return
    if isinstance(thing, Watch):  # what a probe itself brought along
        return
    if thing is None or id(thing) in seen or depth > DEEPEST or inspect.ismodule(thing) or inspect.isclass(thing):
        return
    seen[id(thing)] = thing  # kept, so that no other gets its id
    if getattr(thing, "is_meta", False):  # a tensor without numbers
        return
    if hasattr(thing, "detach") and hasattr(thing, "numpy"):
        thing = thing.detach().cpu()
    if hasattr(thing, "__array__"):  # of torch, JAX, pandas
        yield name, np.asarray(thing)
        return
    for key, part in _parts(thing):
        yield from _inside(f"{name}{key}", part, depth + 1, seen)


def _parts(thing: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(thing, Mapping):
        yield from ((f"[{key!r}]", part) for key, part in thing.items())
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from ((f"[{i}]", part) for i, part in zip(range(LONGEST), thing, strict=False))
    elif hasattr(thing, "state_dict") and hasattr(thing, "named_modules"):
        yield from ((f".{key}", part) for key, part in thing.state_dict().items())
        for path, module in thing.named_modules():
            own = {key: part for key, part in vars(module).items() if not key.startswith("_")}
            yield from ((f".{path}.{key}" if path else f".{key}", part) for key, part in own.items())
    elif type(thing).__module__.split(".")[0] in ("torch", "opacus"):  # an optimiser, a generator
        return
    elif inspect.isfunction(thing) or inspect.ismethod(thing):
        cells = zip(thing.__code__.co_freevars, getattr(thing, "__closure__", None) or (), strict=False)
        yield from ((f" uses {key}", _of(cell)) for key, cell in cells)
        if inspect.ismethod(thing):
            yield ".__self__", thing.__self__
    else:
        names = [*getattr(thing, "__dict__", ()), *getattr(type(thing), "__slots__", ())]
        yield from ((f".{key}", getattr(thing, key, None)) for key in names if not key.startswith("_"))


def _of(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet
        return None
