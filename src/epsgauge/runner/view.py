"""Run: what a run directory holds at one moment, read from its store alone."""

from __future__ import annotations

import os
import shlex
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from epsgauge.declaration import Declaration
from epsgauge.display import Displayed
from epsgauge.errors import InvalidInput
from epsgauge.games.adversary import AdversarySettings
from epsgauge.games.powers import Powers, powers
from epsgauge.games.rehearsal import canary_of, is_quiet
from epsgauge.games.roles import Roles
from epsgauge.games.signals import Signals
from epsgauge.mechanisms import privacy as promises
from epsgauge.mechanisms.privacy import Privacy
from epsgauge.probing import result as probing
from epsgauge.probing.result import Probe, Unprobed
from epsgauge.references import is_reference
from epsgauge.runner import lock
from epsgauge.runner.looks import log_look
from epsgauge.runner.machines import Machine, machines, mixed
from epsgauge.runner.parts import BUILT_IN, Part
from epsgauge.runner.plan import Plan
from epsgauge.runner.progress import Progress
from epsgauge.runner.provenance import changes
from epsgauge.runner.store import FILE, Store
from epsgauge.runner.trouble import Empty, damaged, newer, unharmed
from epsgauge.settings import AuditSettings
from epsgauge.stats.arrays import Ints

Looks = Sequence[Mapping[str, Any]]  # at results, the oldest first


@dataclass(frozen=True, eq=False)
class Failure:
    """A model that failed: what it would have been, and why."""

    index: int
    bits: Ints
    seed: int
    error: str


@dataclass(frozen=True)
class Brief:
    """As much of a run as the log of looks wants to know."""

    path: Path
    n_done: int
    n_models: int
    as_planned: bool  # whether the number of models was fixed before results were seen

    def log_look(self, kind: str, own: list[dict[str, Any]] | None = None) -> bool:
        """Record that results were seen; False where the log cannot be written."""
        counts = {"n_done": self.n_done, "n_models": self.n_models, "as_planned": self.as_planned}
        return log_look(self.path, {"kind": kind, **counts, **({"own": own} if own else {})})


@dataclass(frozen=True, eq=False, repr=False)
class Run(Displayed):
    """A view of a run at the moment when it was opened. It imports none of the plan's code."""

    path: Path
    plan: Plan  # the latest; parts that were objects are known by their names only
    declared: AuditSettings  # `[audit]` as it stood when results were first seen
    declarations: tuple[Declaration, ...]  # all that were ever made, the oldest first; see `declaration`
    privacy: Privacy | None  # what the trainer promises
    done: Ints  # models that have signals
    failed: tuple[Failure, ...]
    provenance: dict[str, Any]  # of data, code and the process that began it; "sessions" has those that went on
    notes: list[str]
    extended_after_look: bool  # n_models was raised when results had been seen
    refit_after_look: bool  # models that choose the rule were played again then
    retried_after_look: Ints  # models that had failed and were played again then
    code_changed: bool  # and that was accepted
    stop_when: str | None  # what it was to stop for before all models were played
    canary: dict[str, Any] | None  # that was taken of several: its name and meaning, and how the best of them did
    probe: Probe | Unprobed | None  # of the training, before models were trained; None where it is not called for
    machines: tuple[Machine, ...]  # kinds of them that trained models
    plan_file: str  # the plan's file, as words of a command line; PLAN where it is not known
    unsealed: bool = False  # what was read was not held against its seals: every bound is an estimate

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, unsealed: bool = False) -> Run:
        """Read a run directory; with `unsealed`, also one whose seals are missing or do not fit."""
        folder = Path(path)
        with opened(folder, unsealed=unsealed) as store, unharmed(store.file):
            sessions = store.get("sessions") or [{}]
            declarations = store.declarations()
            done = store.indices("done")
            trained_on = machines(store.get, done)
            declared = _settings(store, declarations)
            plan = stored_plan(store, declared)
            return cls(
                folder,
                plan,
                declared,
                declarations,
                promises.from_json(store.get("privacy")),
                done,
                tuple(Failure(*row) for row in store.failures()),
                {
                    **sessions[0],
                    **{key: store.get(key) for key in ("fingerprint", "digest", "code")},
                    "sessions": sessions[1:],
                },
                [*_notes(store, sessions), *mixed(trained_on, sessions)],
                bool(store.get("extended_after_look", False)),
                bool(store.get("refit_after_look", False)),
                np.array(store.get("retried_after_look") or [], np.int64),
                bool(store.get("accepted_code")),
                store.get("stop_when"),
                _canary(store),
                _probe(store, plan),
                trained_on,
                shlex.join(str(word) for word in store.get("plan_file") or ()) or "PLAN",
                unsealed,
            )

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}: {self.n_done} of {self.plan.n_models} models done, {self.n_failed} failed)"

    @property
    def adversary(self) -> AdversarySettings:
        """That of the plan, with the canary that was taken of records and a gradient."""
        return self.plan.adversary if self.canary is None else self.plan.adversary.taking(self.canary["name"])

    @property
    def powers(self) -> Powers:
        """What the adversary may do, in words, and which claims cover it."""
        return powers(self.adversary, self.plan.game, self.plan.start)

    @property
    def n_done(self) -> int:
        return len(self.done)

    @property
    def n_failed(self) -> int:
        return len(self.failed)

    @property
    def progress(self) -> Progress:
        return Progress(self.plan.n_models, self.n_done, self.n_failed)

    @property
    def complete(self) -> bool:
        """Whether every model is done; one that failed is not."""
        return self.n_done >= self.plan.n_models

    @property
    def unplanned(self) -> str | None:
        """Why the number of models is not one that was fixed before results were seen; None where it is."""
        planned, over = self.plan.n_models, self.n_done + self.n_failed
        if over < planned:
            return f"the run is not finished: {over} of {planned} models have been played"
        if self.stop_when is not None:
            return f"the run was to stop when its results showed {self.stop_when}"
        return "the run was extended after its results had been seen" if self.extended_after_look else None

    @property
    def failed_models(self) -> Ints:
        return np.array([failure.index for failure in self.failed], dtype=np.int64)

    @property
    def declaration(self) -> Declaration:
        """The one that counts: the last that was made before any result had been seen."""
        return in_force(self.declarations)

    @property
    def looks(self) -> list[dict[str, Any]]:
        """Every look at results that was logged, the oldest first."""
        with opened(self.path, unsealed=self.unsealed) as store:
            return store.looks()

    def signals(self) -> Signals:
        """What was seen of the models that were done when this view was opened. A look, which is logged."""
        found = results_of(self).signals
        if self.n_done and not self.log_look("signals"):
            warnings.warn(unlogged(self.path), stacklevel=2)
        return found

    def log_look(self, kind: str, own: list[dict[str, Any]] | None = None) -> bool:
        """Record that results were seen, and by which code of the user's; False where the log cannot be written."""
        return self.brief.log_look(kind, own)

    @property
    def brief(self) -> Brief:
        return Brief(self.path, self.n_done, self.plan.n_models, self.unplanned is None)

    def status(self) -> dict[str, Any]:
        """How the run stands, as plain values for a table or JSON."""
        failed = self.failed
        with opened(self.path, unsealed=self.unsealed) as store:
            median, rate = store.timing()
            digest, looks = store.digest(), len(store.looks())
        pid = lock.holder(self.path)
        bits = np.concatenate([f.bits for f in failed]) if failed else np.empty(0, np.int64)
        first = failed[0] if failed else None
        return {
            "path": str(self.path),
            "name": self.plan.name,
            "n_models": self.plan.n_models,
            "n_done": self.n_done,
            "n_failed": self.n_failed,
            "n_left": self.progress.n_left,
            "complete": self.complete,
            "running": pid is not None,
            "pid": pid or None,
            "seconds_per_model": median,
            "models_per_second": rate,
            # failures that go with the bit are a leak of their own, and bias what is left
            "failed_pairs_by_bit": {"0": int(np.sum(bits == 0)), "1": int(np.sum(bits == 1))},
            "first_error": None if first is None else {"model": first.index, "seed": first.seed, "error": first.error},
            "declared": self.declaration.to_json(),
            "looks": looks,
            "digest": digest,
            "extended_after_look": self.extended_after_look,
            "notes": self.notes,
        }


@dataclass(frozen=True, eq=False)
class Results:
    """What an audit reads of a run."""

    signals: Signals
    looks: Looks  # that were logged before
    control: Signals  # of models set apart, without noise


def results_of(run: Run) -> Results:
    """Of the models that were done when the run was opened. Whoever shows them logs a look."""
    with opened(run.path, unsealed=run.unsealed) as store:
        signals, looks = store.signals(run.plan.game), store.looks()
        apart = store.signals(run.plan.game, rehearsal=True)
    taken = apart[canary_of(apart.models) == (run.canary or {}).get("number", 0)]
    quiet = is_quiet(taken.models).astype(bool)
    if not np.array_equal(signals.models, run.done):
        signals = signals[np.isin(signals.models, run.done)]
    rehearsal = taken[~quiet]
    return Results(replace(signals, rehearsal=rehearsal), looks, replace(taken[quiet], rehearsal=rehearsal))


def unlogged(folder: Path) -> str:
    """What is said of a look that could not be written down."""
    return f"This look could not be logged: {folder} cannot be written."


def in_force(declarations: Sequence[Declaration]) -> Declaration:
    """Until results have been seen, another one may be declared; what comes later does not count."""
    return [each for each in declarations if each.beforehand][-1]


def stored_plan(store: Store, declared: AuditSettings | None = None) -> Plan:
    """The plan that a store holds; a part that was an object of the user's stays a name.

    `declared`: as many models choose the rule as were declared, also where the run has grown since.
    """
    tables = store.get("plan")
    if not isinstance(tables, dict):
        raise damaged(store.file, "it holds no plan")
    try:
        audit = tables.get("audit") or {}
        if declared is not None and audit.get("rule", "split") == declared.rule == "split":
            tables["audit"] = {**audit, "fit_models": audit.get("fit_models") or declared.fit_models}
        for kind in ("data", "trainer"):
            settings = dict(tables[kind])
            use = settings.pop("use")
            if not (is_reference(use) or use in BUILT_IN[kind]):
                tables[kind] = Part(kind, use, settings, target=Elsewhere(use))
        return Plan.from_tables(tables)
    except (InvalidInput, KeyError, TypeError) as error:
        raise _unread(store, "its plan cannot be read", error) from error


def stored_roles(store: Store) -> Roles | None:
    """Which points are what, with all canaries that are tried; None in a run that has not come so far."""
    arrays = store.arrays()
    with unharmed(store.file):
        return Roles.from_arrays(arrays) if arrays else None


def taken_canary(store: Store) -> int | None:
    """The number of the canary that was taken of several; None if there is no choice, or none was made yet."""
    with unharmed(store.file):
        taken = store.get("canary")
        return None if taken is None else int(taken["number"])


def _settings(store: Store, declarations: Sequence[Declaration]) -> AuditSettings:
    try:
        return in_force(declarations).audit
    except ValidationError as error:
        raise _unread(store, "what its plan declared cannot be read", error) from error


def _unread(store: Store, what: str, error: Exception) -> InvalidInput:
    """Of what is sealed and yet makes no sense here."""
    if not store.sealed:
        return damaged(store.file, f"{what}: {error}")
    packages = (store.get("sessions") or [{}])[-1].get("packages", {})
    version = packages.get("epsgauge", "unknown")
    return newer(store.file, f"version {version}; {what}: {str(error).splitlines()[0]}", metadata.version("epsgauge"))


@dataclass(frozen=True)
class Elsewhere:
    """Stands for an object that another process had."""

    use: str


def opened(folder: Path, *, unsealed: bool = False) -> Store:
    """The store of a run directory, for looking only; `unsealed`: whatever its seals say."""
    file = folder / FILE
    if folder.is_file():
        name, plan = shlex.quote(str(folder)), folder.suffix == ".toml"
        remedy = f"`epsgauge run {name} --out DIR` makes one of a plan" if plan else f"Scores: `epsgauge scores {name}`"
        raise InvalidInput(f"a run is a folder, but {folder} is a file. {remedy}.")
    if not folder.is_dir() and folder.suffix in (".csv", ".npz", ".parquet", ".toml"):
        raise InvalidInput(f"there is no file {folder}. Check its name, and give the folder of a run.")
    if not folder.is_dir():
        raise InvalidInput(f"there is no run {folder}. `epsgauge run PLAN --out {folder}` makes one.")
    if not file.is_file():
        raise InvalidInput(f"{folder} holds no run: it has no {FILE}. `epsgauge run PLAN --out {folder}` begins one.")
    try:
        return Store.read(file, checked=not unsealed)
    except Empty:
        if lock.holder(folder) is None:
            raise
        raise InvalidInput(f"{folder} holds no run yet: it is about to begin. Ask again in a moment.") from None


def _canary(store: Store) -> dict[str, Any] | None:
    taken = store.get("canary")
    if taken is None:
        return None
    texts = {key: str(taken[key]) for key in ("name", "meaning")}
    best = {str(name): float(told) for name, told in taken["best"].items()}
    counts = {key: int(taken[key]) for key in ("number", "held_out")}
    return {**counts, **texts, "best": best, "tried": [str(name) for name in taken["tried"]]}


def _probe(store: Store, plan: Plan) -> Probe | Unprobed | None:
    entry = store.get("probe")
    if entry is None and plan.probe is False:
        return Unprobed("the run was asked for none (probe = false).")
    try:
        return probing.from_json(entry)
    except ValidationError as error:
        raise _unread(store, "what its probe found cannot be read", error) from error


def _notes(store: Store, sessions: list[dict[str, Any]]) -> list[str]:
    """What a reader of the results should know of how they were made."""
    notes = [str(note) for note in store.get("notes") or []]
    for accepted in store.get("accepted_code") or []:
        files = ", ".join(accepted["files"])
        notes.append(f"The code changed during the run and was accepted on {accepted['time']}: {files}.")
    process = store.get("process")
    if process is not None:
        what = ", ".join(process["parts"])
        notes.append(f"Made with an object of a script or notebook ({what}): another process cannot resume it.")
    first = sessions[0].get("packages", {})
    for later in sessions[1:]:
        packages = later.get("packages", {})
        changed = [
            f"{name} {first.get(name, 'none')} → {packages.get(name, 'none')}"
            for name in sorted({*first, *packages})
            if first.get(name) != packages.get(name)
        ]
        if changed:
            notes.append(f"Resumed on {later['time']} with other packages: {', '.join(changed)}.")
        notes += changes(sessions[0], later)
    return notes
