"""What a trainer promises: the numbers that an accountant needs, or an ε that is known without one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from epsgauge.adjacency import Adjacency
from epsgauge.adjacency import checked as checked_adjacency
from epsgauge.errors import InvalidInput
from epsgauge.stats import checks

# How far apart two neighbours' sums of clipped gradients are, in clipping norms: from +1 to −1, or from 0 to 1.
# Two labels at one place can be as far apart as two points.
DISTANCE: dict[Adjacency, float] = {"substitute": 2.0, "add-remove": 1.0, "label-only": 2.0}


@dataclass(frozen=True)
class DPSGD:
    """DP-SGD with Poisson sampling: `steps` sums of clipped gradients, each with Gaussian noise.

    >>> DPSGD(sample_rate=0.1, noise_multiplier=1.0, steps=100)
    DPSGD(sample_rate=0.1, noise_multiplier=1.0, steps=100)
    """

    sample_rate: float
    noise_multiplier: float
    steps: int

    def __post_init__(self) -> None:
        rate = checks.numbers("sample_rate", self.sample_rate)
        checks.within("sample_rate", self.sample_rate, "in (0, 1]", (rate > 0) & (rate <= 1))
        checks.eps(self.noise_multiplier, "noise_multiplier")
        steps = checks.counts("steps", self.steps)
        checks.within("steps", self.steps, "1 or more", np.asarray(steps >= 1))


@dataclass(frozen=True)
class KnownPrivacy:
    """An (ε, δ) that is proven for the mechanism, for one adjacency."""

    eps: float
    adjacency: Adjacency
    delta: float = 0.0

    def __post_init__(self) -> None:
        checks.eps(self.eps)
        checks.delta(self.delta)
        checked_adjacency(self.adjacency)


Privacy = DPSGD | KnownPrivacy


def judged_by_curve(privacy: Privacy | None, adjacency: Adjacency) -> Privacy | None:
    """What a bound may take for DP-SGD's own curve: that is known for whole records, and a label may move less."""
    return None if isinstance(privacy, DPSGD) and adjacency == "label-only" else privacy


_KINDS: dict[str, type[DPSGD] | type[KnownPrivacy]] = {"dp-sgd": DPSGD, "known": KnownPrivacy}


def to_json(privacy: Privacy | None) -> dict[str, Any] | None:
    if privacy is None:
        return None
    kind = next(name for name, cls in _KINDS.items() if isinstance(privacy, cls))
    return {"kind": kind, **asdict(privacy)}


def from_json(value: dict[str, Any] | None) -> Privacy | None:
    if value is None:
        return None
    fields = dict(value)
    kind = fields.pop("kind", None)
    if kind not in _KINDS:
        raise InvalidInput(f"the kind of privacy must be one of {', '.join(_KINDS)}, but got {kind!r}.")
    return _KINDS[kind](**fields)
