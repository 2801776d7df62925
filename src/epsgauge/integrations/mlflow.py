"""log_audit: the facts of an audit in a run of MLflow."""

from __future__ import annotations

import json
import math
from typing import Any

from epsgauge.auditing.audit import Audit
from epsgauge.errors import MissingExtra
from epsgauge.numbers import json_ready


def log_audit(audit: Audit, *, prefix: str = "epsgauge") -> None:
    """Log an audit to the active run of MLflow: bounds as metrics, the verdict as tags, report and JSON as artifacts.

    Metrics are `<prefix>.lower_bound` (for any training), `.conditional_lower_bound` (the tag `condition` states its
    condition), `.median`, `.claimed_eps` and `.n_samples`, if they are finite.
    """
    try:
        import mlflow
    except ImportError:
        raise MissingExtra("log_audit needs MLflow. Install it with: pip install mlflow-skinny") from None
    from epsgauge.reporting.report import written

    for name, value in _metrics(audit).items():
        mlflow.log_metric(f"{prefix}.{name}", value)
    mlflow.set_tags({f"{prefix}.{name}": value for name, value in _tags(audit).items()})
    mlflow.log_text(written(audit, "html"), f"{prefix}/report.html")
    text = json.dumps(json_ready(audit.to_json()), indent=2, ensure_ascii=False, allow_nan=False)
    mlflow.log_text(text, f"{prefix}/audit.json")


def _metrics(audit: Audit) -> dict[str, float]:
    curve = audit.verdict.conditional_bound
    found: dict[str, Any] = {
        "lower_bound": audit.verdict.bound.value,
        "conditional_lower_bound": None if curve is None else curve.value,
        "median": audit.posterior.median(),
        "claimed_eps": None if audit.claim is None else audit.claim.eps,
        "n_samples": float(audit.judged.tally.n_samples),
    }
    return {name: float(value) for name, value in found.items() if value is not None and math.isfinite(value)}


def _tags(audit: Audit) -> dict[str, str]:
    v = audit.verdict
    return {
        "verdict": v.kind,
        "promise": v.promise,
        "condition": "" if v.conditional_bound is None else str(v.conditional_bound.condition),
        "adjacency": str(audit.adjacency),
        "delta": f"{v.delta:g}",
        "level": f"{v.level:g}",
        "decision": audit.decision.meaning,
    }
