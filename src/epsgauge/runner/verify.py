"""verify(run): whether a run directory holds what was written to it, and what its plan and seed say."""

from __future__ import annotations

import math
import os
import random
import re
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.games.experiment import bits_of, pairs_of
from epsgauge.games.ranking import members_of
from epsgauge.games.rehearsal import canary_of
from epsgauge.games.seeds import Branch, training_seed
from epsgauge.games.signals import Signals
from epsgauge.runner import play
from epsgauge.runner.choosing import Choice
from epsgauge.runner.crew import Cluster
from epsgauge.runner.fingerprint import fingerprint
from epsgauge.runner.plan import Plan
from epsgauge.runner.replay import replay as replay_models
from epsgauge.runner.store import Store
from epsgauge.runner.trouble import Damaged, unharmed
from epsgauge.runner.view import opened, stored_plan, stored_roles, taken_canary
from epsgauge.stats.checks import whole

# What no check of one directory can see.
UNSEEN = (
    "Seals find accidents and edits by hand, not forgery: anyone who knows how they are computed can write a false "
    "store. A digest published before the audit cannot be forged: check it with --digest."
)
UNSEEN_BY_REPLAY = (
    "Models that were not trained again could still be forged by anyone who knows how seals are computed, unless the "
    "digest was published before the audit."
)
NOTHING_UNSEEN = "The run is as it was when its digest was published."

_ROUNDING = 1e-6  # a share, by which another machine may compute strengths of canaries differently


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: what is right about it, or what is wrong."""

    name: str
    intact: bool
    sentence: str
    remedy: str = Damaged.remedy


@dataclass(frozen=True)
class Verified:
    """What was found of a run directory."""

    path: Path
    checks: tuple[Check, ...]
    digest: str | None = None  # of the run; None if it cannot be read

    @property
    def intact(self) -> bool:
        return all(check.intact for check in self.checks)

    @property
    def remedy(self) -> str:
        """What to do about the first thing that is wrong."""
        return next((check.remedy for check in self.checks if not check.intact), "")

    @property
    def unseen(self) -> str:
        if any(check.name == "digest" for check in self.checks):
            return NOTHING_UNSEEN if self.intact else ""
        return UNSEEN_BY_REPLAY if any(check.name == "replay" for check in self.checks) else UNSEEN

    def to_json(self) -> dict[str, Any]:
        checks = [{"name": c.name, "intact": c.intact, "sentence": c.sentence} for c in self.checks]
        found = {"path": str(self.path), "intact": self.intact, "digest": self.digest}
        return {**found, "checks": checks, "unseen": self.unseen}


def verify(
    path: str | os.PathLike[str],
    *,
    plan: Plan | None = None,
    replay: int = 3,
    executor: Executor | Cluster | None = None,
    digest: str | None = None,
) -> Verified:
    """Read a run directory to the end, and compute again what its seed decides. No look at results: it shows none.

    With its plan, some models are trained again and compared bit for bit: `replay` of those that are judged and as many
    of those set apart, drawn at random. `digest` is the one that was published of the run.
    """
    whole("replay", replay, 1)
    if digest is not None and not re.fullmatch("[0-9a-fA-F]{64}", digest):
        raise InvalidInput(
            f"digest must be the 64 hexadecimal digits that `epsgauge run` printed, but got {digest!r}. `epsgauge "
            "status RUN` prints them too."
        )
    folder = Path(path)
    try:
        with opened(folder) as store:
            checks = [_checked(name, store, part) for name, part in _PARTS.items()]
            if plan is not None and all(check.intact for check in checks):
                checks.append(_replayed(store, folder, plan, replay, executor))
            held = store.digest()
            if digest is not None:
                checks.append(_published(held, digest.lower()))
            return Verified(folder, tuple(checks), held)
    except Damaged as error:  # so that it cannot even be opened
        return Verified(folder, (Check("file", False, _sentence(error.how), error.remedy),))


def _checked(name: str, store: Store, part: Callable[[Store], str]) -> Check:
    try:
        with unharmed(store.file):
            return Check(name, True, part(store))
    except Damaged as error:
        return Check(name, False, _sentence(error.how), error.remedy)
    except _Wrong as error:
        return Check(name, False, str(error))


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


class _Wrong(Exception):
    """What is not as it should be, in a sentence."""


def _file(store: Store) -> str:
    found = store.faults()
    if found:
        raise _Wrong(f"SQLite reports damage: {found[0]}.")
    return "SQLite reports no damage."


def _seals(store: Store) -> str:
    return f"All {store.n_rows()} rows are as they were written, and none is missing."


def _looks(store: Store) -> str:
    n = len(store.looks())
    return f"The log of looks is as it was written, and has {n} of them." if n else "No look at results was logged."


def _plan(store: Store) -> str:
    plan, held = stored_plan(store), str(store.get("fingerprint"))
    if not fingerprint(plan, str(store.get("digest"))) == held == store.fingerprint:
        raise _Wrong("The plan is not the one that the run began with: its fingerprint differs.")
    if any(d.content.get("fingerprint", held) != held for d in store.declarations()):
        raise _Wrong("The declaration belongs to another run: its fingerprint differs.")
    return "The plan is the one that the run began with, and the declaration belongs to it."


def _models(store: Store) -> str:
    plan, roles, dealt = stored_plan(store), stored_roles(store), 0
    game, taken = plan.game, taken_canary(store)
    roles = roles if roles is None or taken is None else roles.taking(taken)
    for index, seed, bits, pairs in store.dealt(game):
        if roles is None or index >= plan.n_models:
            raise _Wrong(f"There is a model {index}, which the plan does not have.")
        _compare(f"Seed of model {index}", seed, training_seed(plan.seed, Branch.audited, index))
        _compare(f"Bits of model {index}", bits, bits_of(game, plan.seed, index))
        _compare(f"Pairs of model {index}", pairs, pairs_of(game, roles, plan.seed, index))
        dealt += 1
    return f"Bits, pairs and training seeds of all {dealt} models follow from the plan's seed."


def _apart(store: Store) -> str:
    plan, roles, branch, rankings = stored_plan(store), stored_roles(store), Branch.rehearsal, store.rankings()
    dealt, n_canaries = len(rankings), roles.n_tried if roles and plan.tries_canaries else 1
    for number, seed, bits, pairs in store.dealt(plan.game, rehearsal=True):
        if roles is None or canary_of(number) >= n_canaries:
            raise _Wrong(f"There is a model {number} set apart, which the plan does not have.")
        of = play.rehearsal_roles(plan, roles, number)
        _compare(f"Seed of model {number}", seed, training_seed(plan.seed, branch, number))
        _compare(f"Bits of model {number}", bits, bits_of(plan.game, plan.seed, number, branch))
        _compare(f"Pairs of model {number}", pairs, pairs_of(plan.game, of, plan.seed, number, branch))
        dealt += 1
    for r in rankings:
        expected = training_seed(plan.points_seed, Branch.ranking, r.index)
        _compare(f"Seed of ranking model {r.index}", r.seed, expected)
        if r.error is None:
            members = members_of(len(r.losses), plan.points_seed, r.index)
            _compare(f"Points of ranking model {r.index}", r.members, members)
    if not dealt:
        return "No models were set apart."
    return f"Bits, pairs and training seeds of {dealt} models set apart follow from the plan's seed.{_chosen(store)}"


def _chosen(store: Store) -> str:
    """Decide again which canary is taken, from the signals that the store has."""
    plan, held = stored_plan(store), store.get("canary")
    if held is None:
        return ""
    choice, names, have = Choice(**held["choice"]), held["tried"], store.rehearsed()
    roles = stored_roles(store)
    if not plan.tries_canaries or roles is None or not choice.n_canaries == len(names) == roles.n_tried:
        raise _Wrong("The canaries that were tried are not those of the plan.")

    def seen(numbers: list[int]) -> Signals:
        for number in numbers:
            if number not in have:
                raise _Wrong(f"Model {number} set apart is missing, by which the canary was chosen.")
        return store.signals(plan.game, rehearsal=True)

    found = choice.strengths(plan.game, seen)
    best, taken = next(iter(found), None), held["number"]
    # another machine may round differently, which can turn a tie
    if best is None or found.get(taken, 0.0) < found[best] * (1 - _ROUNDING) or held["name"] != names[taken]:
        other = "none" if best is None else names[best]
        raise _Wrong(f"The canary is {held['name']}, but the signals of the models set apart give {other}.")
    same = {names[canary]: strength for canary, strength in found.items()}
    if same.keys() != held["best"].keys() or not all(_close(same[name], held["best"][name]) for name in same):
        raise _Wrong("How well canaries did is not what the signals of the models set apart give.")
    return f" So does the canary, {held['name']}, from their signals."


def _close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=_ROUNDING)


def _replayed(store: Store, folder: Path, plan: Plan, n: int, executor: Executor | Cluster | None) -> Check:
    """Another plan, code or data are an error of whoever asks, and no damage."""
    done = store.indices("done").tolist()
    apart = [number for number, error in store.rehearsed().items() if error is None]
    drawn, numbers = (sorted(random.SystemRandom().sample(some, min(n, len(some)))) for some in (done, apart))
    if not drawn and not numbers:
        return Check("replay", True, "No model is done.")
    differ = replay_models(store, folder, plan, drawn, numbers, executor)
    names = ", ".join(map(str, drawn))
    if numbers:
        names += f" and, of those set apart, {', '.join(map(str, numbers))}"
    if not differ:
        return Check("replay", True, f"Trained again, models {names} come out the same, bit for bit.")
    what, how = next(iter(differ.items()))
    sentence = (
        f"{what} was trained again and {how}. {len(differ)} of {len(drawn) + len(numbers)} models differ. Another CPU "
        "or other packages may round differently, but only in the last digits."
    )
    return Check("replay", False, sentence)


def _published(held: str | None, published: str) -> Check:
    if held == published:
        return Check("digest", True, "The run has the published digest.")
    sentence = f"The run is not the published one: its digest is {held}."
    return Check("digest", False, sentence, "Ask for the published run.")


def _compare(what: str, held: Any, expected: Any) -> None:
    if not np.array_equal(held, expected):
        raise _Wrong(f"{what}: not what the plan's seed gives.")


_PARTS: dict[str, Callable[[Store], str]] = {
    "file": _file,
    "seals": _seals,
    "looks": _looks,
    "plan": _plan,
    "models": _models,
    "set apart": _apart,
}
