"""The settings of the study: who trains how, what the adversary sees, and how many models each m has."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import epsgauge as eg

HERE = Path(__file__).parent
DELTA, LEVEL = 1e-5, 0.90
N = 1000  # guesses of one estimate, as in the paper
FIT = 200  # models with m = 1 that choose the audit's threshold, and are not judged
RATE, STEPS = 0.1, 20  # of DP-SGD: a point is in a batch with probability 0.1
NOISE = {"dp4": 0.95, "dp10": 0.614}  # for ε near 4 and 10: add-remove at δ = 1e-5, as Opacus reports it
SIZES = (2000, 8000)  # n
# Models that are judged, for each m. With n = 2000 the standard error of TPR − FPR is about 0.01.
WITH_NOISE = {
    2000: {1: 5000, 10: 500, 100: 100, 250: 80, 1000: 80},
    8000: {1: 1000, 10: 200, 100: 80, 250: 80, 1000: 80},
}
WITHOUT = {
    2000: {1: 4000, 10: 500, 100: 100, 250: 40, 1000: 40},
    8000: {1: 1000, 10: 200, 100: 100, 250: 40, 1000: 40},  # nearly every guess is right
}


@dataclass(frozen=True)
class Setting:
    """All but m. Runs of two m differ in nothing else, and in their seeds."""

    privacy: str  # none, or a key of NOISE
    inserts: str  # record or gradient
    train_size: int  # n
    number: int  # that seeds come from

    @property
    def name(self) -> str:
        return f"{self.privacy}-{self.inserts}-n{self.train_size}"

    @property
    def attacks(self) -> tuple[str, ...]:
        """Without noise there are losses to see, with gradients there are updates, else both."""
        if self.privacy == "none":
            return ("difference",)
        return ("updates",) if self.inserts == "gradient" else ("updates", "difference")

    @property
    def judged(self) -> dict[int, int]:
        """How many models are judged, for each m."""
        return (WITHOUT if self.privacy == "none" else WITH_NOISE)[self.train_size]

    def plan(self, m: int) -> eg.Plan:
        game: dict[str, Any] = {"train_size": self.train_size, "pairs_per_model": m, "control_models": 0}
        game |= {"reference_size": 1, "points_seed": 0}
        if self.inserts == "record":
            game |= {"challenge": "explicit", "canaries": "canvas:odd", "pairs": "fresh"}
        else:
            game |= {"challenge": "average"}
        rule = {"fit_models": FIT} if m == 1 else {"rule": "given", "threshold": 0.0}
        return eg.Plan(
            name=f"{self.name}-m{m}",
            seed=10_000 * self.number + m,
            n_models=self.judged[m] + (FIT if m == 1 else 0),
            data={"use": "canvas:beside_blank", "columns": 8 if self.inserts == "record" else 16},
            trainer=self._trainer(),
            game=game,
            adversary={} if self.privacy == "none" else {"sees": "updates", "inserts": self.inserts},
            audit={"delta": DELTA, "level": LEVEL, "attack": self.attacks[0], **rule},
            folder=HERE,
        )

    def _trainer(self) -> dict[str, Any]:
        if self.privacy == "none":
            training = {"model": "canvas:network", "epochs": 3, "batch_size": 100, "learning_rate": 0.7}
            return {"use": "sgd", "engine": "stacked", **training}
        training = {"model": "logistic", "epochs": round(RATE * STEPS), "batch_size": round(RATE * self.train_size)}
        training |= {"learning_rate": 1.0, "noise_multiplier": NOISE[self.privacy], "max_grad_norm": 1.0}
        return {"use": "dpsgd", "engine": "stacked", **training}


SETTINGS = tuple(
    Setting(privacy, inserts, n, number)
    for number, (n, privacy, inserts) in enumerate(
        [
            *((n, privacy, "record") for n in SIZES for privacy in ("none", "dp10", "dp4")),
            *((SIZES[0], privacy, "gradient") for privacy in ("dp10", "dp4")),
        ],
        start=1,
    )
)
