"""Probe: what came out, to show, to keep and to read again."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter, ValidationError

from epsgauge.adjacency import Adjacency
from epsgauge.display import Printed
from epsgauge.errors import InvalidInput
from epsgauge.files import replace
from epsgauge.mechanisms.privacy import DPSGD
from epsgauge.numbers import json_ready, number
from epsgauge.probing.finding import LEVEL, Finding

UNSEEN = (
    "A probe cannot see noise whose seed others know, what is done before the data reach the trainer, how often a "
    "training is repeated, what else is released, and leaks that need other records than those that were tried."
)


@dataclass(frozen=True, repr=False)
class Probe(Printed):
    """What was found. `refuted` is empty, and so false, where nothing contradicts the accountant."""

    privacy: DPSGD  # what the accountant assumes
    delta: float
    adjacency: Adjacency
    accounted_eps: float | None  # by those numbers; None without dp-accounting
    claimed_eps: float | None
    found_eps: float | None  # at least this much with what was found; None where nothing says more
    findings: tuple[Finding, ...]
    n_trainings: int
    seconds: float
    seed: int = 0
    other_eps: float | None = None  # by the same numbers, under the other adjacency
    notes: tuple[str, ...] = ()  # what else was seen, a sentence each

    @property
    def refuted(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.result == "refuted")

    @property
    def sentence(self) -> str:
        """What came out, as one sentence."""
        bad, untested = self.refuted, ", ".join(f.name for f in self.findings if f.result == "not tested")
        if not bad:
            rest = f" Not tested: {untested}." if untested else ""
            said = f"Consistent: nothing that was tested contradicts what is accounted.{rest}"
            return f"{said} A probe can refute, but never verify."
        said = f"Refuted: {', '.join(f.name for f in bad)}. The pipeline is not what the accountant assumes."
        if self.found_eps is not None:
            before = "" if self.accounted_eps is None else f"Accounted ε = {number(self.accounted_eps)}; "
            said += f" {before}{'w' if before else 'W'}ith what was found, the accountant would say at least "
            said += f"{number(self.found_eps)} (δ = {self.delta:g}, {self.adjacency})."
        return said

    @property
    def other_adjacency(self) -> Adjacency:
        return "add-remove" if self.adjacency == "substitute" else "substitute"

    def repeat(self, finding: Finding, target: str | None = None) -> str:
        """One line that makes this finding again: a command for a plan or a script, else a call."""
        if target is None:
            return f'eg.probe(…, only=["{finding.name}"], seed={self.seed})'
        return f"epsgauge probe --only {finding.name.lower().replace(' ', '-')} --seed {self.seed} {target}"

    @property
    def brief(self) -> str:
        """What came out, in a line."""
        bad = ", ".join(f.name for f in self.refuted)
        what = f"refuted: {bad}" if bad else "nothing contradicts what is accounted"
        return f"{what} ({self.n_trainings} short trainings)"

    def to_json(self) -> dict[str, Any]:
        said = {"sentence": self.sentence, "refuted": bool(self.refuted), "level": 1 - LEVEL, "cannot_see": UNSEEN}
        return {**said, **asdict(self)}

    def save(self, path: str | os.PathLike[str]) -> Path:
        """As JSON; `Probe.read` reads it again, and a report can show it."""
        target = Path(path)
        text = json.dumps(json_ready(self.to_json()), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        try:
            replace(target, text)
        except OSError as error:
            raise InvalidInput(f"the probe could not be written to {str(target)!r}: {error.strerror}.") from None
        return target

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        try:
            return TypeAdapter(cls).validate_json(Path(path).read_bytes())
        except OSError as error:
            raise InvalidInput(
                f"the probe {str(path)!r} could not be read: {error.strerror}. `epsgauge probe PLAN --out FILE` writes "
                "one."
            ) from None
        except (ValidationError, ValueError) as error:
            raise InvalidInput(
                f"{str(path)!r} must be what `epsgauge probe --out` wrote, but it is not: {_first(error)}. Probe again."
            ) from None

    def __repr__(self) -> str:
        return f"Probe({len(self.refuted)} of {len(self.findings)} findings refuted: {self.sentence})"


@dataclass(frozen=True)
class Unprobed:
    """Why there is no probe of a training."""

    reason: str

    @property
    def brief(self) -> str:
        return f"none: {self.reason}"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def from_json(entry: Any) -> Probe | Unprobed | None:
    """What `to_json` gave of either; a ValueError where it is something else."""
    return TypeAdapter[Probe | Unprobed | None](Probe | Unprobed | None).validate_python(entry)


def _first(error: ValueError) -> str:
    if isinstance(error, ValidationError):
        problem = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in problem["loc"])
        return f"{where}: {problem['msg']}" if where else str(problem["msg"])
    return str(error)
