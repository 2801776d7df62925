"""run(plan): plays every model that the store does not have yet, and keeps each one as soon as it is done."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from epsgauge.errors import InvalidInput
from epsgauge.games.ranking import Ranking
from epsgauge.games.roles import Roles
from epsgauge.games.seeds import Branch, training_seed
from epsgauge.games.signals import Outcome
from epsgauge.numbers import json_ready
from epsgauge.runner import play, resume
from epsgauge.runner.code import code_of
from epsgauge.runner.crew import Cluster, Crew
from epsgauge.runner.executors import crew_for
from epsgauge.runner.facing import faced
from epsgauge.runner.hopeless import First
from epsgauge.runner.lock import hold
from epsgauge.runner.plan import Plan
from epsgauge.runner.probed import probe_of_run
from epsgauge.runner.progress import Clock, Progress, Watch
from epsgauge.runner.rehearsing import Rehearsal
from epsgauge.runner.replay import difference
from epsgauge.runner.results import confirm, results, single
from epsgauge.runner.same import DataChanged
from epsgauge.runner.store import FILE, Store
from epsgauge.runner.view import Run, stored_roles, taken_canary
from epsgauge.runner.wal import has_lost, log_of
from epsgauge.trainers.protocol import Group

__all__ = ["Run", "run"]
LOST = "The write-ahead log of the store was damaged. Models written after the damage were lost and trained again."


def run(
    plan: Plan,
    *,
    out: str | os.PathLike[str],
    executor: Executor | Cluster | None = None,
    workers: int | None = None,
    models: range | None = None,
    retry_failed: bool = False,
    accept_changed_code: bool = False,
    keep_going: bool = False,
    watch: Watch | None = None,
) -> Run:
    """Play the models of a plan and keep what was seen of them in the folder `out`. The same call again resumes.

    Models that failed are tried again with `retry_failed`. Code that changed since the run began is refused unless
    `accept_changed_code`, which the store remembers. With `models`, only those are played: another run directory may
    have the others, and `merge` puts them together. Neither workers nor interruptions change any signal.

    The run stops when its first models all fail the same way, unless `keep_going`.
    """
    if not isinstance(plan, Plan):
        raise InvalidInput(
            f"plan must be a Plan, but got {type(plan).__name__}. Plan.read(path) reads one from a file."
        )
    among = range(plan.n_models) if models is None else _checked(models, plan)
    watch = Watch() if watch is None else watch
    folder, file = Path(out), Path(out) / FILE
    with hold(folder):
        broken, begun = has_lost(log_of(file)), Store.is_begun(file)  # SQLite removes the log of an opened store
        if not begun:
            watch.stage("preparing")
        plan, of_adversary = faced(plan, file, executor)
        with _at_work(crew_for(plan, executor, workers)) as crew:
            if not begun:
                store = _begun(file, plan, crew, of_adversary)
            else:
                store = Store.write(file)
                try:
                    _resume(
                        store, folder, plan, crew, watch, among, retry_failed=retry_failed, accept=accept_changed_code
                    )
                except BaseException:
                    store.close()
                    raise
            with store:
                if broken:
                    resume.note(store, LOST)
                watch.opened(Run.open(folder))
                if watch.stop_when is not None:
                    store.put({"stop_when": watch.stop_when})
                indices = _remaining(store, among, retry_failed)
                if indices:
                    with _noted(store):
                        _train(store, folder, plan, crew, watch, indices, retry_failed, keep_going)
            return Run.open(folder)


def _begun(file: Path, plan: Plan, crew: Crew, of_adversary: dict[str, Any]) -> Store:
    """A new store."""
    entries = resume.first_entries(plan, single(crew, play.prepare), of_adversary)
    store = Store.create(file, entries, resume.declares(plan, entries["fingerprint"]))
    crew.expected = replace(crew.expected, digest=entries["digest"])
    return store


def _train(
    store: Store,
    folder: Path,
    plan: Plan,
    crew: Crew,
    watch: Watch,
    indices: list[int],
    retry_failed: bool,
    keep_going: bool,
) -> None:
    """All models that are missing: those that are set apart, and then those with these indices."""
    _probe(store, plan, crew, watch)
    group, roles = resume.group_of(store), _roles(store, plan, crew, watch, retry_failed)
    rehearsal = Rehearsal(store, plan, roles, crew, watch, group, keep_going)
    if plan.tries_canaries:
        if taken_canary(store) is None:
            rehearsal.choose()
        roles = roles.taking(taken_canary(store) or 0)
    rehearsal.learn()
    rehearsal.control()
    _play(store, folder, plan, roles, crew, watch, indices, group, keep_going)
    confirm(crew)


@contextmanager
def _at_work(crew: Crew) -> Iterator[Crew]:
    at_once = True
    try:
        yield crew
        at_once = False
    finally:
        crew.leave(at_once=at_once)


@contextmanager
def _noted(store: Store) -> Iterator[None]:
    """What is raised of data that were changed in place is said by the run too, which may hold models that saw it."""
    try:
        yield
    except DataChanged as error:
        resume.note(store, f"Stopped: {error}")
        raise


def _resume(
    store: Store, folder: Path, plan: Plan, crew: Crew, watch: Watch, among: range, *, retry_failed: bool, accept: bool
) -> None:
    """Check that this is the same run; where nothing is left to play, without touching the data."""
    resume.check_plan(store, folder, plan)
    resume.check_code(store, folder, code_of(plan), accept=accept)
    crew.sources.check()
    entries = resume.entries_of_resume(store, plan, retry_failed=retry_failed)
    if _remaining(store, among, retry_failed):
        resume.check_process(store, folder, plan)
        watch.stage("preparing")
        prepared = single(crew, play.prepare)
        resume.check_data(store, folder, prepared)
        crew.expected = replace(crew.expected, digest=prepared.digest)
        entries |= resume.entries_of_session(store, plan, prepared)
    store.put(entries, resume.declares(plan, store.get("fingerprint")))


def _probe(store: Store, plan: Plan, crew: Crew, watch: Watch) -> None:
    """Test once what the accountant assumes; models are trained whatever comes out."""
    if not plan.probes or store.get("probe") is not None:
        return
    watch.stage("probing")
    found = probe_of_run(plan, crew)
    store.put({"probe": json_ready(found.to_json())})
    watch.probed(found)


def _checked(models: range, plan: Plan) -> range:
    if not isinstance(models, range) or models.step != 1 or not 0 <= models.start < models.stop <= plan.n_models:
        raise InvalidInput(
            f"models must be a range of the plan's models, within range(0, {plan.n_models}), but got {models!r}."
        )
    return models


def _remaining(store: Store, among: range, retry_failed: bool) -> list[int]:
    have = store.indices("done")
    if not retry_failed:
        have = np.concatenate([have, store.indices("failed")])
    return [int(i) for i in np.setdiff1d(np.arange(among.start, among.stop), have)]


def _roles(store: Store, plan: Plan, crew: Crew, watch: Watch, retry_failed: bool) -> Roles:
    """Which points are what, with all canaries that are tried: cut once, after ranking if the plan asks for it."""
    roles = stored_roles(store)
    if roles is None:
        rankings = _rankings(store, plan, crew, watch, retry_failed) if plan.game.challenge == "worst" else None
        roles = single(crew, play.cut, rankings)
        store.put_arrays(roles.to_arrays())
    return roles


def _rankings(store: Store, plan: Plan, crew: Crew, watch: Watch, retry_failed: bool) -> list[Ranking]:
    watch.stage("ranking")
    total, clock = plan.game.ranking_models, Clock()
    have = {r.index: r for r in store.rankings() if not (retry_failed and r.error)}
    missing = [i for i in range(total) if i not in have]

    def lost(index: int, why: str) -> Ranking:
        seed = training_seed(plan.points_seed, Branch.ranking, index)
        return Ranking(index, seed, 0.0, np.empty(0, np.int64), np.empty(0), why)

    batches = [[i] for i in missing]
    for here, ranking in enumerate(results(crew, play.rank, (), batches, lost, watch.waiting), 1):
        store.add_ranking(ranking)
        have[ranking.index] = ranking
        failed = sum(r.error is not None for r in have.values())
        watch.ranked_one(Progress(total, len(have) - failed, failed, here, clock.seconds()))
    return [have[i] for i in range(total)]


def _play(
    store: Store,
    folder: Path,
    plan: Plan,
    roles: Roles,
    crew: Crew,
    watch: Watch,
    indices: list[int],
    group: Group | None,
    keep_going: bool,
) -> None:
    watch.stage("playing")
    done, failed = (set(store.indices(state).tolist()) for state in ("done", "failed"))
    failed -= set(indices)

    def played(jobs: list[list[int]]) -> Iterator[Outcome]:
        return results(crew, play.play, (roles, group), jobs, partial(play.lost, plan, roles), watch.waiting)

    watch.started(Run.open(folder), len(indices))
    clock = Clock()

    size = 1 if group is None else group.size
    jobs = [list(together) for _, together in groupby(indices, lambda index: index // size)]
    again = min(done, default=None)  # one that the store has is played first, beside the others
    here, first = 0, First(_remedy(folder, plan), watching=not (keep_going or done))

    for outcome in played([*([] if again is None else [[again]]), *jobs]):
        if outcome.index == again:
            _compare(store, plan, outcome)
            continue
        here += 1
        outcome = store.add(outcome)
        (done if outcome.error is None else failed).add(outcome.index)
        progress = Progress(plan.n_models, len(done), len(failed), here, clock.seconds())
        watch.finished_one(outcome, progress)
        first.told(outcome.error, more=here < len(indices))


def _remedy(folder: Path, plan: Plan) -> str:
    quiet = "This is a control, whose models have no noise: its trainer must run with noise_multiplier = 0. "
    return (
        f"{quiet if plan.control else ''}Nothing is lost: `epsgauge status {shlex.quote(str(folder))}` shows the whole "
        "error. Fix it, and run again with --retry-failed, and with --accept-changed-code if you changed code."
    )


def _compare(store: Store, plan: Plan, again: Outcome) -> None:
    """Note where a model that the store has comes out different now; the run goes on all the same."""
    differs = difference(store.signals_of(plan.game, again.index), again)
    if differs is not None:
        resume.note(
            store,
            f"Model {again.index} was trained again when the run was resumed, and {differs}. The run is mixed: its "
            "sessions round differently, or its trainer is not reproducible.",
        )
