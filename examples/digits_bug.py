"""DP-SGD with a bug: the noise does not grow with the clipping norm."""

from dataclasses import dataclass, replace

import epsgauge as eg
from epsgauge.trainers.dpsgd import DpSgd
from epsgauge.trainers.recipe import Recipe


@dataclass(frozen=True, kw_only=True)
class UnscaledNoise(DpSgd):
    """Its noise has the standard deviation noise_multiplier, which should be noise_multiplier * max_grad_norm."""

    def recipe(self, n: int) -> Recipe:
        right = super().recipe(n)
        return replace(right, noise_multiplier=right.noise_multiplier / self.max_grad_norm)

    def privacy(self, n: int) -> eg.DPSGD:
        """What the accountant is told, and so what is claimed."""
        right = super().recipe(n)
        return eg.DPSGD(sample_rate=right.sample_rate, noise_multiplier=right.noise_multiplier, steps=right.steps)
