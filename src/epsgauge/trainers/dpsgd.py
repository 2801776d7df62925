"""DP-SGD: Poisson batches, clipped gradients, Gaussian noise (Abadi et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.stats import checks
from epsgauge.stats.checks import positive
from epsgauge.trainers import opacus_engine
from epsgauge.trainers.network import Network
from epsgauge.trainers.recipe import Recipe
from epsgauge.trainers.streams import streams, torch_seed, torch_seeded
from epsgauge.trainers.watch import Watch

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True, kw_only=True)
class DpSgd(Network):
    """The noise is given by `noise_multiplier`, or by `target_eps` with `target_delta`.

    A target is that of add/remove adjacency, by Opacus' PRV accountant, as Opacus' own `make_private_with_epsilon`
    takes it. In a game of substitution the same training costs more.
    """

    noise_multiplier: float | None = None  # standard deviation of the noise over max_grad_norm; 0: clipping alone
    target_eps: float | None = None
    target_delta: float | None = None
    max_grad_norm: float = 1.0

    ENGINES: ClassVar[tuple[str, ...]] = ("auto", "stacked", "opacus")

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("max_grad_norm", self.max_grad_norm)
        if (self.noise_multiplier is None) == (self.target_eps is None):
            got = "neither" if self.target_eps is None else "both"
            raise InvalidInput(f"dpsgd needs either noise_multiplier or target_eps with target_delta, but got {got}.")
        if (self.target_eps is None) != (self.target_delta is None):
            raise InvalidInput(
                "target_eps and target_delta go together, but got "
                f"target_eps = {self.target_eps}, target_delta = {self.target_delta}."
            )
        if self.noise_multiplier is not None:
            checks.one("noise_multiplier", checks.eps(self.noise_multiplier, "noise_multiplier"))
        if self.target_eps is not None and self.target_delta is not None:
            positive("target_eps", self.target_eps)
            delta = checks.delta(self.target_delta, "target_delta")
            checks.within("target_delta", self.target_delta, "above 0", np.asarray(delta > 0))

    def train(self, data: Any, *, seed: int, size: int | None = None, watch: Watch | None = None) -> nn.Module:
        """Sampling rate, steps and noise come from `size`, so that they do not tell whether a point is left out."""
        x, y = self._tensors(data)
        n = self._nominal(x, size)
        if self.engine == "stacked":
            return self._alone(data, seed=seed, size=n, watch=watch)
        recipe = self.recipe(n)
        import torch

        start, batches, noise = streams(seed)
        with torch_seeded(start, x.device):
            model = self._started(x, y)
            opacus_engine.fit(
                model,
                x,
                y,
                recipe,
                batches=np.random.default_rng(batches),
                noise=torch.Generator(x.device).manual_seed(torch_seed(noise)),
                watch=watch,
                read=self._tensors,
            )
        return model.eval()

    def recipe(self, n: int) -> Recipe:
        """The constants of a training on nominally n points."""
        if self.batch_size > n:
            raise InvalidInput(
                f"batch_size must be at most the {n} points of a training set, but got {self.batch_size}."
            )
        rate, steps = self.batch_size / n, max(1, round(self.epochs * n / self.batch_size))
        noise = self.noise_multiplier
        if self.target_eps is not None and self.target_delta is not None:
            noise = opacus_engine.calibrated_noise(
                eps=self.target_eps, delta=self.target_delta, sample_rate=rate, steps=steps
            )
        return Recipe(
            steps=steps,
            sample_rate=rate,
            batch_size=self.batch_size,
            noise_multiplier=noise or 0.0,
            max_grad_norm=self.max_grad_norm,
            learning_rate=self.learning_rate,
            momentum=self.momentum,
            optimiser=self.optimiser,
            physical_batch=self.physical_batch,
        )

    def _constants(self, n: int) -> Recipe:
        return self.recipe(n)

    def privacy(self, n: int) -> DPSGD | None:
        recipe = self.recipe(n)
        if recipe.noise_multiplier == 0:
            return None
        return DPSGD(sample_rate=recipe.sample_rate, noise_multiplier=recipe.noise_multiplier, steps=recipe.steps)

    def without_noise(self) -> Self:
        """Batches and clipping as they are, no noise."""
        return replace(self, noise_multiplier=0.0, target_eps=None, target_delta=None)
