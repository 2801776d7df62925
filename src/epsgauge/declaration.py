"""Declaration: what was fixed before results were seen, with its time and a digest of its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from epsgauge.settings import AuditSettings

SHOWN = 12  # letters of a digest that a sentence has


def digest_of(content: Mapping[str, Any]) -> str:
    """SHA-256 of plain values; their order in a table does not matter."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


def now() -> str:
    """UTC, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True)
class Declaration:
    """One declaration, of a run or in a file of its own. A run may have several: see `Run.declarations`."""

    content: Mapping[str, Any]  # plain values; "audit" has the settings
    digest: str  # of the content
    time: str
    file: str | None = None  # that holds it; None: a run directory does
    n_done: int | None = None  # models of the run that were done then
    n_looks: int = 0  # at results of the run that were logged before it

    @property
    def audit(self) -> AuditSettings:
        return AuditSettings(**self.content["audit"])

    @property
    def beforehand(self) -> bool:
        """Whether no result had been seen, as far as it was logged."""
        return self.n_looks == 0

    @property
    def sentence(self) -> str:
        """Where, when and with which digest."""
        digest = f"digest {self.digest[:SHOWN]}…"
        if self.file is not None:
            return f"Declared beforehand in {self.file}, written {self.moment} ({digest})."
        how = "Declared" if self.beforehand else "Changed"
        return f"{how} at {self.moment}, {self._after} ({digest})."

    @property
    def moment(self) -> str:
        return f"{self.time[:16].replace('T', ' ')} UTC"

    @property
    def _after(self) -> str:
        if not self.beforehand:
            return "after results had been seen"
        if not self.n_done:
            return "before any model was done"
        return f"when {self.n_done} of {self.content['n_models']} models were done and no result had been seen"

    def to_json(self) -> dict[str, Any]:
        return {
            "digest": self.digest,
            "time": self.time,
            "file": self.file,
            "n_done": self.n_done,
            "beforehand": self.beforehand,
            "sentence": self.sentence,
        }


def words(declaration: Declaration | None) -> str:
    """Where, when and with which digest, after the word "declared"."""
    return "not beforehand" if declaration is None else declaration.sentence.removeprefix("Declared ")
