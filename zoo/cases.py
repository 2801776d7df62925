"""All pipelines of the zoo: those with a bug, and their repaired twins."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import epsgauge as eg
from epsgauge.mechanisms.accounting import accountant_eps
from zoo import kinds, network, opacus_loops, small

TRAIN_SIZE = 250
DELTA = 1e-5


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


def _cases(module: Any) -> dict[str, Case]:
    every = {**module.BUGS, **module.TWINS}
    size = getattr(module, "TRAIN_SIZE", TRAIN_SIZE)
    of_data = f"{module.__name__}:data"
    return {name: Case(t, of_data, bug=name in module.BUGS, train_size=size) for name, t in every.items()}


def _of_other_neighbours() -> float:
    privacy: eg.DPSGD = network.Correct().privacy(TRAIN_SIZE)
    return round(accountant_eps(privacy, delta=DELTA, adjacency="add-remove") or 0.0, 3)


CASES = {**_cases(network), **_cases(opacus_loops), **_cases(small), **_cases(kinds)}
CASES |= {name: Case(t, "zoo.network:data", bug=bug) for name, (t, bug) in kinds.OF_NETWORK.items()}
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
CASES["claim of other neighbours"] = Case(
    network.Correct,
    "zoo.network:data",
    bug=True,
    claimed_eps=_of_other_neighbours(),
    said="the accountant's ε for adding or removing a record is claimed for replacing one",
)
