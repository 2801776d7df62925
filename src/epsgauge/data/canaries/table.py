"""The one table of canaries, and what a plan's `canaries` makes of data: one by its name, or all that can be made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from epsgauge.data.canaries.adversarial import Adversarial
from epsgauge.data.canaries.canary import Canary, Pair
from epsgauge.data.canaries.distribution import OutOfDistribution
from epsgauge.data.canaries.label import Blank, ClipBkd, Label, Mislabelled
from epsgauge.data.canaries.opposite import FarOpposite, Opposite, RareOpposite
from epsgauge.data.canaries.outlier import LargeNorm, Outlier, Spike
from epsgauge.data.canaries.rare_group import RareGroup
from epsgauge.data.canaries.view import View, view_of
from epsgauge.data.canaries.words import EmptyText, RareToken, StrangeWords
from epsgauge.errors import InvalidInput

CANARIES: dict[str, Canary] = {
    canary.name: canary
    for canary in (
        Opposite(),
        FarOpposite(),
        RareOpposite(),
        Label(),
        ClipBkd(),
        Outlier(),
        Spike(),
        LargeNorm(),
        RareGroup(),
        Mislabelled(),
        Blank(),
        OutOfDistribution(),
        Adversarial(),
        StrangeWords(),
        EmptyText(),
        RareToken(),
    )
}
AUTO = "auto"
WRONG_LABELS = "wrong-labels"  # many pairs
USUAL = 11  # canaries of tables and images


def canaries_of(name: str, raw: Any, *, of_label: bool = False) -> tuple[list[str], Any, Any]:
    """Their names, all z0 and all z1, in the format of the data; `name` is one, or "auto" for all that it tries.

    `of_label`: of these, those alone that are one record with two labels.
    """
    view = view_of(raw)
    tried = [each for each, canary in CANARIES.items() if canary.tried and (canary.of_label or not of_label)]
    pairs = _distinct(view, tried if name == AUTO else [name])
    if not pairs:
        shape = f"{view.kind} of shape {view.x.shape[1:]} and {'no' if view.y is None else 'their'} labels"
        raise InvalidInput(
            f'canaries = "{name}" cannot be made for these data ({shape}). Give canaries of your own as "module:attr", '
            'or say challenge = "average".'
        )
    zeros, ones = zip(*pairs.values(), strict=True)
    return list(pairs), view.write(zeros), view.write(ones)


def _distinct(view: View, names: Sequence[str]) -> dict[str, Pair]:
    """Those that can be made, each once, with two different records."""
    found: dict[str, Pair] = {}
    seen: set[bytes] = set()
    for name in names:
        pair = CANARIES[name].pair(view)
        if pair is None:
            continue
        z0, z1 = (np.asarray(r.x).tobytes() + repr(r.y).encode() for r in pair)
        if z0 == z1 or z0 + z1 in seen:
            continue
        seen.add(z0 + z1)
        found[name] = pair
    return found
