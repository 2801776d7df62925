"""What a run's page offers as files: the report as HTML, Markdown or JSON, and the scores as CSV."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from epsgauge.auditing.setup import setup_of
from epsgauge.errors import InvalidInput
from epsgauge.reporting.report import FORMATS, written
from epsgauge.reporting.viewer.audits import Declared
from epsgauge.runner.view import results_of

OFFERED = {"html": "report", "md": "report as Markdown", "json": "audit as JSON", "csv": "scores as CSV"}
TYPES = {"html": "text/html", "md": "text/markdown", "json": "application/json", "csv": "text/csv"}


@dataclass(frozen=True)
class Download:
    name: str
    kind: str
    content: bytes

    @property
    def headers(self) -> dict[str, str]:
        return {"content-disposition": f'attachment; filename="{self.name}"'}


def download_of(declared: Declared, kind: str) -> Download:
    """A file of the declared audit, as the commands `report` and `export` write it."""
    if kind not in OFFERED:
        raise InvalidInput(f"a download is one of {', '.join(OFFERED)}, but got {kind[:40]!r}.")
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", declared.run.plan.name)[:60].strip("-.") or "run"
    content = _scores(declared) if kind not in FORMATS else b""
    for format in FORMATS:
        if format == kind:
            audit = replace(declared.audit, signals=declared.signals)
            content = written(audit, format, out=f"{name}.{kind}").encode("utf-8", "backslashreplace")
    return Download(f"{name}.{kind}", f"{TYPES[kind]}; charset=utf-8", content)


def _scores(declared: Declared) -> bytes:
    """Of every pair, also of models that chose the rule."""
    attack = setup_of(declared.run.plan.audit, {}).attack
    scores = attack.scores(results_of(declared.run).signals)
    with TemporaryDirectory(prefix="epsgauge-") as folder:
        file = Path(folder, "scores.csv")
        scores.write(file)
        return file.read_bytes()
