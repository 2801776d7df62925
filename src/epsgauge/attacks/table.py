"""The one table of attacks, and an attack from a name, a reference or an object."""

from __future__ import annotations

from typing import Any

from epsgauge.attacks.attack import Attack
from epsgauge.attacks.difference import Difference
from epsgauge.attacks.loss import Loss
from epsgauge.attacks.percentile import Percentile
from epsgauge.errors import InvalidInput
from epsgauge.references import is_reference, load, nearest, users_code

ATTACKS: dict[str, Attack] = {attack.name: attack for attack in (Percentile(), Loss(), Difference())}


def attack_named(name: str) -> Attack:
    """A built-in attack. It imports nothing, so the name may come from a file."""
    if name not in ATTACKS:
        raise InvalidInput(f"attack must be one of {', '.join(ATTACKS)}, but got {name!r}.{nearest(name, ATTACKS)}")
    return ATTACKS[name]


def attack_of(value: Any) -> Attack:
    """An attack that the user names or gives: a built-in name, "module:attr", an Attack or a class of one.

    It imports the module of a reference, so no reference may come from a run directory.
    """
    if isinstance(value, str) and not is_reference(value):
        return attack_named(value)
    found, said = (load(value, "attack"), value) if isinstance(value, str) else (value, type(value).__name__)
    if isinstance(found, type) and issubclass(found, Attack):
        with users_code(f"attack {found.__name__}"):
            found = found()
    if not isinstance(found, Attack):
        raise InvalidInput(
            f'attack must be one of {", ".join(ATTACKS)}, "module:attr" or an object of a class that extends '
            f"epsgauge.attacks.attack.Attack, but got {said}."
        )
    if not (isinstance(found.name, str) and found.name.strip() and found.name.isprintable()):
        raise InvalidInput(f"an attack must have a name, but that of {type(found).__name__} is {found.name!r}.")
    if found.name in ATTACKS and type(found) is not type(ATTACKS[found.name]):
        raise InvalidInput(
            f"an attack of your own must not be called {found.name!r}, which is built in. Give it another name."
        )
    return found
