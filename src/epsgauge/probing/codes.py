"""The codes of findings: what a probe can refute, each with a section in docs/findings.md."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["critical", "high", "medium"]
PAGE = "docs/findings.md"


@dataclass(frozen=True)
class Rule:
    """One thing that can be wrong with a training, and the finding that tests it.

    Critical: one record can be given away, or no ε holds. High: the true ε is larger than the accounted one. Medium:
    the accounted ε does not apply, and the leak may be small.
    """

    code: str
    finding: str
    severity: Severity
    title: str


_RULES = (
    Rule("P100", "accounting", "high", "The claimed ε does not follow from rate, noise and steps"),
    Rule("P101", "noise", "critical", "There is less noise than accounted"),
    Rule("P102", "fresh noise", "critical", "Noise is used twice, taken back or missing in some steps"),
    Rule("P130", "fresh noise", "high", "Noise is not correlated as stated"),
    Rule("P103", "independence", "high", "Noise is correlated between parameters"),
    Rule("P104", "sensitivity", "critical", "Replacing a record moves an update by more than clipping allows"),
    Rule("P105", "sensitivity", "high", "Adding a record moves an update by more than clipping allows"),
    Rule("P106", "sensitivity", "critical", "A record makes an update NaN or infinite"),
    Rule("P107", "clipping", "high", "The batch is clipped, not each record"),
    Rule("P108", "clipping", "high", "Groups of records are clipped, not each record"),
    Rule("P109", "one record", "critical", "A clipped gradient is longer than the clipping norm"),
    Rule("P131", "adaptive norm", "high", "A clipping norm that adapts has less noise than stated"),
    Rule("P110", "sampling rate", "high", "Records take part more often than accounted"),
    Rule("P111", "Poisson batches", "medium", "Batches are shuffled"),
    Rule("P112", "Poisson batches", "medium", "All batches have the same size"),
    Rule("P113", "empty batches", "medium", "Steps without records are left out"),
    Rule("P114", "empty batches", "high", "A batch without records makes an update NaN"),
    Rule("P115", "steps", "high", "The training makes more steps than accounted"),
    Rule("P116", "steps", "medium", "The number of steps is random"),
    Rule("P117", "bypass", "critical", "The model depends on the data other than through its updates"),
    Rule("P118", "left out", "medium", "The number of records shows"),
    Rule("P119", "left out", "medium", "Updates are divided by the number of records"),
    Rule("P120", "left out", "medium", "The sampling rate comes from the number of records"),
    Rule("P121", "sensitivity", "critical", "Outputs of neighbours are farther apart than stated"),
    Rule("P140", "scale", "medium", "The stated clipping norm or divisor is wrong"),
    Rule("P150", "sampling rate", "medium", "A record moves updates of batches that it is not in"),
    Rule("P151", "Poisson batches", "medium", "Too many batches have the same size"),
    Rule("P152", "sensitivity", "high", "The clipping norm of a step depends on the records of its batch"),
    Rule("P153", "sensitivity", "critical", "What a record adds to an update depends on the others of its batch"),
    Rule("P154", "Poisson batches", "high", "Batches are larger than accounted"),
    Rule("P155", "Poisson batches", "high", "A batch is used for several steps"),
    Rule("P160", "preparation", "high", "Records were prepared with statistics of themselves"),
)
RULES: dict[str, Rule] = {rule.code: rule for rule in _RULES}
