"""Where a script's random numbers come from: seeds that it sets, and what it draws from the operating system."""

from __future__ import annotations

import functools
import gc
import hashlib
import operator
import os
import random
import sys
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epsgauge.scripts.frames import Place, calling
from epsgauge.trainers.protocol import seed_everything

# Seeds below it are chosen by people; others may be drawn, unless they stand in the script.
CHOSEN = 10**6
# Functions that seed the generator of a library, and what seeds are below.
_SEEDING = (("torch", "manual_seed", 2**63), ("numpy.random", "seed", 2**32), ("random", "seed", 2**63))


@dataclass(frozen=True)
class Seeding:
    """A call that seeded the generator of a library."""

    value: int
    place: Place

    @property
    def said(self) -> str:
        """What follows if it seeds the noise, and what to do."""
        call, by_trainer = self.place.call, self.place.call == "Trainer"
        made = f"{call} with seed {self.value}" if call[0].isupper() else f"{call}({self.value})"
        own = "another TrainingArguments(seed=...)" if by_trainer else "another one"
        return (
            f"{made}, {self.place}, makes the noise the same in every training: anyone who knows the seed can compute "
            f"and subtract it. Pass {own} each time, or call torch.seed() just before the training."
        )


@dataclass(eq=False)
class Randomness:
    """Follows the seeds of a script, and gives it a stream in place of what the operating system draws.

    In a child the stream is another one, so that each training of a script that is not seeded has its own numbers, and
    has them again if it is repeated.
    """

    text: str  # of the script and its arguments
    seedings: dict[str, Seeding] = field(default_factory=dict)  # the last one of each library
    _stream: int = 0
    _count: int = 0
    _entropy: set[int] = field(default_factory=set)  # by which generators that are not seeded are known again
    _unseeded: weakref.WeakSet[random.Random] = field(default_factory=weakref.WeakSet)
    _found: list[Any] = field(default_factory=list)

    def install(self) -> None:
        """Before the script begins."""
        os.urandom = random._urandom = self._bytes  # type: ignore[attr-defined]  # of NumPy and secrets, too
        seed, unseeded = random.Random.seed, self._unseeded

        @functools.wraps(seed)
        def seeded(generator: random.Random, a: Any = None, version: int = 2) -> None:
            (unseeded.add if a is None else unseeded.discard)(generator)
            seed(generator, int.from_bytes(self._bytes(16)) if a is None else a, version)

        random.Random.seed = seeded  # type: ignore[method-assign, assignment]
        for name, function, _ in _SEEDING:
            if module := sys.modules.get(name):
                setattr(module, function, self._noted(name, getattr(module, function)))
        torch: Any = sys.modules.get("torch")
        if torch is not None:
            torch.seed = torch.random.seed = self._drawn

    def hold(self) -> None:
        """Before children are made: search for generators that the script has made and not seeded."""
        self._found = [*self._unseeded, *self._search()]

    def begin(self, seed: int) -> None:
        """In a child: all numbers from here on depend on this seed, whatever the script seeds."""
        seed_everything(seed)
        self._restart(seed)
        for name, function, most in _SEEDING:
            if module := sys.modules.get(name):
                setattr(module, function, self._depending_on(seed, getattr(module, function), most))

    def begin_again(self, seed: int) -> None:
        """In a child: as if the script had been started at another time, with the seeds that it chooses."""
        self._restart(seed)
        for name, function, most in _SEEDING:
            if name not in self.chosen and (module := sys.modules.get(name)):
                getattr(module, function)(seed % most)

    @property
    def chosen(self) -> dict[str, Seeding]:
        """The seedings that are the same whenever the script is started."""
        known = {name: s for name, s in self.seedings.items() if s.value < CHOSEN or str(s.value) in self.text}
        return {name: known[name] for name, _, _ in _SEEDING if name in known}

    def _bytes(self, n: int) -> bytes:
        self._count += 1
        found = hashlib.shake_256(f"{self._stream} {self._count}".encode()).digest(n)
        self._entropy.add(int.from_bytes(found))
        return found

    def _drawn(self) -> int:
        """In place of `torch.seed`."""
        value = int.from_bytes(self._bytes(8)) >> 1
        sys.modules["torch"].default_generator.manual_seed(value)
        self.seedings.pop("torch", None)
        return value

    def _noted(self, library: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def noted(*args: Any, **named: Any) -> Any:
            value: Any = next(iter((*args, *named.values())), None)
            place = calling(f"{library}.{function.__name__}")
            if place is not None:  # not by us
                self.seedings.pop(library, None)
                if hasattr(value, "__index__"):
                    self.seedings[library] = Seeding(operator.index(value), place)
            return function(*args, **named)

        return noted

    def _depending_on(self, seed: int, function: Callable[..., Any], most: int) -> Callable[..., Any]:
        """Else all trainings would draw the same noise."""

        @functools.wraps(function)
        def seeded(own: Any = None, *more: Any, **named: Any) -> Any:
            if own is None:
                number = int.from_bytes(self._bytes(8))
            elif hasattr(own, "__index__"):
                number = operator.index(own) + seed
            else:
                number = int.from_bytes(hashlib.sha256(f"{own!r} {seed}".encode()).digest()[:8])
            return function(number % most, *more, **named)

        return seeded

    def _restart(self, seed: int) -> None:
        """Another stream, and other numbers for generators that the script has not seeded."""
        torch = sys.modules.get("torch")
        for generator in self._found:
            if isinstance(generator, random.Random):
                generator.seed(f"{seed} {generator.getstate()}")
            elif isinstance(generator, np.random.BitGenerator):
                own = generator.seed_seq
                words = np.random.SeedSequence([seed, own.entropy, *own.spawn_key])  # type: ignore[attr-defined]
                generator.state = type(generator)(words).state
            elif torch is not None:
                generator.manual_seed((generator.initial_seed() + seed) % 2**63)
        self._stream, self._count = seed, 0

    def _search(self) -> Iterator[Any]:
        """Generators of NumPy and torch."""
        torch, seen = sys.modules.get("torch"), set[int]()
        for thing in gc.get_objects():
            kind = type(thing)  # some objects do not like to be asked for their class
            if issubclass(kind, np.random.Generator):
                bits = thing.bit_generator
            elif issubclass(kind, np.random.RandomState):
                bits = thing._bit_generator
            else:
                if torch is not None and issubclass(kind, torch._C.Generator) and getattr(thing, "drawn", False):
                    yield thing
                continue
            if id(bits) not in seen and getattr(bits.seed_seq, "entropy", None) in self._entropy:
                seen.add(id(bits))
                yield bits
