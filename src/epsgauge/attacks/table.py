"""The one table of attacks, and an attack from a name, a reference or an object."""

from __future__ import annotations

from typing import Any

from epsgauge.attacks.attack import Attack
from epsgauge.attacks.attack_r import AttackR
from epsgauge.attacks.difference import Difference
from epsgauge.attacks.displacement import Displacement
from epsgauge.attacks.lira import Lira
from epsgauge.attacks.lira_offline import LiraOffline
from epsgauge.attacks.loss import Loss
from epsgauge.attacks.margin import Margin
from epsgauge.attacks.percentile import Percentile
from epsgauge.attacks.quantile import Quantile
from epsgauge.attacks.rehearsed import Rehearsed
from epsgauge.attacks.rmia import Rmia
from epsgauge.attacks.shadow import Shadow
from epsgauge.attacks.trajectory import Trajectory
from epsgauge.attacks.updates import Updates
from epsgauge.references import one_of

_OF_LOSSES = (Percentile(), Loss(), Difference(), Margin(), Rehearsed(), Trajectory())
_OF_POINTS = (Lira(), LiraOffline(), AttackR(), Rmia(), Quantile(), Shadow())
_OF_TRAINING = (Updates(), Displacement())
ATTACKS: dict[str, Attack] = {attack.name: attack for attack in (*_OF_LOSSES, *_OF_POINTS, *_OF_TRAINING)}


def attack_of(value: Any) -> Attack:
    """An attack that the user names or gives: a name of the table, "module:attr", an Attack or a class of one."""
    found: Attack = one_of(value, ATTACKS, Attack, "attack")
    return found
