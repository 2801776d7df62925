"""epsgauge measures the differential privacy that a training pipeline really spends."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from epsgauge.attacks.attack import Attack
    from epsgauge.auditing.audit import Audit, audit
    from epsgauge.auditing.beforehand import declare
    from epsgauge.auditing.cohorts import cohorts
    from epsgauge.auditing.coins import Coins, coins, read_coins
    from epsgauge.auditing.compare import compare
    from epsgauge.errors import EpsgaugeError, InvalidInput, MissingExtra
    from epsgauge.integrations.assertion import assert_private
    from epsgauge.mechanisms.privacy import DPSGD, KnownPrivacy
    from epsgauge.methods.intervals import intervals
    from epsgauge.methods.method import Method
    from epsgauge.probing.intrinsic import Intrinsic, intrinsic
    from epsgauge.probing.probe import probe
    from epsgauge.probing.result import Probe
    from epsgauge.reporting.card import card
    from epsgauge.reporting.report import report
    from epsgauge.runner.merge import merge
    from epsgauge.runner.on_dask import Dask
    from epsgauge.runner.on_ray import Ray
    from epsgauge.runner.on_submitit import Submitit
    from epsgauge.runner.plan import Plan
    from epsgauge.runner.run import run
    from epsgauge.runner.verify import verify
    from epsgauge.runner.view import Run
    from epsgauge.sampling.game import MechanismGame
    from epsgauge.scores.importers.table import import_scores
    from epsgauge.scores.rules import Given, SameData, Split, SplitPairs
    from epsgauge.scores.table import Scores
    from epsgauge.stats.interval import Interval
    from epsgauge.stats.posterior import Posterior, estimate, estimate_delta, estimate_mu
    from epsgauge.stats.sizing import largest_eps, sample_size
    from epsgauge.stats.tally import Tally
    from epsgauge.trainers.watching import watching

__version__ = "0.1.0"

# Public name -> the module that has it. Loaded when first used, so that `epsgauge --help` is instant.
_HOME = {
    "Attack": "epsgauge.attacks.attack",
    "Audit": "epsgauge.auditing.audit",
    "Coins": "epsgauge.auditing.coins",
    "DPSGD": "epsgauge.mechanisms.privacy",
    "Dask": "epsgauge.runner.on_dask",
    "EpsgaugeError": "epsgauge.errors",
    "Given": "epsgauge.scores.rules",
    "Interval": "epsgauge.stats.interval",
    "Intrinsic": "epsgauge.probing.intrinsic",
    "InvalidInput": "epsgauge.errors",
    "KnownPrivacy": "epsgauge.mechanisms.privacy",
    "MechanismGame": "epsgauge.sampling.game",
    "Method": "epsgauge.methods.method",
    "MissingExtra": "epsgauge.errors",
    "Plan": "epsgauge.runner.plan",
    "Posterior": "epsgauge.stats.posterior",
    "Probe": "epsgauge.probing.result",
    "Ray": "epsgauge.runner.on_ray",
    "Run": "epsgauge.runner.view",
    "SameData": "epsgauge.scores.rules",
    "Scores": "epsgauge.scores.table",
    "Split": "epsgauge.scores.rules",
    "SplitPairs": "epsgauge.scores.rules",
    "Submitit": "epsgauge.runner.on_submitit",
    "Tally": "epsgauge.stats.tally",
    "assert_private": "epsgauge.integrations.assertion",
    "audit": "epsgauge.auditing.audit",
    "card": "epsgauge.reporting.card",
    "cohorts": "epsgauge.auditing.cohorts",
    "coins": "epsgauge.auditing.coins",
    "compare": "epsgauge.auditing.compare",
    "declare": "epsgauge.auditing.beforehand",
    "estimate": "epsgauge.stats.posterior",
    "estimate_delta": "epsgauge.stats.posterior",
    "estimate_mu": "epsgauge.stats.posterior",
    "import_scores": "epsgauge.scores.importers.table",
    "intervals": "epsgauge.methods.intervals",
    "intrinsic": "epsgauge.probing.intrinsic",
    "largest_eps": "epsgauge.stats.sizing",
    "merge": "epsgauge.runner.merge",
    "probe": "epsgauge.probing.probe",
    "read_coins": "epsgauge.auditing.coins",
    "report": "epsgauge.reporting.report",
    "run": "epsgauge.runner.run",
    "sample_size": "epsgauge.stats.sizing",
    "verify": "epsgauge.runner.verify",
    "watching": "epsgauge.trainers.watching",
}

__all__ = [
    "DPSGD",
    "Attack",
    "Audit",
    "Coins",
    "Dask",
    "EpsgaugeError",
    "Given",
    "Interval",
    "Intrinsic",
    "InvalidInput",
    "KnownPrivacy",
    "MechanismGame",
    "Method",
    "MissingExtra",
    "Plan",
    "Posterior",
    "Probe",
    "Ray",
    "Run",
    "SameData",
    "Scores",
    "Split",
    "SplitPairs",
    "Submitit",
    "Tally",
    "assert_private",
    "audit",
    "card",
    "cohorts",
    "coins",
    "compare",
    "declare",
    "estimate",
    "estimate_delta",
    "estimate_mu",
    "import_scores",
    "intervals",
    "intrinsic",
    "largest_eps",
    "merge",
    "probe",
    "read_coins",
    "report",
    "run",
    "sample_size",
    "verify",
    "watching",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'epsgauge' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
