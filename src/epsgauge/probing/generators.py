"""The states of random generators: if two trainings differ in one, they drew other numbers."""

from __future__ import annotations

import hashlib
import pickle
import random
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from types import FrameType
from typing import Any

import numpy as np

# Values of a frame, of an object and of a container that are searched for generators.
MOST = 64
# A frame, an object, and a container in it.
DEEPEST = 3
END = "epsgauge.probing.pipeline"


def state(generators: Sequence[Any]) -> bytes:
    """Of the global ones and of these."""
    _, keys, *rest = np.random.get_state()  # noqa: NPY002  a user's code may use it
    _, own, kept_back = random.getstate()
    kept = [array("L", own).tobytes(), np.asarray(keys).tobytes(), repr((kept_back, rest)).encode()]
    if "torch" in sys.modules:
        kept.append(sys.modules["torch"].get_rng_state().numpy().tobytes())
    kept += [_own(generator) for generator in generators]
    return hashlib.blake2b(b"".join(kept), digest_size=16).digest()


def held() -> list[Any]:
    """Those that the calling functions hold: in variables, attributes, lists and dicts."""
    kinds: tuple[type, ...] = (np.random.Generator, np.random.RandomState, random.Random)
    if "torch" in sys.modules:
        kinds = (*kinds, sys.modules["torch"].Generator)
    found: list[Any] = []
    seen: set[int] = set()
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") != END:
        found += _within(frame.f_locals.values(), kinds, seen, 1)
        frame = frame.f_back
    return found


def _within(things: Iterable[Any], kinds: tuple[type, ...], seen: set[int], depth: int) -> Iterator[Any]:
    for thing in islice(list(things), MOST):
        if isinstance(thing, str | bytes | int | float | np.ndarray | type) or thing is None or id(thing) in seen:
            continue
        seen.add(id(thing))
        if isinstance(thing, kinds):
            yield thing
        elif depth < DEEPEST:
            yield from _within(_parts(thing), kinds, seen, depth + 1)


def _parts(thing: Any) -> Iterable[Any]:
    """Of a container, or the attributes of an object that is neither a module nor a function."""
    if isinstance(thing, list | tuple):
        return thing
    try:
        own = thing if isinstance(thing, dict) else getattr(thing, "__dict__", None)
        return own.values() if isinstance(own, dict) and not hasattr(thing, "__name__") else ()
    except Exception:  # of an object that answers to every name, as a tracker's do
        return ()


def _own(generator: Any) -> bytes:
    if isinstance(generator, np.random.Generator):
        return pickle.dumps(generator.bit_generator.state)
    if isinstance(generator, np.random.RandomState):
        return pickle.dumps(generator.get_state(legacy=False))
    if isinstance(generator, random.Random):
        return pickle.dumps(generator.getstate())
    return bytes(generator.get_state().numpy().tobytes())
