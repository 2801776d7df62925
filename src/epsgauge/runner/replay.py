"""Models that are trained again: whether they come out as the store has them, bit for bit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from functools import partial
from pathlib import Path

import numpy as np

from epsgauge.games.signals import Outcome, Signals
from epsgauge.runner import play, resume
from epsgauge.runner.code import code_of
from epsgauge.runner.crew import Cluster
from epsgauge.runner.executors import crew_for
from epsgauge.runner.facing import resumed
from epsgauge.runner.plan import Plan
from epsgauge.runner.results import results, single
from epsgauge.runner.store import Store
from epsgauge.runner.trouble import damaged
from epsgauge.runner.view import stored_roles, taken_canary


def difference(stored: Signals, again: Outcome) -> str | None:
    """How a model that is trained again differs, in words that follow "it"; `stored` has this model alone."""
    if again.channels is None:
        return f"failed: {(again.error or '').splitlines()[-1]}"
    apart = {}
    for name, values in stored.channels.items():
        new = again.channels.get(name)
        if new is None or np.shape(new) != values[0].shape:
            return "gave other channels"
        if np.asarray(new, values.dtype).tobytes() != values[0].tobytes():
            apart[name] = float(np.nanmax(np.abs(new - values[0]), initial=0.0))
    if not apart:
        return None
    return "came out different, by up to " + ", ".join(f"{size:.2g} in channel {name}" for name, size in apart.items())


def replay(
    store: Store,
    folder: Path,
    plan: Plan,
    indices: Sequence[int],
    numbers: Sequence[int],
    executor: Executor | Cluster | None = None,
) -> dict[str, str]:
    """Train these models again, and those set apart with these numbers, which are all done; how each that differs does.

    Another plan, code or data than those of the run are refused.
    """
    plan = resumed(store, plan)
    resume.check_plan(store, folder, plan)
    resume.check_code(store, folder, code_of(plan), accept=False)
    resume.check_process(store, folder, plan)
    roles, group = stored_roles(store), resume.group_of(store)
    if roles is None:
        raise damaged(store.file, "it does not say which points play which part")
    taken = taken_canary(store)
    judged = roles if taken is None else roles.taking(taken)
    crew, found = crew_for(plan, executor, None), dict[str, str]()

    def compare(again: Iterable[Outcome], name: str, *, rehearsal: bool) -> None:
        for each in again:
            differs = difference(store.signals_of(plan.game, each.index, rehearsal=rehearsal), each)
            if differs is not None:
                found[name.format(each.index)] = differs

    try:
        resume.check_data(store, folder, single(crew, play.prepare))
        lost, lost_apart = partial(play.lost, plan, judged), partial(play.lost_rehearsal, plan, roles)
        some, apart = [[index] for index in indices], [[number] for number in numbers]
        compare(results(crew, play.play, (judged, group), some, lost), "Model {}", rehearsal=False)
        compare(results(crew, play.rehearse, (roles, group), apart, lost_apart), "Model {} set apart", rehearsal=True)
    finally:
        crew.leave(at_once=True)
    return found
