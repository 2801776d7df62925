"""verify(run): whether a run directory holds what was written to it, and what its plan and seed say."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epsgauge.games.experiment import bits_of, pairs_of
from epsgauge.games.roles import Roles
from epsgauge.games.seeds import Branch, training_seed
from epsgauge.runner.fingerprint import fingerprint
from epsgauge.runner.store import Store
from epsgauge.runner.trouble import Damaged, unharmed
from epsgauge.runner.view import opened, stored_plan

# What no check of one directory can see.
UNSEEN = (
    "This finds accidents and edits. Somebody who knows how seals are made can forge a whole run: to rule that out, "
    "run its plan again elsewhere and compare."
)


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what is right about it, or what is wrong."""

    name: str
    intact: bool
    sentence: str


@dataclass(frozen=True)
class Verified:
    """What was found of a run directory."""

    path: Path
    checks: tuple[Check, ...]

    @property
    def intact(self) -> bool:
        return all(check.intact for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        checks = [{"name": c.name, "intact": c.intact, "sentence": c.sentence} for c in self.checks]
        return {"path": str(self.path), "intact": self.intact, "checks": checks, "unseen": UNSEEN}


def verify(path: str | os.PathLike[str]) -> Verified:
    """Read a run directory to the end, and compute again what its seed decides. No look at results: it shows none."""
    folder = Path(path)
    try:
        with opened(folder) as store:
            return Verified(folder, tuple(_checked(name, store, part) for name, part in _PARTS.items()))
    except Damaged as error:  # so that it cannot even be opened
        return Verified(folder, (Check("file", False, str(error)),))


def _checked(name: str, store: Store, part: Callable[[Store], str]) -> Check:
    try:
        with unharmed(store.file):
            return Check(name, True, part(store))
    except (Damaged, _Wrong) as error:
        return Check(name, False, str(error))


class _Wrong(Exception):
    """What is not as it should be, in a sentence."""


def _file(store: Store) -> str:
    found = store.faults()
    if found:
        raise _Wrong(f"SQLite finds the file damaged: {found[0]}.")
    return "SQLite finds the file undamaged."


def _seals(store: Store) -> str:
    n = store.n_sealed()
    if n is None:
        return "The store is of an earlier version, whose rows have no seals. They get them when the run is resumed."
    return f"Every one of {n} rows is what was written, and none is missing."


def _plan(store: Store) -> str:
    plan, held = stored_plan(store), str(store.get("fingerprint"))
    if fingerprint(plan, str(store.get("digest"))) != held:
        raise _Wrong("The plan is not the one that the run was begun with: its fingerprint is another one.")
    if any(d.content.get("fingerprint", held) != held for d in store.declarations()):
        raise _Wrong("What was declared is of another run: its fingerprint is another one.")
    return "The plan is the one that the run was begun with, and what was declared is about this run."


def _models(store: Store) -> str:
    plan, arrays, dealt = stored_plan(store), store.arrays(), 0
    roles, game = Roles.from_arrays(arrays) if arrays else None, plan.game
    for index, seed, bits, pairs in store.dealt(game):
        if roles is None or index >= plan.n_models:
            raise _Wrong(f"There is a model {index}, which the plan does not have.")
        _compare(f"The seed of model {index}", seed, training_seed(plan.seed, Branch.audited, index))
        _compare(f"The bits of model {index}", bits, bits_of(game, plan.seed, index))
        _compare(f"The pairs of model {index}", pairs, pairs_of(game, roles, plan.seed, index))
        dealt += 1
    return f"The plan's seed gives the same bits, pairs and training seeds for all {dealt} models."


def _apart(store: Store) -> str:
    """Their pairs may be of canaries that were not taken, which the store has not kept."""
    plan, branch, rankings = stored_plan(store), Branch.rehearsal, store.rankings()
    dealt = len(rankings)
    for number, seed, bits, _ in store.dealt(plan.game, rehearsal=True):
        _compare(f"The seed of model {number}", seed, training_seed(plan.seed, branch, number))
        _compare(f"The bits of model {number}", bits, bits_of(plan.game, plan.seed, number, branch))
        dealt += 1
    for r in rankings:
        expected = training_seed(plan.points_seed, Branch.ranking, r.index)
        _compare(f"The seed of ranking model {r.index}", r.seed, expected)
    return f"The same holds for {dealt} models that were set apart." if dealt else "No models were set apart."


def _compare(what: str, held: Any, expected: Any) -> None:
    if not np.array_equal(held, expected):
        raise _Wrong(f"{what}: the plan's seed gives others.")


_PARTS: dict[str, Callable[[Store], str]] = {
    "file": _file,
    "seals": _seals,
    "plan": _plan,
    "models": _models,
    "set apart": _apart,
}
