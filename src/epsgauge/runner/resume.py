"""What must be the same when a run goes on, and what is written down when something is not."""

from __future__ import annotations

import os
import uuid
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from epsgauge.declaration import now
from epsgauge.errors import InvalidInput
from epsgauge.mechanisms import privacy as promises
from epsgauge.runner.code import code_of, code_of_audit
from epsgauge.runner.fingerprint import differences, fingerprint
from epsgauge.runner.plan import Plan
from epsgauge.runner.play import Prepared
from epsgauge.runner.provenance import provenance
from epsgauge.runner.store import Store
from epsgauge.runner.trouble import unharmed
from epsgauge.runner.view import in_force, stored_plan
from epsgauge.trainers.protocol import Group

_TOKEN = uuid.uuid4().hex
_SHOWN = 3  # differences that a sentence names


def first_entries(plan: Plan, prepared: Prepared, of_adversary: dict[str, Any] | None = None) -> dict[str, Any]:
    """What a new store begins with; `of_adversary`: how the plan's adversary was found."""
    parts, found = _unnamed(plan), of_adversary or {}
    return {
        **found,
        "plan": plan.tables(),
        "fingerprint": fingerprint(plan, prepared.digest),
        "digest": prepared.digest,
        "code": code_of(plan),
        "privacy": promises.to_json(prepared.privacy),
        "notes": [*found.get("notes", []), *prepared.notes],
        "group": None if prepared.group is None else asdict(prepared.group),
        "process": {"token": _token(), "parts": parts} if parts else None,
        "sessions": [provenance(plan.folder, prepared.computing)],
        "plan_file": list(plan.read_from),
    }


def group_of(store: Store) -> Group | None:
    """How many models are trained together, as it was fixed when the run began."""
    with unharmed(store.file):
        return None if store.get("group") is None else Group(**store.get("group"))


def check_plan(store: Store, folder: Path, plan: Plan) -> None:
    """Refuse another plan, and fewer models."""
    held = stored_plan(store)
    changed = differences(held, plan)
    if changed:
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        raise InvalidInput(
            f"{folder} holds another plan ({'; '.join(changed[:_SHOWN])}{more}). Use a new --out, or restore the plan."
        )
    if plan.n_models < held.n_models:
        raise InvalidInput(
            f"n_models must be at least {held.n_models}, which {folder} was begun with, but got {plan.n_models}. A run "
            "can grow, not shrink: use a new --out, or restore the plan."
        )


def check_process(store: Store, folder: Path, plan: Plan) -> None:
    """Refuse to go on with an object that only the process that began could have."""
    process = store.get("process")
    parts = process["parts"] if process else _unnamed(plan)
    if parts and (process is None or process["token"] != _token()):
        raise InvalidInput(
            f"{folder} cannot be resumed by this process: {', '.join(parts)} is an object of a script or notebook, "
            'which cannot be found again. Move it into a module, name it as "module:attr", and use a new --out.'
        )


def check_data(store: Store, folder: Path, prepared: Prepared) -> None:
    held = str(store.get("digest"))
    if prepared.digest != held:
        raise InvalidInput(
            f"{folder} was begun with other data: their digest was {held[:12]}, now {prepared.digest[:12]}. Restore "
            "them, or use a new --out."
        )


def changed_code(store: Store, code: dict[str, str]) -> list[str]:
    """Files of the user's code that are not what they were, gone or new ones included."""
    held = store.get("code") or {}
    return sorted(name for name in {*held, *code} if held.get(name) != code.get(name))


def check_code(store: Store, folder: Path, code: dict[str, str], *, accept: bool) -> None:
    """Refuse changed code unless the user accepts it."""
    changed = changed_code(store, code)
    if changed and not accept:
        raise InvalidInput(
            f"{folder} was begun with other code: {', '.join(changed)} changed since. Restore it, use a new --out, or "
            "resume with --accept-changed-code, which reports will show."
        )


def entries_of_resume(store: Store, plan: Plan, *, retry_failed: bool) -> dict[str, Any]:
    """What changes in the store however the resume goes: the plan's `[audit]` and `[execution]`, and its size."""
    entries: dict[str, Any] = {"plan": plan.tables(), "plan_file": list(plan.read_from)}
    if not store.looks():
        return entries
    if plan.n_models > stored_plan(store).n_models:
        entries["extended_after_look"] = True
    n_fit = plan.audit.fit_models or in_force(store.declarations()).audit.fit_models or plan.n_fit
    choosing = np.inf if plan.audit.rule == "split-pairs" else n_fit  # pairs of every model choose there
    failed = store.indices("failed") if retry_failed else np.empty(0, np.int64)
    if (failed < choosing).any():
        entries["refit_after_look"] = True
    if len(failed):
        entries["retried_after_look"] = sorted({*(store.get("retried_after_look") or []), *failed.tolist()})
    return entries


def entries_of_session(store: Store, plan: Plan, prepared: Prepared) -> dict[str, Any]:
    """What is added when models are going to be played by this process."""
    session = provenance(plan.folder, prepared.computing)
    entries: dict[str, Any] = {"sessions": [*(store.get("sessions") or []), session]}
    code = code_of(plan)
    changed = changed_code(store, code)
    if changed:
        accepted = [*(store.get("accepted_code") or []), {"time": now(), "files": changed}]
        notes = list(store.get("notes") or [])
        if promises.to_json(prepared.privacy) != store.get("privacy"):
            notes.append(
                f"The trainer's promise changed with its code, now {prepared.privacy}; the first one is judged."
            )
        entries |= {"accepted_code": accepted, "code": code, "notes": notes, "probe": None}  # of other code
    return entries


def note(store: Store, text: str) -> None:
    """Add a note, once: by how much results are apart is another number each time."""
    notes = list(store.get("notes") or [])
    if not any(had.startswith(text.partition(", by up to ")[0]) for had in notes):
        store.put({"notes": [*notes, text]})


def declares(plan: Plan, fingerprint: str) -> dict[str, Any]:
    """What a plan fixes beforehand: `[audit]` with the code that it names, for this run with so many models.

    The number of models that choose the rule is in it, and must not move when the run grows.
    """
    audit: dict[str, Any] = plan.tables()["audit"]
    if plan.audit.rule == "split":
        audit = {**audit, "fit_models": plan.n_fit}
    return {"audit": audit, "code": code_of_audit(plan), "n_models": plan.n_models, "fingerprint": fingerprint}


def _unnamed(plan: Plan) -> list[str]:
    """Parts of the plan that another process cannot build."""
    return [part.use for part in (plan.data, plan.trainer) if not part.resumable]


def _token() -> str:
    """Of this process; a fork is another one."""
    return f"{os.getpid()}-{_TOKEN}"
