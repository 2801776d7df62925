"""The probe of a training as a row of the table."""

from __future__ import annotations

from typing import Any, Literal

import epsgauge as eg


def judge(trainer: Any, data: Any, *, adjacency: Literal["substitute", "add-remove"], seed: int) -> dict[str, Any]:
    found = eg.probe(trainer, data, adjacency=adjacency, seed=seed)
    return {
        "judged_by": "probe",
        "caught": bool(found.refuted),
        "findings": [finding.name for finding in found.refuted],
        "n": found.n_trainings,
    }
