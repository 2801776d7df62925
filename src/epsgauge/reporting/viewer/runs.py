"""The runs of a folder: which there are, how each stands, and no path that leads out of it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.runner import lock, looks
from epsgauge.runner.store import FILE
from epsgauge.runner.view import Run

DEPTH = 4  # folders below the one that is viewed
MOST = 5_000  # folders that are searched
FILES = (FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal", lock.FILE, looks.FILE)

State = Literal["running", "complete", "stopped"]
Stamp = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class Standing:
    """How a run stands, without its results; `trouble` is why it cannot be read."""

    id: str
    name: str
    state: State
    n_models: int
    n_done: int
    n_failed: int
    looks: int
    trouble: str | None = None

    @property
    def n_over(self) -> int:
        return self.n_done + self.n_failed

    @property
    def finished(self) -> bool:
        """Whether all planned models were played: then its results may be shown without a word before."""
        return self.trouble is None and self.state == "complete"


class Folder:
    """A folder of runs. What a page asks for by its id must be one of these, wherever links in the folder point to."""

    def __init__(self, root: str | os.PathLike[str]) -> None:
        path = Path(root)
        if not path.is_dir():
            raise InvalidInput(f"there is no folder {path}. `epsgauge demo --out {path}` makes one with five runs.")
        self.root = path.resolve()
        self.left_out: str | None = None  # which folders the last listing did not search
        self._listed: dict[str, Path] = {}
        self._known: dict[str, tuple[Stamp, Standing]] = {}

    def ids(self) -> list[str]:
        """All runs, in the order of their names."""
        self._listed = self._paths()
        return sorted(self._listed)

    def path(self, run_id: str) -> Path:
        """Where a run is; only what the listing has is ever opened."""
        path = self._listed.get(run_id)
        if path is None or not self._is_run(path):
            self._listed = self._paths()
            path = self._listed.get(run_id)
        if path is None:
            raise _gone(run_id)
        return path

    @contextmanager
    def _reading(self, run_id: str) -> Iterator[Path]:
        """A run that goes while it is read is gone, whatever the reading says."""
        path = self.path(run_id)
        try:
            yield path
        except (EpsgaugeError, OSError):
            if not self._is_run(path):
                raise _gone(run_id) from None
            raise

    def open(self, run_id: str) -> Run:
        with self._reading(run_id) as path:
            return Run.open(path)

    def status(self, run_id: str) -> dict[str, Any]:
        with self._reading(run_id) as path:
            return Run.open(path).status()

    def standing(self, run_id: str) -> Standing:
        """How it stands now; read again only where its files have changed."""
        try:
            with self._reading(run_id) as path:
                running = lock.holder(path) is not None
                stamp = (*stamp_of(path), (int(running), 0))
                known = self._known.get(run_id)
                if known is not None and known[0] == stamp:
                    return known[1]
                standing = _standing(run_id, Run.open(path), running)
        except (EpsgaugeError, OSError) as error:
            return _troubled(run_id, str(error))
        except Exception as error:  # a store that somebody else wrote must not take the list with it
            return _troubled(run_id, f"it cannot be read ({type(error).__name__}). Restore it from a copy.")
        self._known[run_id] = (stamp, standing)
        return standing

    def _paths(self) -> dict[str, Path]:
        found: dict[str, Path] = {}
        level, searched = [self.root], 0
        self.left_out = None
        for _ in range(DEPTH + 1):
            below: list[Path] = []
            for folder in level:
                searched += 1
                if searched > MOST:
                    self.left_out = f"Only the first {MOST:,} folders were searched for runs."
                    return found
                if self._is_run(folder):
                    found[_id(folder.relative_to(self.root))] = folder
                else:
                    below += self._folders(folder)
            level = below
        if level:
            self.left_out = f"Folders more than {DEPTH} levels below this one were not searched for runs."
        return found

    def _is_run(self, folder: Path) -> bool:
        """Whether it holds a store, and it and all that belongs to it are within the folder that is viewed."""
        try:
            return (folder / FILE).is_file() and all(
                (folder / name).resolve().is_relative_to(self.root) for name in ("", *FILES)
            )
        except (OSError, RuntimeError):  # a loop of links
            return False

    def _folders(self, folder: Path) -> list[Path]:
        try:
            with os.scandir(folder) as entries:
                below = [Path(entry.path) for entry in entries if not entry.name.startswith(".") and entry.is_dir()]
            return sorted(path for path in below if path.resolve().is_relative_to(self.root))
        except (OSError, RuntimeError):
            return []


def _gone(run_id: str) -> InvalidInput:
    return InvalidInput(f"there is no run {run_id!r} here. It may have been moved or deleted.")


def _id(relative: Path) -> str:
    """The path as text, also where it is no UTF-8."""
    return os.fsencode(relative.as_posix()).decode("utf-8", "backslashreplace")


def results_key(run: Run) -> tuple[Any, ...]:
    """Another one as soon as the results are; a look that is logged changes the store, and not this."""
    begun, digests = run.provenance.get("time"), tuple(each.digest for each in run.declarations)
    flags = (run.extended_after_look, run.refit_after_look, run.code_changed, run.stop_when, tuple(run.notes))
    models = (run.done.tobytes(), run.failed_models.tobytes(), run.retried_after_look.tobytes())
    return (str(run.path), begun, json.dumps(run.plan.tables(), default=str), digests, flags, models)


def stamp_of(folder: Path) -> Stamp:
    """Changes whenever the store does."""
    stamp = []
    for name in (FILE, f"{FILE}-wal"):
        try:
            stat = (folder / name).stat()
            stamp.append((stat.st_mtime_ns, stat.st_size))
        except OSError:
            stamp.append((0, 0))
    return tuple(stamp)


def _standing(run_id: str, run: Run, running: bool) -> Standing:
    over = run.progress.n_left <= 0
    state: State = "running" if running else "complete" if over else "stopped"
    return Standing(run_id, run.plan.name, state, run.plan.n_models, run.n_done, run.n_failed, len(run.looks))


def _troubled(run_id: str, trouble: str) -> Standing:
    return Standing(run_id, run_id, "stopped", 0, 0, 0, 0, trouble)
