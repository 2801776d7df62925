"""The ε that a trainer promises: dp-accounting's PLD accountant for DP-SGD, or what is proven for a mechanism."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from epsgauge.adjacency import Adjacency, implies
from epsgauge.adjacency import checked as checked_adjacency
from epsgauge.errors import InvalidInput, MissingExtra
from epsgauge.mechanisms.gaussian import Gaussian
from epsgauge.mechanisms.privacy import DISTANCE, DPSGD, KnownPrivacy, Privacy, independent
from epsgauge.stats import checks

NEEDS = "this needs dp-accounting. Install it with: pip install '.[accounting]' in the folder of epsgauge"
RELATIONS: dict[Adjacency, str] = {
    "substitute": "REPLACE_ONE",
    "add-remove": "ADD_OR_REMOVE_ONE",
    "label-only": "REPLACE_ONE",  # a point whose label changes is replaced: it holds, and may be more than is spent
}


def accountant_eps(privacy: Privacy, *, delta: float, adjacency: Adjacency) -> float | None:
    """ε at `delta` for neighbours as `adjacency` says; None where nothing is known, infinite where nothing is hidden.

    Nothing is known here of noise that is correlated in time.

    DP-SGD: an upper bound, at most about 0.001 above the true value (tests compare with slower ways). A known ε holds
    at its own δ and above it; below it nothing is known.

    >>> accountant_eps(KnownPrivacy(eps=1.0, adjacency="add-remove"), delta=1e-5, adjacency="substitute")
    2.0
    """
    d = checks.one("delta", checks.delta(delta))
    wanted = checked_adjacency(adjacency)
    if isinstance(privacy, KnownPrivacy):
        return _known(privacy, d, wanted)
    if isinstance(privacy, DPSGD):
        return None if privacy.correlation else _dpsgd(privacy, d, wanted)
    raise InvalidInput(f"privacy must be a DPSGD or a KnownPrivacy, but got {privacy!r}.")


def substituted(eps: float, delta: float) -> tuple[float, float]:
    """What (ε, δ) under add/remove implies under substitution: remove one point, then add one.

    Group privacy of two steps: (2ε, (1 + e^ε) δ) (Dwork and Roth 2014, §2.3, for two steps).
    """
    return 2.0 * eps, delta * (1.0 + math.exp(min(eps, 700.0)))


def _known(privacy: KnownPrivacy, delta: float, adjacency: Adjacency) -> float | None:
    eps, least = privacy.eps, privacy.delta
    if not implies(privacy.adjacency, adjacency):
        return None
    if privacy.adjacency == "add-remove" and adjacency != "add-remove":
        eps, least = substituted(eps, least)
    return eps if delta >= least else None


@lru_cache(maxsize=256)
def _dpsgd(privacy: DPSGD, delta: float, adjacency: Adjacency) -> float:
    rate, noise, steps = float(privacy.sample_rate), float(privacy.noise_multiplier), int(privacy.steps)
    if noise == 0 or delta == 0:
        return math.inf
    if rate == 1:  # the sum of all steps is one Gaussian mechanism, whose ε is known
        return Gaussian(noise / (DISTANCE[adjacency] * math.sqrt(steps))).eps_at(delta)
    accountant = composed(privacy, adjacency, width=mesh(noise, steps, DISTANCE[adjacency]))
    return float(accountant.get_epsilon(delta))


def composed(privacy: DPSGD, adjacency: Adjacency, *, width: float) -> Any:
    """dp-accounting's PLD accountant after all steps, with buckets of this width; its δ(ε) is never too small."""
    independent(privacy)
    try:
        import dp_accounting
        from dp_accounting import pld
    except ImportError as error:
        raise MissingExtra(NEEDS) from error
    relation = _relation(dp_accounting, adjacency)
    event = dp_accounting.SelfComposedDpEvent(
        dp_accounting.PoissonSampledDpEvent(
            float(privacy.sample_rate), dp_accounting.GaussianDpEvent(float(privacy.noise_multiplier))
        ),
        int(privacy.steps),
    )
    accountant = pld.PLDAccountant(relation, width)
    if not accountant.supports(event):
        raise InvalidInput(_too_old(adjacency))
    return accountant.compose(event)


def _relation(dp_accounting: Any, adjacency: Adjacency) -> Any:
    relation = getattr(getattr(dp_accounting, "NeighboringRelation", None), RELATIONS[adjacency], None)
    if relation is None:
        raise InvalidInput(_too_old(adjacency))
    return relation


def _too_old(adjacency: Adjacency) -> str:
    return (
        f"dp-accounting must know {RELATIONS[adjacency]} for Poisson-sampled Gaussian noise (adjacency {adjacency}), "
        "but the version installed here does not. Install a newer one: pip install '.[accounting]' in the folder of "
        "epsgauge"
    )


def mesh(noise: float, steps: int, distance: float) -> float:
    """The width of the accountant's buckets of privacy loss.

    Its error is always upwards, and was measured as at most 0.4 · steps · width², so this keeps it below 0.001. A
    finer mesh takes seconds. Where the noise is tiny the losses are huge, and 1e-5 of their range is fine enough.
    """
    reach = distance * (distance / 2 + 10 * noise) / noise**2
    return max(min(0.001, 0.05 / math.sqrt(steps)), 1e-5 * (reach - 100))
