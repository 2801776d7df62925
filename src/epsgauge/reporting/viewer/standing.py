"""How a run stands, without its results: read from its store, or known from an earlier reading of the same content."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from epsgauge.reporting.viewer.cache import Cache, Facts
from epsgauge.runner import looks
from epsgauge.runner.store import FILE
from epsgauge.runner.view import Brief, Run, opened

State = Literal["running", "complete", "stopped"]
Stamp = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Standing:
    """How a run stands, without its results; `trouble` is why it cannot be read."""

    id: str
    facts: Facts
    running: bool
    looks: int
    content: str  # another one as soon as anything is written to the store, which looks are not
    trouble: str | None = None

    @property
    def name(self) -> str:
        return self.facts.name

    @property
    def state(self) -> State:
        return "running" if self.running else "complete" if self.facts.over else "stopped"

    @property
    def n_models(self) -> int:
        return self.facts.n_models

    @property
    def n_done(self) -> int:
        return self.facts.n_done

    @property
    def n_failed(self) -> int:
        return self.facts.n_failed

    @property
    def n_over(self) -> int:
        return self.n_done + self.n_failed

    @property
    def finished(self) -> bool:
        """Whether all planned models were played: then its results may be shown without a word before."""
        return self.trouble is None and self.state == "complete"

    def brief(self, path: Path) -> Brief:
        """What a look at its results is logged with."""
        return Brief(path, self.n_done, self.n_models, self.facts.as_planned)


def standing_of(run_id: str, path: Path, cache: Cache, *, running: bool) -> Standing:
    """From what is known of this content, else from the whole store, which takes a second for 100,000 models."""
    content, looks = content_of(path)
    facts = cache.facts(content)
    if facts is None:
        facts = _facts(Run.open(path))
        if not running and content_of(path)[0] == content:
            cache.keep(content, facts)
    return Standing(run_id, facts, running, looks, content)


def troubled(run_id: str, trouble: str) -> Standing:
    nothing = Facts(name=run_id, n_models=0, n_done=0, n_failed=0, over=False, as_planned=False)
    return Standing(run_id, nothing, False, 0, "", trouble)


def unread(run_id: str) -> Standing:
    """Of which nothing but its place is known yet."""
    return replace(troubled(run_id, ""), trouble=None)


def content_of(path: Path) -> tuple[str, int]:
    """What changes whenever the store does, and how many looks were logged, which are no part of it."""
    with opened(path) as store:
        return store.state(), len(store.looks())


def results_key(run: Run) -> tuple[Any, ...]:
    """Another one as soon as the results are; a look that is logged changes the store, and not this."""
    begun, digests = run.provenance.get("time"), tuple(each.digest for each in run.declarations)
    flags = (run.extended_after_look, run.refit_after_look, run.code_changed, run.stop_when, tuple(run.notes))
    models = (run.done.tobytes(), run.failed_models.tobytes(), run.retried_after_look.tobytes())
    return (str(run.path), begun, json.dumps(run.plan.tables(), default=str), digests, flags, models)


def stamp_of(folder: Path) -> Stamp:
    """Changes whenever the store or the log of looks does."""
    stamp = []
    for name in (FILE, f"{FILE}-wal", looks.FILE):
        try:
            stat = (folder / name).stat()
            stamp.append((stat.st_mtime_ns, stat.st_size))
        except OSError:
            stamp.append((0, 0))
    return tuple(stamp)


def _facts(run: Run) -> Facts:
    plan, begun = run.plan, run.provenance.get("time")
    return Facts(
        name=plan.name,
        n_models=plan.n_models,
        n_done=run.n_done,
        n_failed=run.n_failed,
        over=run.progress.n_left <= 0,
        as_planned=run.unplanned is None,
        begun=begun if isinstance(begun, str) else None,
        tags=plan.tags,
        attack=plan.audit.attack,
        claimed=plan.audit.claimed_eps,
    )
