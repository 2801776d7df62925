"""PATE with two bugs that PATE-GAN codes shipped, and without: who is refuted by membership.

    python -m zoo.pate [--models 200]

Ganev, Annamalai and De Cristofaro 2024, "The Elusive Pursuit of Reproducing PATE-GAN" (arXiv:2406.13985), found them in
pate_gan.py of vanderschaarlab/mlforhealthlabpub. Here teachers label digits, as in PATE itself. Exits with 1 if a bug
is missed or the repaired twin is refuted.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import epsgauge as eg
from epsgauge.data.digits import private_digits
from epsgauge.numbers import at_least
from epsgauge.runner.executors import InProcess
from epsgauge.trainers.pate import Pate

TEACHERS, EACH = 21, 5  # teachers, and records of each
QUERIES = 50
CLOSE = 10  # the seed of a base whose other teachers are divided, 10 to 10, at that place: the adversary knows the base
PLACE = 8.0  # of the pixels that no digit uses


class Nearest:
    """The label of the nearest record; of several that are equally near, the share of each."""

    def fit(self, x: Any, y: Any) -> Nearest:
        self.x, self.y, self.classes_ = x, y, np.unique(y)
        return self

    def predict_proba(self, x: Any) -> Any:
        distance = ((x[:, None].astype(np.float64) - self.x) ** 2).sum(axis=2)
        near = distance <= distance.min(axis=1, keepdims=True) + 1e-9
        votes = near.astype(np.float64) @ (self.y[:, None] == self.classes_)
        return votes / votes.sum(axis=1, keepdims=True)

    def predict(self, x: Any) -> Any:
        return self.classes_[np.argmax(self.predict_proba(x), axis=1)]


def data() -> Any:
    """The private digits, and whether they are odd."""
    x, y = private_digits()
    return x, y % 2


def _place() -> Any:
    return np.where(data()[0].max(axis=0) == 0, np.float32(PLACE), np.float32(0.0))[None]


def canaries(given: Any) -> Any:
    """An image of pixels that no digit uses, even or odd."""
    return (_place(), np.array([0])), (_place(), np.array([1]))


def queries() -> Any:
    """The adversary chooses the public data: the same image, again and again. A claim of PATE holds for any of them."""
    return np.repeat(_place(), QUERIES, axis=0)


@dataclass(frozen=True, kw_only=True)
class Correct(Pate):
    """PATE as it should be: disjoint parts, Laplace noise of scale 1/γ, and the accountant's γ"""

    estimator: str = "zoo.pate:Nearest"
    public: str = "zoo.pate:queries"
    n_classes: int = 2
    n_teachers: int = TEACHERS
    n_queries: int = QUERIES
    noise: Any = "laplace"
    scale: float = 40.0


@dataclass(frozen=True, kw_only=True)
class OnePart(Correct):
    """every teacher is trained on the last part: the loop over teachers takes the index that an earlier loop left"""

    def parts(self, x: Any, y: Any) -> Sequence[Any]:
        whose = super().parts(x, y)
        return [whose[-1]] * len(whose)


@dataclass(frozen=True, kw_only=True)
class ScaleForInverse(Correct):
    """the noise has scale γ, and is accounted for as if it had 1/γ"""

    def answers(self, votes: Any, *, seed: int) -> Any:
        rng = np.random.default_rng([seed, 1])
        return np.argmax(votes + rng.laplace(0.0, 1.0 / self.scale, votes.shape), axis=1)


CASES: dict[str, type[Correct]] = {
    "one part for all teachers": OnePart,
    "scale for its inverse": ScaleForInverse,
    "correct": Correct,
}


def audited(name: str, n_models: int) -> eg.Audit:
    plan = eg.Plan(
        name=name,
        n_models=n_models,
        data={"use": "zoo.pate:data"},
        trainer={"use": f"zoo.pate:{CASES[name].__name__}"},
        game={
            "train_size": TEACHERS * EACH,
            "reference_size": 5,
            "challenge": "explicit",
            "canaries": "zoo.pate:canaries",
            "control_models": 0,
            "points_seed": CLOSE,
        },
        audit={"attack": "difference", "delta": 1e-5},
        probe=False,
    )
    with tempfile.TemporaryDirectory() as folder:
        return eg.audit(eg.run(plan, out=Path(folder) / "run", executor=InProcess()))


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m zoo.pate", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--models", type=int, default=200)
    n_models = parser.parse_args(argv).models
    wrong = 0
    for name, trainer in CASES.items():
        start = time.perf_counter()
        verdict = audited(name, n_models).verdict
        wrong += (verdict.kind == "violation") == (trainer is Correct)
        said = f"ε ≥ {at_least(verdict.bound.value)} ({verdict.promise}), claimed {verdict.claim.eps_text}"
        print(f"{name:28} {verdict.kind:12} {said}   {time.perf_counter() - start:.1f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
