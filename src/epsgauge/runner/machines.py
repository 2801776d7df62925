"""Machines: on which kind of machine each model of a run was trained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from epsgauge.runner.provenance import apart
from epsgauge.stats.arrays import Ints

KINDS = "machines"  # the entry that lists the records of all kinds, in the order in which they came
_TOGETHER = 1000  # models whose kinds are kept in one entry


@dataclass(frozen=True)
class Machine:
    """A kind of machine: CPU, instructions, libraries, versions and settings, and how many models it trained."""

    record: dict[str, Any]
    n_models: int


class Machines:
    """The kinds that a store knows. Models of the first kind are not listed: most runs have no other."""

    def __init__(self, get: Callable[[str], Any]) -> None:
        self._get = get
        self._kinds: list[dict[str, Any]] | None = None
        self._of: dict[int, dict[str, int]] = {}

    def entries(self, index: int, record: Mapping[str, Any] | None) -> dict[str, Any]:
        """What is to be written together with a model that was trained on such a machine; often nothing."""
        if record is None:
            return {}
        if self._kinds is None:
            self._kinds = list(self._get(KINDS) or [])
        found, new, part = dict(record), dict[str, Any](), index // _TOGETHER
        if found not in self._kinds:
            self._kinds.append(found)
            new[KINDS] = self._kinds
        kind = self._kinds.index(found)
        if part not in self._of:
            self._of[part] = dict(self._get(_entry(part)) or {})
        if self._of[part].get(str(index), 0) != kind:
            self._of[part][str(index)] = kind
            new[_entry(part)] = self._of[part]
        return new


def _entry(part: int) -> str:
    return f"{KINDS} {part}"


def kinds_of(get: Callable[[str], Any], models: Iterable[int]) -> dict[int, int]:
    """The kind of each of these models."""
    parts: dict[int, dict[str, int]] = {}
    found = {}
    for index in models:
        part = index // _TOGETHER
        if part not in parts:
            parts[part] = get(_entry(part)) or {}
        found[index] = int(parts[part].get(str(index), 0))
    return found


def machines(get: Callable[[str], Any], models: Ints) -> tuple[Machine, ...]:
    """Those of a run with so many of its models each; none where an earlier version made it."""
    kinds = get(KINDS) or []
    count = Counter(kinds_of(get, models.tolist()).values()) if len(kinds) > 1 else {0: len(models)}
    return tuple(Machine(record, count.get(kind, 0)) for kind, record in enumerate(kinds))


def mixed(found: Sequence[Machine], sessions: Sequence[Mapping[str, Any]]) -> list[str]:
    """A note for each kind that differs from the first, unless it is that of a session, which has its own note."""
    known = [session.get("computing") or {} for session in sessions]
    return [
        f"{other.n_models} models were trained where numbers may round differently: {differ}."
        for other in found[1:]
        if other.n_models and (differ := apart(found[0].record, other.record))
        if all(apart(session, other.record) for session in known)
    ]


def merged(parts: Sequence[tuple[Callable[[str], Any], Sequence[int]]]) -> dict[str, Any]:
    """The entries of one store with the models of several. The first part that has a model says where it was made."""
    kinds: list[Any] = []
    of: dict[str, dict[str, int]] = {}
    seen: set[int] = set()
    for get, models in parts:
        there = get(KINDS) or []
        kinds += [record for record in there if record not in kinds]
        for index, kind in kinds_of(get, [index for index in models if index not in seen]).items():
            if kind < len(there) and (number := kinds.index(there[kind])):
                of.setdefault(_entry(index // _TOGETHER), {})[str(index)] = number
        seen.update(models)
    return {KINDS: kinds, **of} if kinds else {}


def is_entry(key: str) -> bool:
    return key.partition(" ")[0] == KINDS
