"""The ε that a training's own randomness would give, without added noise (Hyland and Tople 2019): an estimate.

Initial weights and batches vary with the seed. If weights were Gaussian around a mean that one record moves no further
than it did here, this is the ε of that Gaussian mechanism. Neither is known, so that no promise is made.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.adjacency import checked as checked_adjacency
from epsgauge.data.points import Points, as_points
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms.gaussian import Gaussian
from epsgauge.numbers import short
from epsgauge.probing.contents import weights
from epsgauge.references import users_code
from epsgauge.stats import checks
from epsgauge.stats.arrays import Floats, Ints
from epsgauge.stats.interval import Kind
from epsgauge.trainers.protocol import (
    Trainer,
    as_trainer,
    has_noise_switch,
    knows_size,
    seed_everything,
    without_noise,
)

ESTIMATE = (
    "An estimate, not a guarantee: it treats weights as Gaussian, and the farthest of the neighbours that were tried "
    "as the farthest of all. It was computed from the data, so it is private itself. Do not claim it."
)


@dataclass(frozen=True)
class Intrinsic:
    """How far one record moved the weights, how far seeds scatter them, and the ε of a Gaussian mechanism like that."""

    eps: float
    delta: float
    adjacency: Adjacency
    sensitivity: float  # the largest distance between two models of neighbours and one seed
    scatter: float  # standard deviation of a weight over seeds, all weights together
    n_weights: int
    n_seeds: int
    n_neighbours: int
    quiet: bool  # whether the trainer's noise was turned off
    promise: Kind = field(default="estimate", init=False)

    @property
    def sentence(self) -> str:
        at = f"at δ = {self.delta:g} ({self.adjacency})"
        if math.isinf(self.eps):
            return (
                f"Estimate: the training's own randomness gives nothing, ε = ∞ {at}: a record changes the weights, and "
                "the seed does not."
            )
        return f"Estimate: the training's own randomness would give ε = {short(self.eps)} {at}, without added noise."

    @property
    def lines(self) -> dict[str, str]:
        """Names and what is said, for people."""
        tried = f"the farthest of {self.n_neighbours} neighbours, with one seed each"
        over = f"per weight, over {self.n_seeds} seeds, {self.n_weights:,} weights"
        noise = "turned off" if self.quiet else "the trainer has none that could be turned off"
        return {
            "estimate": self.sentence,
            "one record": f"moves the weights by {short(self.sensitivity)} ({tried})",
            "seeds": f"scatter them by {short(self.scatter)} ({over})",
            "noise": noise,
            "beware": ESTIMATE,
        }

    def to_json(self) -> dict[str, Any]:
        return {"sentence": self.sentence, "beware": ESTIMATE, **asdict(self)}

    def __str__(self) -> str:
        return "\n".join(f"{name:<12}{said}" for name, said in self.lines.items())


def intrinsic(
    trainer: Any,
    data: Any,
    *,
    n_seeds: int = 20,
    n_neighbours: int = 20,
    adjacency: Adjacency = "substitute",
    delta: float = 1e-5,
    train_size: int | None = None,
    seed: int = 0,
) -> Intrinsic:
    """Train on one set with many seeds, and on neighbours of it with some of these; promises nothing.

    ε is exact for Gaussian noise (Balle and Wang 2018). The paper's √(2 log(1.25/δ)) · sensitivity/scatter is larger.
    """
    checks.whole("n_seeds", n_seeds, 2)
    checks.whole("n_neighbours", n_neighbours, 1)
    checks.whole("seed", seed, 0)
    wanted, d = checked_adjacency(adjacency), checks.one("delta", checks.delta(delta))
    if wanted == "label-only" or d == 0:
        raise InvalidInput(
            f'adjacency must be "substitute" or "add-remove" and delta above 0, but got "{wanted}" and {d:g}.'
        )
    made, points = as_trainer(trainer, type(trainer).__name__), as_points(data, "data")
    if not isinstance(made, Trainer):
        raise InvalidInput(
            f"this needs models whose weights can be compared, but {type(trainer).__name__} has no train(data, *, "
            "seed)."
        )
    n = len(points) - 1 if train_size is None else train_size
    checks.whole("train_size", n, 2)
    if n >= len(points):
        raise InvalidInput(f"train_size must be below the {len(points)} points of the data, but got {n}.")
    quiet = has_noise_switch(made)
    with users_code("the trainer without its noise"):
        still: Any = without_noise(made, "the trainer") if quiet else made
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(points))
    members, others = order[:n], order[n:]
    seeds = [int(s) >> 1 for s in np.random.SeedSequence([seed, 1]).generate_state(n_seeds, np.uint64)]
    own = np.stack([_trained(still, points, members, s, n) for s in seeds])
    if not np.array_equal(_trained(still, points, members, seeds[0], n), own[0]):
        raise InvalidInput(
            "two trainings with one seed must give the same weights, but these differ: some randomness is not seeded. "
            "Seed it from the seed that train gets."
        )
    moved = []
    for number in range(n_neighbours):
        near = _neighbour(members, others, wanted, rng)
        which = number % n_seeds
        moved.append(float(np.linalg.norm(_trained(still, points, near, seeds[which], n) - own[which])))
    sensitivity = max(moved)
    scatter = float(np.sqrt(np.mean(own.var(axis=0, ddof=1))))
    eps = 0.0 if sensitivity == 0 else math.inf if scatter == 0 else Gaussian(scatter / sensitivity).eps_at(d)
    return Intrinsic(eps, d, wanted, sensitivity, scatter, own.shape[1], n_seeds, n_neighbours, quiet)


def _neighbour(members: Ints, others: Ints, adjacency: Adjacency, rng: np.random.Generator) -> Ints:
    place = int(rng.integers(len(members)))
    if adjacency == "add-remove":
        return np.delete(members, place)
    near = members.copy()
    near[place] = rng.choice(others)
    return near


def _trained(trainer: Any, points: Points, members: Ints, seed: int, size: int) -> Floats:
    seed_everything(seed)
    more: dict[str, Any] = {"size": size} if knows_size(trainer) else {}
    with users_code("the trainer"):
        model = trainer.train(points.take(members), seed=seed, **more)
    found = weights(model)
    if not len(found) or not np.isfinite(found).all():
        what = "no arrays of real numbers" if not len(found) else "numbers that are not finite"
        raise InvalidInput(f"a model must hold its weights as arrays of finite real numbers, but it holds {what}.")
    return found
