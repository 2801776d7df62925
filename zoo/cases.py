"""All pipelines of the zoo: those with a bug, and their repaired twins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import epsgauge as eg
from epsgauge.mechanisms.accounting import accountant_eps
from zoo import (
    network,
    opacus_loops,
    small,
    strangers,
    strangers_models,
    strangers_right,
    strangers_steps,
    strangers_torch,
)

TRAIN_SIZE = 250
DELTA = 1e-5
STRANGER = "stranger: "


@dataclass(frozen=True)
class Case:
    """A trainer, the neighbours of its claim, and the ε that is claimed where it is not the accountant's."""

    trainer: type[Any]
    data: str
    bug: bool
    adjacency: Literal["substitute", "add-remove"] = "substitute"
    claimed_eps: float | None = None
    said: str | None = None
    train_size: int = TRAIN_SIZE

    @property
    def use(self) -> str:
        return f"{self.trainer.__module__}:{self.trainer.__name__}"

    @property
    def meaning(self) -> str:
        return self.said or self.trainer.__doc__ or ""


def _cases(module: Any, prefix: str = "") -> dict[str, Case]:
    size, adjacency = getattr(module, "TRAIN_SIZE", TRAIN_SIZE), getattr(module, "ADJACENCY", "substitute")
    return {
        prefix + name: Case(
            trainer,
            f"{module.__name__}:{getattr(trainer, 'source', 'data')}",
            bug=name in module.BUGS,
            adjacency=getattr(trainer, "adjacency", adjacency),
            train_size=size,
        )
        for name, trainer in {**module.BUGS, **module.TWINS}.items()
    }


def _of_other_neighbours() -> float:
    privacy: eg.DPSGD = network.Correct().privacy(TRAIN_SIZE)
    return round(accountant_eps(privacy, delta=DELTA, adjacency="add-remove") or 0.0, 3)


CASES = {**_cases(network), **_cases(opacus_loops), **_cases(small)}
for module in (strangers, strangers_steps, strangers_torch, strangers_right, strangers_models):
    CASES |= _cases(module, STRANGER)
CASES["steps from the data"] = Case(network.SizeOfData, "zoo.network:data", bug=True, adjacency="add-remove")
CASES["all at once, batch clipped"] = Case(network.ClipsAllAtOnce, "zoo.network:data", bug=True, adjacency="add-remove")
CASES["nine, one added or removed"] = replace(
    CASES["nine"], adjacency="add-remove", said="nine parameters, with neighbours that add or remove a record"
)
for name, trainer, bug in (
    ("nine: rate from the data", small.RateOfData, True),
    ("nine: microbatches", small.Microbatches, True),
    ("nine: microbatches of one", small.MicrobatchesOfOne, False),
):
    CASES[name] = replace(CASES["nine"], trainer=trainer, bug=bug, adjacency="add-remove")
# Bugs that a probe does not see, and why.
KNOWN_MISSES = {
    "stranger: uniform noise": "the noise has the stated deviation, and only its distribution is wrong",
    "stranger: Laplace noise": "the noise has the stated deviation, and only its distribution is wrong",
}
CASES["claim of other neighbours"] = Case(
    network.Correct,
    "zoo.network:data",
    bug=True,
    claimed_eps=_of_other_neighbours(),
    said="the accountant's ε for adding or removing a record is claimed for replacing one",
)
