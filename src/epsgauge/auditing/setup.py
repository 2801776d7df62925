"""What an audit judges with: its settings, and the attack and method that they name, built in or your own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from epsgauge.attacks.attack import Attack
from epsgauge.attacks.table import ATTACKS, attack_of
from epsgauge.errors import InvalidInput
from epsgauge.methods.method import Method
from epsgauge.methods.table import JUDGES, METHODS, method_of
from epsgauge.runner.code import code_of_reference
from epsgauge.settings import AuditSettings, changed


@dataclass(frozen=True)
class Own:
    """An attack or a method of the user's: the name under which it was asked for, and a hash of its code."""

    what: str
    name: str
    code: str | None  # None: it comes from no file
    altered: bool  # an object with other parameters than its class has by itself


@dataclass(frozen=True)
class Setup:
    """Settings with the attack and the method that they name."""

    settings: AuditSettings
    attack: Attack
    method: Method | None  # that the settings name for the verdict; None: the sharpest for such an audit
    own: tuple[Own, ...] = ()  # what of it is not built in


def setup_of(declared: AuditSettings, changes: Mapping[str, Any], *, control: bool = False) -> Setup:
    """`declared` with some settings changed. Only code that the changes name is loaded: these come from the user.

    A control run has no noise: where a method of DP-SGD is named, the sharpest other one judges it.
    """
    values, own = dict(changes), []
    attack, method = values.get("attack"), values.get("verdict_method")
    if attack is not None:
        attack = attack_of(attack)
        values["attack"] = _name(changes["attack"], attack, ATTACKS)
        own.append(_own("attack", values["attack"], changes["attack"], attack, ATTACKS))
    if method is not None:
        method = method_of(method, "verdict_method", JUDGES)
        values["verdict_method"] = _name(changes["verdict_method"], method, METHODS)
        own.append(_own("method", values["verdict_method"], changes["verdict_method"], method, METHODS))
    settings = changed(declared, values)
    if attack is None:
        attack = _built_in(settings.attack or "percentile", ATTACKS, "attack")
    if method is None and settings.verdict_method is not None:
        method = _built_in(settings.verdict_method, METHODS, "verdict_method")
    if method is not None and not method.may_judge:
        raise InvalidInput(f"verdict_method must be one that may judge, which {method.name} may not. Leave it out.")
    if method is not None and method.of_claimed_mu and not settings.by_mu:
        raise InvalidInput(f'verdict_method = "{method.name}" judges claims stated as claimed_mu alone.')
    if control and method is not None and method.of_dpsgd:
        method = None
    return Setup(settings, attack, method, tuple(each for each in own if each is not None))


def _own(what: str, name: str, asked: Any, found: Attack | Method, known: Mapping[str, Any]) -> Own | None:
    return None if name in known else Own(what, name, code_of_reference(name), _altered(asked, found))


def _altered(asked: Any, found: Attack | Method) -> bool:
    """Whether an object is not what its class makes by itself; a name stands for what the file says."""
    if isinstance(asked, str | type):
        return False
    try:
        by_itself = type(found)()
        same = found == by_itself if dataclasses.is_dataclass(found) else vars(found) == vars(by_itself)
    except Exception:  # of the user's code: it needs parameters, or has a mind of its own
        return True
    return not same or "<locals>" in type(found).__qualname__


def _name(asked: Any, found: Attack | Method, known: Mapping[str, Any]) -> str:
    """What the settings remember: a name of the table, else where the class is."""
    if isinstance(asked, str):
        return asked
    if known.get(found.name) is found:
        return str(found.name)
    kind = type(found)
    return f"{kind.__module__}:{kind.__qualname__.replace('<locals>.', '')}"


def _built_in(name: str, known: Mapping[str, Any], key: str) -> Any:
    if name in known:
        return known[name]
    raise InvalidInput(
        f'the plan declares {key} = "{name}", which is your own code, and no code is loaded because a run directory '
        f"names it. Name it again: --{key.replace('_', '-')} {name}, or {key}= in Python."
    )
