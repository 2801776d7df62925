"""How a user's mechanism is called: with a generator or without one, one output at a time or many at once."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.references import users_code
from epsgauge.sampling.copies import copier, own
from epsgauge.sampling.neighbours import Pair
from epsgauge.sampling.outputs import Keys, Outputs, Raised
from epsgauge.stats.arrays import Ints

TRIES = 20
SEEDS = SIZE = 16  # of calls that are tried, and outputs of each
CALLS = 16  # into which the samples of one data set are split
SHUFFLES, FAR = 50, 10.0  # orders that are compared with the one that was drawn, and how many spreads it may be off
ORDER = 0x0DE5

Given = dict[str, Any]
Copiers = tuple[Callable[[], Any], Callable[[], Any]]


@dataclass(frozen=True)
class Call:
    """A mechanism, which of `rng` and `size` it takes beside the data, and whether its noise can be seeded."""

    function: Callable[..., Any]
    takes_rng: bool
    takes_size: bool
    repeats: bool = True  # the same seed gives the same outputs

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
        if self.repeats:
            return "bits and noise are seeded: with the same seed, the mechanism returned the same outputs"
        return f"bits are seeded, noise is not: with the same seed, the mechanism returned other outputs{self._so}"

    @property
    def cautions(self) -> tuple[str, ...]:
        if self.repeats or not self.takes_rng:
            return ()
        return (
            "The mechanism takes rng, but returned other outputs with the same rng: it draws noise from elsewhere or "
            f"keeps a state{self._so}. The bound holds only if it keeps none. Let it draw all noise from rng.",
        )

    @property
    def _so(self) -> str:
        return ", so it was called once per sample" if self.takes_size else ""

    def draw(self, data: Pair, bits: Ints, seed: np.random.SeedSequence) -> Outputs:
        """One output per bit, of `data[bit]`; each call has a copy of its own."""
        copies = copier(data[0]), copier(data[1])
        with _seeded(seed) as rng:
            given = self._given(rng)
            if not (self.takes_size and self.repeats):
                return self._one_by_one(copies, bits, given)
            order = np.random.default_rng(np.random.SeedSequence(seed.entropy, spawn_key=(ORDER,)))
            return self._at_once(copies, bits, given, order)

    def _given(self, rng: np.random.Generator) -> Given:
        return {"rng": rng} if self.takes_rng else {}

    def _at_once(self, data: Copiers, bits: Ints, given: Given, order: np.random.Generator) -> Outputs:
        """By several calls per data set in random order: which call it was does not say the bit."""
        part, parts, where = 2 * order.integers(0, CALLS, len(bits)) + bits, [], []
        for at in order.permutation(2 * CALLS):
            rows = np.flatnonzero(part == at)
            if len(rows):
                parts.append(self._many(data[at % 2](), at % 2, len(rows), given))
                where.append(rows)
        made, back = np.concatenate(where), np.empty(len(bits), np.int64)
        back[made] = np.arange(len(bits))
        return replace(Outputs.joined(parts)[back], order=made)

    def _many(self, data: Any, bit: int, n: int, given: Given) -> Outputs:
        with users_code(f"the mechanism on d{bit}"):
            found = self.function(data, size=n, **given)
        return Outputs.of(_counted(found, n))

    def _one_by_one(self, data: Copiers, bits: Ints, given: Given) -> Outputs:
        found, function = list[Any](), self.function
        given = {**given, "size": 1} if self.takes_size else given
        for bit in bits:
            try:
                one = function(data[bit](), **given)
            except (Exception, SystemExit) as error:  # whoever uses the mechanism sees that too
                found.append(Raised(type(error).__name__))
            else:
                found.append(own(_counted(one, 1)[0] if self.takes_size else one))
        return Outputs.of(found)

    def tried(self, pairs: Sequence[Pair], seed: np.random.SeedSequence) -> Call:
        """Refuse what cannot be played; and see whether the same seed gives the same outputs."""
        seeds, repeats = seed.spawn(SEEDS), list[bool]()
        for pair in pairs:
            for bit in (0, 1):
                _check_data(pair[bit], f"d{bit}")
                with users_code(f"the mechanism on d{bit}"):
                    self._returned(pair[bit], seed)
                repeats.append(self._repeated(pair[bit], bit, seeds))
        return replace(self, repeats=all(repeats))

    def _returned(self, data: Any, seed: np.random.SeedSequence) -> None:
        """Refuse a mechanism that does not return, however often it is tried."""
        with _seeded(seed) as rng:
            given = {**self._given(rng), **({"size": 1} if self.takes_size else {})}
            for left in reversed(range(TRIES)):
                try:
                    Outputs.of([self.function(own(data), **given)])
                    return
                except (Exception, SystemExit):
                    if not left:
                        raise

    def _repeated(self, data: Any, bit: int, seeds: Sequence[np.random.SeedSequence]) -> bool:
        """Whether two calls in a row with the same seed give the same; refuse outputs of a call that share noise."""
        first, second = (np.array(keys) for keys in zip(*(self._twice(data, bit, seed) for seed in seeds), strict=True))
        if self.takes_size and _alike(first):
            raise InvalidInput(
                "a mechanism that takes size must return independent outputs, but those of one call are equal far more "
                f"often than those of different calls on d{bit}: they share noise or a state. Draw noise for each "
                "output, such as rng.laplace(0, 1, size), or leave out size: then it is called once per sample."
            )
        return bool(np.array_equal(first, second))

    def _twice(self, data: Any, bit: int, seed: np.random.SeedSequence) -> tuple[Keys, Keys]:
        found = []
        for _ in range(2):
            with _seeded(seed) as rng:
                if self.takes_size:
                    outputs = self._many(own(data), bit, SIZE, self._given(rng))
                else:
                    outputs = self._one_by_one((copier(data),) * 2, np.array([bit]), self._given(rng))
            found.append(outputs.whole)
        return found[0], found[1]


def _check_data(data: Any, name: str) -> None:
    if isinstance(data, Iterator):
        raise InvalidInput(
            f"{name} must be data that every call can read anew, such as a list or an array, but got "
            f"an object of type {type(data).__name__}, which can be read only once. Use list({name})."
        )


def _counted(found: Any, n: int) -> Any:
    """What a mechanism that takes size returned, if these are so many outputs."""
    try:
        got = None if isinstance(found, str | bytes | Mapping | Set) else len(found)
    except TypeError:
        got = None
    if got != n:
        raise InvalidInput(
            "a mechanism that takes size must return as many outputs, but got "
            f"{'one value' if got is None else got} for size = {n}."
        )
    return found


def _alike(keys: Keys) -> bool:
    """Whether outputs of one call, a row, are equal much more often than they would be in any other order."""

    def equal(rows: Keys) -> int:
        return int(np.sum(rows[:, :, None] == rows[:, None, :]))

    rng = np.random.default_rng(0)
    shuffled = [equal(rng.permutation(keys.ravel()).reshape(keys.shape)) for _ in range(SHUFFLES)]
    return bool(equal(keys) - np.mean(shuffled) > FAR * max(float(np.std(shuffled)), 1.0))


@contextmanager
def _seeded(seed: np.random.SeedSequence) -> Iterator[np.random.Generator]:
    """A generator for the mechanism. The global generators are seeded too, and then put back."""
    numpy_state, state = np.random.get_state(), random.getstate()  # noqa: NPY002 (what users' code draws from)
    np.random.seed(seed.generate_state(4))  # noqa: NPY002
    random.seed(int(seed.generate_state(1)[0]))
    try:
        yield np.random.default_rng(seed)
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(state)
