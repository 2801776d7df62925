"""epsgauge measures the differential privacy that a training pipeline really spends."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epsgauge.errors import EpsgaugeError, InvalidInput, MissingExtra
    from epsgauge.stats.interval import Interval
    from epsgauge.stats.methods import intervals
    from epsgauge.stats.posterior import Posterior, estimate, estimate_delta, estimate_mu
    from epsgauge.stats.sizing import largest_eps, sample_size
    from epsgauge.stats.tally import Tally

__version__ = "0.1.0"

# Public name -> the module that has it. Loaded when first used, so that `epsgauge --help` is instant.
_HOME = {
    "EpsgaugeError": "epsgauge.errors",
    "InvalidInput": "epsgauge.errors",
    "Interval": "epsgauge.stats.interval",
    "MissingExtra": "epsgauge.errors",
    "Posterior": "epsgauge.stats.posterior",
    "Tally": "epsgauge.stats.tally",
    "estimate": "epsgauge.stats.posterior",
    "estimate_delta": "epsgauge.stats.posterior",
    "estimate_mu": "epsgauge.stats.posterior",
    "intervals": "epsgauge.stats.methods",
    "largest_eps": "epsgauge.stats.sizing",
    "sample_size": "epsgauge.stats.sizing",
}

__all__ = [
    "EpsgaugeError",
    "Interval",
    "InvalidInput",
    "MissingExtra",
    "Posterior",
    "Tally",
    "estimate",
    "estimate_delta",
    "estimate_mu",
    "intervals",
    "largest_eps",
    "sample_size",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'epsgauge' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
