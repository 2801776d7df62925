"""What is watched for: gradient canaries, canaries that are records, and coordinates that records hardly use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.privacy import DPSGD, Privacy
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.trainers import evenness
from epsgauge.trainers.coordinates import Coordinates, flat
from epsgauge.trainers.ratio import Ratio
from epsgauge.trainers.watch import Watch

SeesOfTraining = Literal["model", "updates"]


class GradientCanaries(Watch):
    """Adds gradients of full norm, each in a coordinate of its own (Dirac): they need not be those of any record.

    At every step the watch itself draws which canaries take part. b = 1 adds +C; b = 0 adds −C in a game of
    substitution, and nothing in one of adding and removing.
    """

    def __init__(
        self,
        *,
        directions: Ints,
        bits: Ints,
        adjacency: Adjacency,
        privacy: DPSGD,
        sees: SeesOfTraining,
        seed: np.random.SeedSequence,
    ) -> None:
        self._directions, self._privacy, self._sees, self._seed = directions, privacy, sees, seed
        opposite = 0.0 if adjacency == "add-remove" else -1.0
        self._signs = np.where(bits == 1, 1.0, opposite)
        self._sides = np.array([1.0, opposite])  # of the gradients of z1 and z0
        self._squares = np.broadcast_to(self._sides**2, (len(bits), 2))
        super().__init__()

    def begin(self) -> None:
        super().begin()
        self._rng = np.random.default_rng(self._seed)
        self._ratio = Ratio(len(self._signs), self._privacy)
        self._steady = evenness.Steady()
        self._around: Coordinates | None = None
        self._start: Floats | float = 0.0
        self._end: Floats | None = None
        self._places: Coordinates | None = None

    def places(self, shapes: Sequence[tuple[int, ...]]) -> Coordinates:
        """Where the canaries are in arrays of these shapes."""
        if self._places is None:
            self._places = Coordinates(shapes, self._directions)
        return self._places

    def drawn(self) -> Floats:
        """What is added at the next step, in clipping norms, [m]."""
        return self._signs * (self._rng.random(len(self._signs)) < self._privacy.sample_rate)

    def saw(self, values: Floats) -> None:
        """A step of which these are the numbers at the canaries' places, in clipping norms."""
        self.n_steps += 1
        if self._sees == "updates":
            self._ratio.add(values[:, None] * self._sides, self._squares)

    def started(self, values: Floats) -> None:
        self._start = values

    def ended(self, values: Floats) -> None:
        self._end = values

    def start(self, parameters: Any) -> None:
        self.started(self._read(parameters))

    def end(self, parameters: Any) -> None:
        self.ended(self._read(parameters))

    def _read(self, parameters: Any) -> Floats:
        arrays = list(parameters) if isinstance(parameters, (list, tuple)) else [parameters]
        return self.places(_shapes(arrays)).read(arrays)

    def _see(
        self, arrays: list[Any], max_grad_norm: float, divisor: float, gradients: Sequence[Any] | None
    ) -> list[Any]:
        unit, places = max_grad_norm / divisor, self.places(_shapes(arrays))
        if self._around is None:
            shapes = _shapes(arrays)
            self._around = Coordinates(shapes, evenness.places(shapes, self._directions))
        self._steady.add(self._around.read(arrays) / unit)
        arrays = places.add(arrays, unit * self.drawn())
        self.saw(places.read(arrays) / unit)
        return arrays

    @property
    def noise(self) -> Floats | None:
        """What was seen of noise at canaries and elsewhere, in clipping norms; None before the first step."""
        return self._steady.deviation

    def _found(self) -> dict[str, Floats]:
        if self._sees == "updates":
            return dict(zip(("llr", "alignment"), self._ratio.totals(), strict=True))
        if self._end is None and self._live is not None:
            self.end(list(self._live))
        if self._end is None:
            raise InvalidInput(
                'an adversary with sees = "model" must be shown the last parameters, but was not. Call '
                "watch.end(parameters) when training is over, and watch.start(parameters) before it."
            )
        return {"displacement": self._start - self._end}  # gradients are subtracted


class NoiseSurvey(Watch):
    """Sees the deviation of updates in some parameters, in clipping norms, and changes nothing."""

    def begin(self) -> None:
        super().begin()
        self._steady = evenness.Steady()
        self._around: Coordinates | None = None

    @property
    def noise(self) -> Floats | None:
        return self._steady.deviation

    def _see(
        self, arrays: list[Any], max_grad_norm: float, divisor: float, gradients: Sequence[Any] | None
    ) -> list[Any]:
        if self._around is None:
            shapes = _shapes(arrays)
            self._around = Coordinates(shapes, evenness.places(shapes, np.arange(0)))
        self.n_steps += 1
        self._steady.add(self._around.read(arrays) * divisor / max_grad_norm)
        return arrays


class RecordCanaries(Watch):
    """Compares each update with the clipped gradients of z1 and z0 at the same parameters; adds nothing."""

    def __init__(self, *, records: Any, pairs: int, adjacency: Adjacency, privacy: Privacy | None) -> None:
        self.records = records  # all z1, then all z0 where there are any, as the data gives them
        self._m, self._privacy = pairs, privacy
        self.n_records = pairs * (1 if adjacency == "add-remove" else 2)
        super().__init__()

    def begin(self) -> None:
        super().begin()
        self._ratio = Ratio(self._m, self._privacy)

    def saw(self, products: Floats, squares: Floats) -> None:
        """⟨u, g⟩ and |g|² of each record, in units of C²."""
        self.n_steps += 1
        both = np.zeros((2, 2, self._m))  # products and squares of z1 and z0
        for numbers, given in zip(both, (products, squares), strict=True):
            numbers.ravel()[: len(given)] = given
        self._ratio.add(both[0].T, both[1].T)

    def _see(
        self, arrays: list[Any], max_grad_norm: float, divisor: float, gradients: Sequence[Any] | None
    ) -> list[Any]:
        update, given = flat(arrays) * (divisor / max_grad_norm), self._clipped(arrays, max_grad_norm, gradients)
        self.saw(np.array([update @ g for g in given]), np.array([g @ g for g in given]))
        return arrays

    def _clipped(self, arrays: list[Any], max_grad_norm: float, gradients: Sequence[Any] | None) -> list[Floats]:
        """The gradient of each record, clipped, in units of C."""
        if gradients is None or len(gradients) != self.n_records:
            got = "none" if gradients is None else len(gradients)
            raise InvalidInput(
                f"canaries that are records need the gradients of the {self.n_records} points of watch.records at each "
                f"step, but got {got}. Call watch(step, update, gradients=[...]), or "
                "optimizer.attach_step_hook(watch.of(model)) with Opacus."
            )
        size = sum(math.prod(shape) for shape in _shapes(arrays))
        given = [_clipped(flat(gradient) / max_grad_norm) for gradient in gradients]
        if any(len(g) != size for g in given):
            raise InvalidInput(
                f"a gradient of a record must have as many numbers as the update, {size}, but one has "
                f"{next(len(g) for g in given if len(g) != size)}."
            )
        return given

    def _found(self) -> dict[str, Floats]:
        return dict(zip(("llr", "alignment"), self._ratio.totals(), strict=True))


class Survey(Watch):
    """Adds up the squares of every coordinate, to find those that the records hardly use."""

    takes_units = True

    def begin(self) -> None:
        super().begin()
        self.squares: Floats = np.zeros(1)

    def _see(
        self, arrays: list[Any], max_grad_norm: float, divisor: float, gradients: Sequence[Any] | None
    ) -> list[Any]:
        self.n_steps += 1
        self.squares = self.squares + flat(arrays) ** 2
        return arrays

    def _found(self) -> dict[str, Floats]:
        return {"squares": self.squares}


def _shapes(arrays: Sequence[Any]) -> list[tuple[int, ...]]:
    return [tuple(array.shape) for array in arrays]


def _clipped(gradient: Floats) -> Floats:
    """To norm 1."""
    return gradient / max(1.0, math.sqrt(float(gradient @ gradient)))
