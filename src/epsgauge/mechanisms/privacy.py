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

UNKNOWN = "the ε of DP-SGD is known here for noise that each step draws anew, not for noise correlated in time"


@dataclass(frozen=True)
class DPSGD:
    """DP-SGD with Poisson sampling: `steps` sums of clipped gradients, each with Gaussian noise.

    With `correlation` (1, c_1, c_2, …) the noise of step t is w_t + c_1 w_(t-1) + c_2 w_(t-2) + …, where each w has the
    noise multiplier. A probe tests that, but the ε of such noise is not computed here: state it as claimed_eps.

    `norm_noise` is for a clipping norm that follows a noisy count of gradients below it (Andrew et al. 2021): the
    standard deviation of the noise in that count. Then `noise_multiplier` is that of sums and counts together.

    >>> DPSGD(sample_rate=0.1, noise_multiplier=1.0, steps=100)
    DPSGD(sample_rate=0.1, noise_multiplier=1.0, steps=100)
    """

    sample_rate: float
    noise_multiplier: float
    steps: int
    correlation: tuple[float, ...] | None = None
    norm_noise: float | None = None

    def __post_init__(self) -> None:
        rate = checks.numbers("sample_rate", self.sample_rate)
        checks.within("sample_rate", self.sample_rate, "in (0, 1]", (rate > 0) & (rate <= 1))
        checks.eps(self.noise_multiplier, "noise_multiplier")
        steps = checks.counts("steps", self.steps)
        checks.within("steps", self.steps, "1 or more", np.asarray(steps >= 1))
        if self.norm_noise is not None:
            checks.positive("norm_noise", self.norm_noise)
        if self.correlation is not None:
            object.__setattr__(self, "correlation", _filter(self.correlation))

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in vars(self).items() if value is not None)
        return f"{type(self).__name__}({given})"


def _filter(given: Any) -> tuple[float, ...] | None:
    """None where each step has its own noise."""
    found = tuple(float(each) for each in np.atleast_1d(checks.numbers("correlation", given)))
    if found[:1] != (1.0,) or not np.isfinite(found).all():
        raise InvalidInput(
            f"correlation must be finite numbers of which the first is 1, but got {given!r}. Scale noise_multiplier "
            "instead of the first one."
        )
    return found if any(found[1:]) else None


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
    """What a bound may take for DP-SGD's own curve: that is known for whole records, and a label may move less.

    It is not known for noise that is correlated in time.
    """
    unknown = isinstance(privacy, DPSGD) and (adjacency == "label-only" or privacy.correlation is not None)
    return None if unknown else privacy


def independent(privacy: DPSGD) -> None:
    """Refuse to compute what noise that is correlated in time spends."""
    if privacy.correlation is not None:
        raise InvalidInput(f"{UNKNOWN}, but got {privacy!r}. State the ε that was proven for it as claimed_eps.")


_KINDS: dict[str, type[DPSGD] | type[KnownPrivacy]] = {"dp-sgd": DPSGD, "known": KnownPrivacy}


def to_json(privacy: Privacy | None) -> dict[str, Any] | None:
    if privacy is None:
        return None
    kind = next(name for name, cls in _KINDS.items() if isinstance(privacy, cls))
    said = {name: value for name, value in asdict(privacy).items() if value is not None}
    return {"kind": kind, **said, **({"correlation": list(said["correlation"])} if "correlation" in said else {})}


def from_json(value: dict[str, Any] | None) -> Privacy | None:
    if value is None:
        return None
    fields = dict(value)
    kind = fields.pop("kind", None)
    if kind not in _KINDS:
        raise InvalidInput(f"the kind of privacy must be one of {', '.join(_KINDS)}, but got {kind!r}.")
    return _KINDS[kind](**fields)
