"""An audit as plain values: what `--json` prints and the report reads."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from epsgauge.auditing.audit import Audit
from epsgauge.auditing.claim import Claim, NoClaim
from epsgauge.auditing.verdict import Verdict
from epsgauge.scores.rules import Given, SameData, Split, SplitPairs
from epsgauge.stats.tally import CELLS, Tally

# Of audit.schema.json, which says what each key means. A key that is added leaves it as it is.
SCHEMA_VERSION = 1


def as_dict(audit: Audit) -> dict[str, Any]:
    """Everything, with infinite numbers as floats still."""
    posterior, judged, claim = audit.posterior, audit.judged, audit.promises.claim
    one_each = audit.evidence.one_each
    ends = posterior.interval(audit.settings.level)
    return {
        "schema_version": SCHEMA_VERSION,
        "name": audit.name,
        "source": audit.source,
        "adjacency": audit.adjacency,
        "scores": _said(audit),
        "sampled": None if audit.sampled is None else asdict(audit.sampled),
        "settings": audit.settings.model_dump(mode="json"),
        "models": {
            "planned": audit.models.planned,
            "done": audit.models.done,
            "failed": audit.models.failed,
            "judged": judged.n_models,
            "fit": len(judged.fit_models),
        },
        "pairs_per_model": audit.pairs_per_model,
        "rule": _rule(audit),
        "tally": _cells(judged.tally),
        "fit_tally": None if judged.fit_tally is None else _cells(judged.fit_tally),
        "guaranteed_tally": _cells(audit.guaranteed_tally),
        "failed_in_guaranteed": {"b=1": one_each.failed_ones, "b=0": one_each.failed_zeros},
        "posterior": {
            "median": float(posterior.median()),
            "mass_at_zero": float(posterior.mass_at_zero),
            "low": float(ends.low),
            "high": float(ends.high),
            "prior": list(posterior.prior),
        },
        "methods": [
            {
                "method": row.method,
                "label": row.label,
                "promise": row.promise,
                "assumptions": list(row.assumptions),
                "level": row.level,
                "delta": row.delta,
                "condition": row.condition,
                "low": row.low,
                "high": row.high,
                "tally": _cells(row.tally),
                "note": row.note,
            }
            for row in audit.rows
        ],
        "accountant": {"source": audit.promises.source, "eps": dict(audit.accountant)},
        "claim": _claim(claim),
        "no_claim_because": claim.reason if isinstance(claim, NoClaim) else None,
        "decision": asdict(audit.decision),
        "verdict": _verdict(audit.verdict),
        "probe": None if (probe := audit.verdict.basis.probe) is None else probe.to_json(),
        "level_kept": audit.level_kept,
        "level_lost_because": None if audit.lost is None else audit.lost.why,
        "looks": audit.looks,
        "declared": None if audit.declaration is None else audit.declaration.to_json(),
        "warnings": list(audit.warnings),
    }


def _said(audit: Audit) -> dict[str, Any] | None:
    """Of a table of scores; its column model says which rows share one where `models` is None."""
    table = audit.evidence.scores
    if audit.source != "scores":
        return None
    lower = table.origin is not None and table.origin.lower_is_in
    return {"bits": table.bits, "models": table.taken_as, "lower_is_in": lower, "direction": audit.direction}


def _cells(tally: Tally) -> dict[str, int]:
    return {cell: int(getattr(tally, cell)) for cell in CELLS}


def _rule(audit: Audit) -> dict[str, Any]:
    choice, threshold = audit.judged.choice, audit.judged.threshold
    chosen = {Given: "given", SameData: "same-data", SplitPairs: "split-pairs", Split: "split"}[type(choice)]
    return {
        "chosen": chosen,
        "threshold": float(threshold),
        "percentile": audit.adversary.percentile,
        "fit_pairs": choice.fit_pairs if isinstance(choice, SplitPairs) else None,
        "seed": getattr(choice, "seed", None),
    }


def _claim(claim: Claim | NoClaim) -> dict[str, Any] | None:
    if isinstance(claim, NoClaim):
        return None
    return {
        "eps": claim.eps,
        "delta": claim.delta,
        "text": claim.text,
        "adjacency": claim.adjacency,
        "source": claim.source,
        "note": claim.note,
        "mu": claim.mu,
        "curve": claim.curve,
    }


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "kind": verdict.kind,
        "bound": verdict.bound.to_json(),
        "conditional_bound": None if verdict.conditional_bound is None else verdict.conditional_bound.to_json(),
        "refutes_curve": verdict.refutes_curve,
        "method": verdict.decided_by.method,
        "meaning": verdict.meaning,
        "promise": verdict.promise,
        "level": verdict.level,
        "delta": verdict.delta,
        "guesses": None if verdict.guesses is None else asdict(verdict.guesses),
        "largest": verdict.largest,
        "without_noise": verdict.without_noise,
        "detectable": verdict.detectable,
        "powerless": verdict.powerless,
        "power": verdict.power,
        "n_samples": int(verdict.tally.n_samples),
        "failed": verdict.failed,
        "adversary": {
            "attack": verdict.adversary.attack,
            "rule": verdict.adversary.rule,
            "access": verdict.adversary.access,
            "canary": verdict.adversary.canary,
            "powers": None if verdict.adversary.powers is None else asdict(verdict.adversary.powers),
        },
        "control": None if verdict.control is None else {**asdict(verdict.control), "sees": verdict.control.sees},
        "broken": [asdict(finding) for finding in verdict.basis.broken],
        "found_eps": verdict.basis.eps,
        "sentence": verdict.sentence,
    }
