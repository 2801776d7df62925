"""What was read and judged of runs, kept in the user's cache folder by the content of their stores.

One small JSON file per content. A file that is missing, damaged, too large or of another version is as good as none.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

import epsgauge
from epsgauge.auditing.audit import Audit
from epsgauge.auditing.bound import Bound
from epsgauge.auditing.verdict import Ruling
from epsgauge.data.cached import folder as users_folder
from epsgauge.errors import InvalidInput
from epsgauge.files import replace
from epsgauge.runner.plain_files import check_plain, open_plain
from epsgauge.runner.store import FILE
from epsgauge.stats.interval import Kind

FORMAT = 1
MOST_FILES = 5_000
MOST_BYTES = 32_768  # of a file


class _Kept(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="constants")


class Facts(_Kept):
    """What a store says of its run beside results."""

    name: str
    n_models: int = Field(ge=0)
    n_done: int = Field(ge=0)
    n_failed: int = Field(ge=0)
    over: bool  # all planned models were played
    as_planned: bool  # their number was fixed before results were seen
    begun: str | None = None
    tags: tuple[str, ...] = ()
    attack: str | None = None
    claimed: float | None = None  # as the plan states it


class KnownBound(_Kept):
    """A bound of a verdict, with its condition."""

    value: float = Field(ge=0)
    promise: Kind
    short_scope: str
    sentence: str

    @classmethod
    def of(cls, bound: Bound) -> KnownBound:
        return cls(value=bound.value, promise=bound.promise, short_scope=bound.short_scope, sentence=str(bound))


class Known(_Kept):
    """A verdict in a line: what a list shows, and a page until the whole audit is there."""

    kind: Ruling
    bounds: tuple[KnownBound, ...] = Field(min_length=1, max_length=2)
    claimed: float | None
    claimed_text: str
    adjacency: str
    sentence: str
    n_judged: int = Field(ge=0)

    @classmethod
    def of(cls, audit: Audit) -> Known:
        found = audit.verdict
        return cls(
            kind=found.kind,
            bounds=tuple(map(KnownBound.of, found.bounds)),
            claimed=None if audit.claim is None else audit.claim.eps,
            claimed_text="" if audit.claim is None else audit.claim.eps_text,
            adjacency=audit.adjacency,
            sentence=f"{found.head} {found.finding}",
            n_judged=audit.judged.n_models,
        )


class _Entry(_Kept):
    made_by: str
    content: str
    facts: Facts
    verdict: Known | None = None


class Cache:
    """Entries by content; one without a folder keeps nothing."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None or _in_a_run(folder) else folder
        self._n_kept = 0

    @classmethod
    def of_user(cls) -> Cache:
        return cls(users_folder() / "runs")

    def facts(self, content: str) -> Facts | None:
        entry = self._read(content)
        return None if entry is None else entry.facts

    def verdict(self, content: str) -> Known | None:
        entry = self._read(content)
        return None if entry is None else entry.verdict

    def keep(self, content: str, facts: Facts, verdict: Known | None = None) -> None:
        """Where nothing can be written, nothing is kept."""
        if self._folder is None:
            return
        with suppress(OSError, ValueError, InvalidInput):  # ValueError: a name that is no UTF-8
            text = _Entry(made_by=_maker(), content=content, facts=facts, verdict=verdict).model_dump_json()
            if len(text.encode()) > MOST_BYTES:
                return
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = self._file(self._folder, content)
            check_plain(file)  # a pipe would be waited for
            replace(file, text)
            if self._n_kept % 50 == 0:
                self._drop_oldest(self._folder)
            self._n_kept += 1

    def _read(self, content: str) -> _Entry | None:
        if self._folder is None:
            return None
        try:
            with os.fdopen(open_plain(self._file(self._folder, content), os.O_RDONLY), "rb") as file:
                raw = file.read(MOST_BYTES + 1)
            entry = _Entry.model_validate_json(raw)
        except (OSError, InvalidInput, ValidationError):
            return None
        return entry if len(raw) <= MOST_BYTES and (entry.made_by, entry.content) == (_maker(), content) else None

    @staticmethod
    def _file(folder: Path, content: str) -> Path:
        return folder / f"{hashlib.sha256(f'{_maker()} {content}'.encode()).hexdigest()}.json"

    @staticmethod
    def _drop_oldest(folder: Path) -> None:
        with os.scandir(folder) as entries:
            files = sorted((entry.stat(follow_symlinks=False).st_mtime_ns, entry.path) for entry in entries)
        for _, path in files[:-MOST_FILES]:
            with suppress(OSError):
                os.unlink(path)


@cache
def _maker() -> str:
    """The version, and a digest of its files' times and sizes: whoever edits a method is shown no earlier verdict."""
    root = Path(epsgauge.__file__).parent
    found = hashlib.sha256(epsgauge.__version__.encode())
    for file in sorted(root.rglob("*.py")):
        stat = file.stat()
        found.update(f"{file.relative_to(root)} {stat.st_size} {stat.st_mtime_ns}".encode())
    return f"{FORMAT} {epsgauge.__version__} {found.hexdigest()[:32]}"


def _in_a_run(folder: Path) -> bool:
    """Nothing is ever written into a run directory but by its run."""
    return any((above / FILE).exists() for above in (folder, *folder.parents))
