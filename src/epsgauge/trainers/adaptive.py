"""Records that the adversary chooses anew at each step: of some, the two that this step would tell apart best.

The adaptive poisoning of Nasr et al. 2021, "Adversary instantiation" (arXiv:2101.04535). There a record is crafted at
each step; here one of those is taken that canaries are made of. The choice rests on what was seen before the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.stats.arrays import Floats
from epsgauge.trainers.coordinates import added, flat
from epsgauge.trainers.ratio import Ratio
from epsgauge.trainers.watches import RecordCanaries

# Noise of no variance would divide by 0.
LEAST = 1e-12
# Of choices that tell as much but for this share, the first is taken: rounding does not decide between equals.
NEARLY = 1e-3


class AdaptiveRecords(RecordCanaries):
    """Adds the clipped gradient of the chosen z1 or z0 to the update, where it draws that this takes part."""

    def __init__(
        self,
        *,
        records: Any,
        choices: int,
        bit: int,
        adjacency: Adjacency,
        privacy: DPSGD,
        seed: np.random.SeedSequence,
    ) -> None:
        self._bit, self._rate, self._seed = bit, float(privacy.sample_rate), seed
        self._noise, self._both = max(float(privacy.noise_multiplier) ** 2, LEAST), adjacency != "add-remove"
        super().__init__(records=records, pairs=choices, adjacency=adjacency, privacy=privacy)

    def begin(self) -> None:
        super().begin()
        self._ratio = Ratio(1, self._privacy)
        self._rng = np.random.default_rng(self._seed)
        self._before: Floats | None = None  # the last update
        self._chosen: Floats = np.zeros(self.n_records)

    def _see(
        self, arrays: list[Any], max_grad_norm: float, divisor: float, gradients: Sequence[Any] | None
    ) -> list[Any]:
        self.n_steps += 1
        unit, given = max_grad_norm / divisor, np.stack(self._clipped(arrays, max_grad_norm, gradients))
        one, zero = self._choice(given)
        self._chosen[[one] if zero is None else [one, zero]] += 1
        pair = np.stack([given[one], np.zeros_like(given[one]) if zero is None else given[zero]])  # z1 and z0
        if self._rng.random() < self._rate:
            arrays = added(arrays, unit * pair[0 if self._bit else 1])
        self._before = flat(arrays) / unit
        self._ratio.add((pair @ self._before)[None], (pair**2).sum(axis=1)[None])
        return arrays

    def _choice(self, given: Floats) -> tuple[int, int | None]:
        """Which are z1 and z0: gradients that are far apart, in a direction that the last update did not use.

        Other records push every update in much the same direction. What the last one had there beyond noise counts as
        noise of this step. Before the first step nothing is known of it.
        """
        products = given @ given.T
        norms, along = np.diag(products), np.zeros(len(given)) if self._before is None else given @ self._before
        if not self._both:
            return self._best(norms, along), None
        apart = norms[:, None] + norms - 2 * products
        one, zero = divmod(self._best(apart, along[:, None] - along), len(given))
        return one, zero

    def _best(self, apart: Floats, along: Floats) -> int:
        """By squared distances, and differences of the products with the last update."""
        others = np.maximum(along**2 / np.maximum(apart, LEAST) - self._noise, 0.0)
        told = apart / (self._noise + others)
        return int(np.argmax(told >= (1 - NEARLY) * told.max()))

    def _found(self) -> dict[str, Floats]:
        return {**super()._found(), "chosen": self._chosen}
