"""What the signals of a run depend on, as one digest, and in words where two plans differ."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from epsgauge.runner.plan import Plan

_ABSENT = object()


def fingerprint(plan: Plan, data_digest: str) -> str:
    """SHA-256 of the plan without what may change after training, and of the data's content."""
    return hashlib.sha256(_canonical([plan.fingerprinted(), data_digest]).encode()).hexdigest()


def differences(old: Plan, new: Plan) -> list[str]:
    """Each key of the fingerprint in which two plans differ, as "key was old, now new"."""
    before, after = (_flat(json.loads(_canonical(plan.fingerprinted()))) for plan in (old, new))
    keys = [*before, *(key for key in after if key not in before)]
    pairs = ((key, before.get(key, _ABSENT), after.get(key, _ABSENT)) for key in keys)
    return [f"{key} was {_shown(a)}, now {_shown(b)}" for key, a, b in pairs if _canonical(a) != _canonical(b)]


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=repr)


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    out: dict[str, Any] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            out |= _flat(value, f"{prefix}{key}.")
        else:
            out[f"{prefix}{key}"] = value
    return out


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "not set"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:57]}..."
