"""How a user's mechanism is called: with a generator or without one, one output at a time or many at once."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.references import users_code
from epsgauge.sampling.outputs import Outputs, Raised

TRIES = 20


@dataclass(frozen=True)
class Call:
    """A mechanism, and which of `rng` and `size` it takes beside the data."""

    function: Callable[..., Any]
    takes_rng: bool
    takes_size: bool

    @classmethod
    def of(cls, function: Any) -> Call:
        if not callable(function):
            raise InvalidInput(
                f"a mechanism must be a function of a data set, f(data) or f(data, rng), but got {function!r}."
            )
        try:
            names = inspect.signature(function).parameters
        except (ValueError, TypeError):  # of code that is not Python
            return cls(function, False, False)
        return cls(function, "rng" in names, "size" in names)

    @property
    def seeded(self) -> str:
        """What the seed of a game decides, in words."""
        if self.takes_rng:
            return "bits and noise are seeded: the mechanism draws from the generator that it is given"
        return (
            "bits are seeded, and noise where the mechanism draws from the global generators of NumPy or random; noise "
            "from elsewhere is not"
        )

    def draw(self, data: tuple[Any, Any], bits: Any, seed: np.random.SeedSequence) -> Outputs:
        """One output per bit, of `data[bit]`."""
        with _seeded(self.takes_rng, seed) as rng:
            given = {"rng": rng} if self.takes_rng else {}
            return self._at_once(data, bits, given) if self.takes_size else self._one_by_one(data, bits, given)

    def _at_once(self, data: tuple[Any, Any], bits: Any, given: dict[str, Any]) -> Outputs:
        parts = []
        for bit in (0, 1):
            n = int(np.sum(bits == bit))
            with users_code(f"the mechanism on d{bit}"):
                found = self.function(data[bit], size=n, **given) if n else []
            if np.ndim(found) == 0 or len(found) != n:
                got = "one value" if np.ndim(found) == 0 else f"{len(found)}"
                raise InvalidInput(
                    f"a mechanism that takes size must return as many outputs, but got {got} for size = {n}."
                )
            parts.append(Outputs.of(found))
        where = np.concatenate([np.flatnonzero(bits == bit) for bit in (0, 1)])
        back = np.empty(len(bits), np.int64)
        back[where] = np.arange(len(bits))
        return Outputs.joined(parts)[back]

    def _one_by_one(self, data: tuple[Any, Any], bits: Any, given: dict[str, Any]) -> Outputs:
        found, function = [], self.function
        for bit in bits:
            try:
                found.append(function(data[bit], **given))
            except Exception as error:  # whoever uses the mechanism sees that too
                found.append(Raised(type(error).__name__))
        return Outputs.of(found)

    def check(self, data: tuple[Any, Any], seed: np.random.SeedSequence) -> None:
        """Refuse a mechanism that does not return on one of the data sets, however often it is tried."""
        with _seeded(self.takes_rng, seed) as rng:
            given = {**({"rng": rng} if self.takes_rng else {}), **({"size": 1} if self.takes_size else {})}
            for bit in (0, 1):
                with users_code(f"the mechanism on d{bit}"):
                    self._tried(data[bit], given)

    def _tried(self, data: Any, given: dict[str, Any]) -> None:
        for left in reversed(range(TRIES)):
            try:
                self.function(data, **given)
                return
            except Exception:
                if not left:
                    raise


@contextmanager
def _seeded(own: bool, seed: np.random.SeedSequence) -> Iterator[np.random.Generator]:
    """A generator for the mechanism; without one the global generators are seeded, and then put back."""
    if own:
        yield np.random.default_rng(seed)
        return
    numpy_state, state = np.random.get_state(), random.getstate()  # noqa: NPY002 (what users' code draws from)
    np.random.seed(seed.generate_state(4))  # noqa: NPY002
    random.seed(int(seed.generate_state(1)[0]))
    try:
        yield np.random.default_rng(seed)
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(state)
