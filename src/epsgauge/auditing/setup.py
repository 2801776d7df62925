"""What an audit judges with: its settings, and the attack and method that they name, built in or your own."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from epsgauge.attacks.attack import Attack
from epsgauge.attacks.table import ATTACKS, attack_of
from epsgauge.errors import InvalidInput
from epsgauge.methods.method import Method
from epsgauge.methods.table import METHODS, method_of
from epsgauge.settings import AuditSettings, changed


@dataclass(frozen=True)
class Own:
    """An attack or a method of the user's: the name under which it was asked for, and a hash of its module's file."""

    what: str
    name: str
    code: str | None  # None: it comes from no file


@dataclass(frozen=True)
class Setup:
    """Settings with the attack and the method that they name."""

    settings: AuditSettings
    attack: Attack
    method: Method | None  # that the settings name for the verdict; None: the sharpest for such an audit

    @property
    def own(self) -> list[Own]:
        """What of it is not built in."""
        s = self.settings
        used = (("attack", s.attack, self.attack, ATTACKS), ("method", s.verdict_method, self.method, METHODS))
        return [Own(what, name, _code(thing)) for what, name, thing, known in used if name and name not in known]


def setup_of(declared: AuditSettings, changes: Mapping[str, Any]) -> Setup:
    """`declared` with some settings changed. Only code that the changes name is loaded: these come from the user."""
    values = dict(changes)
    attack, method = values.get("attack"), values.get("verdict_method")
    if attack is not None:
        attack = attack_of(attack)
        values["attack"] = _name(changes["attack"], attack, ATTACKS)
    if method is not None:
        method = method_of(method, "verdict_method")
        values["verdict_method"] = _name(changes["verdict_method"], method, METHODS)
    settings = changed(declared, values)
    if attack is None:
        attack = _built_in(settings.attack, ATTACKS, "attack")
    if method is None and settings.verdict_method is not None:
        method = _built_in(settings.verdict_method, METHODS, "verdict_method")
    return Setup(settings, attack, method)


def _code(thing: object) -> str | None:
    file = getattr(sys.modules.get(type(thing).__module__), "__file__", None)
    try:
        return None if file is None else hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return None


def _name(asked: Any, found: Attack | Method, known: Mapping[str, Any]) -> str:
    """What the settings remember: a name of the table, else where the class is."""
    if isinstance(asked, str):
        return asked
    kind = type(found)
    if found.name in known and kind is type(known[found.name]):
        return found.name
    return f"{kind.__module__}:{kind.__qualname__.replace('<locals>.', '')}"


def _built_in(name: str, known: Mapping[str, Any], key: str) -> Any:
    if name in known:
        return known[name]
    raise InvalidInput(
        f'the plan declares {key} = "{name}", which is your own code, and no code is loaded because a run directory '
        f"names it. Name it again: --{key.replace('_', '-')} {name}, or {key}= in Python."
    )
