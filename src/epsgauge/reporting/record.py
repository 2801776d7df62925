"""What was run, as plain values: the last section of a report, and what its JSON has beyond the audit's."""

from __future__ import annotations

import platform
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import epsgauge
from epsgauge.auditing.audit import Audit
from epsgauge.auditing.compare import Comparison
from epsgauge.declaration import now
from epsgauge.mechanisms import privacy as promises
from epsgauge.reporting import redo
from epsgauge.reporting.estimate import Answer
from epsgauge.runner.view import Run


def of_audit(audit: Audit, out: str = redo.OUT) -> dict[str, Any]:
    """How the scores of an audit came about, as far as it is known, and how to make the report again."""
    plan = None if audit.run is None else audit.run.plan.audit
    return {
        **_made(redo.of_audit(audit, out)),
        "run": None if audit.run is None else of_run(audit.run),
        "changed_settings": {} if plan is None else _changes(plan.model_dump(), audit.settings.model_dump()),
        "accountant": {
            "inputs": promises.to_json(audit.privacy),
            "source": audit.promises.source,
            "delta": audit.settings.delta,
            "eps": dict(audit.accountant),
            "adjacency_of_the_game": audit.adjacency,
        },
    }


def of_run(run: Run) -> dict[str, Any]:
    """From the store."""
    status = run.status()
    made = run.provenance
    tables = {key: value for key, value in run.plan.tables().items() if key != "execution"}  # it changes no result
    order = ("name", "tags", "seed", "n_models", "control", "data", "trainer", "game", "adversary", "audit")
    return {
        "path": str(run.path),
        "plan": {key: tables[key] for key in order if key in tables},
        "seed": run.plan.seed,
        "points_seed": run.plan.points_seed,
        "fingerprint": made["fingerprint"],
        "data_digest": made["digest"],
        "code": made["code"] or {},
        "begun": made.get("time"),
        "resumed": [session.get("time") for session in made["sessions"]],
        "python": made.get("python"),
        "platform": made.get("platform"),
        "packages": made.get("packages", {}),
        "revision": made.get("git"),
        "models": {"planned": run.plan.n_models, "done": run.n_done, "failed": run.n_failed},
        "seconds_per_model": status["seconds_per_model"],
        "failed_models": run.failed_models.tolist(),
        "failed_pairs_by_bit": status["failed_pairs_by_bit"],
        "first_error": status["first_error"],
        "declarations": [each.to_json() for each in run.declarations],
        "looks": [{key: look.get(key) for key in ("time", "kind", "n_done", "n_models")} for look in run.looks],
        "extended_after_look": run.extended_after_look,
        "stop_when": run.stop_when,
    }


def of_comparison(found: Comparison, out: str = redo.OUT) -> dict[str, Any]:
    return _of_runs(redo.of_comparison(found, out), [run.audit for run in found.runs])


def of_demo(out: Path, audits: Iterable[Audit]) -> dict[str, Any]:
    return _of_runs([f"epsgauge demo --out {shlex.quote(str(out))}"], audits)


def of_counts(answer: Answer, out: str = redo.OUT) -> dict[str, Any]:
    return _made(redo.of_counts(answer, out))


def _of_runs(commands: list[str], audits: Iterable[Audit]) -> dict[str, Any]:
    return {**_made(commands), "runs": [of_run(audit.run) for audit in audits if audit.run is not None]}


def _made(commands: list[str]) -> dict[str, Any]:
    return {
        "report": {"time": now(), "epsgauge": epsgauge.__version__, "python": platform.python_version()},
        "commands": commands,
    }


def _changes(plan: dict[str, Any], used: dict[str, Any]) -> dict[str, Any]:
    return {name: {"plan": plan[name], "used": used[name]} for name in used if used[name] != plan[name]}
