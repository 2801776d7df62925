"""The runs of a folder: which there are, how each stands, and no path that leads out of it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.reporting.viewer.cache import Cache
from epsgauge.reporting.viewer.standing import Stamp, Standing, stamp_of, standing_of, troubled
from epsgauge.runner import lock, looks
from epsgauge.runner.store import FILE
from epsgauge.runner.view import Run

DEPTH = 4  # folders below the one that is viewed
MOST = 5_000  # folders that are searched
FILES = (FILE, f"{FILE}-wal", f"{FILE}-shm", f"{FILE}-journal", lock.FILE, looks.FILE)


class Folder:
    """A folder of runs. What a page asks for by its id must be one of these, wherever links in the folder point to."""

    def __init__(self, root: str | os.PathLike[str], cache: Cache | None = None) -> None:
        path = Path(root)
        if path.is_file():
            raise InvalidInput(f"a folder of runs is needed, but {path} is a file. Name the folder that runs are in.")
        if not path.is_dir():
            raise InvalidInput(f"there is no folder {path}. `epsgauge demo --out {path}` makes one with five runs.")
        self.root = path.resolve()
        self.cache = Cache(None) if cache is None else cache
        self.left_out: str | None = None  # which folders the last listing did not search
        self._listed: dict[str, Path] = {}
        self._statuses: dict[str, tuple[Stamp, dict[str, Any]]] = {}
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
        """As the command shows it; read again only where files have changed."""
        with self._reading(run_id) as path:
            stamp, _ = _now(path)
            known = self._statuses.get(run_id)
            if known is None or known[0] != stamp:
                known = self._statuses[run_id] = stamp, Run.open(path).status()
            return known[1]

    def standing(self, run_id: str) -> Standing:
        """How it stands now; read again only where its files have changed, or where it could not be read."""
        stamp: Stamp | None = None
        try:
            with self._reading(run_id) as path:
                stamp, running = _now(path)
                known = self._known.get(run_id)
                if known is not None and known[0] == stamp and known[1].trouble is None:
                    return known[1]
                standing = standing_of(run_id, path, self.cache, running=running)
        except (EpsgaugeError, OSError) as error:
            standing = troubled(run_id, str(error))
        except Exception as error:  # a store that somebody else wrote must not take the list with it
            standing = troubled(run_id, f"it cannot be read ({type(error).__name__}). Restore it from a copy.")
        if stamp is not None:
            self._known[run_id] = (stamp, standing)
        return standing

    def glance(self, run_id: str) -> tuple[Standing | None, bool]:
        """How it stood when it was last read, and whether its files are still the same. No store is opened."""
        known, path = self._known.get(run_id), self._listed.get(run_id)
        if known is None or path is None:
            return None, False
        try:
            return known[1], known[1].trouble is None and _now(path)[0] == known[0]
        except (EpsgaugeError, OSError):
            return known[1], False

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
                holds = self._holds(folder)
                if holds is None:
                    found[_id(folder.relative_to(self.root))] = folder
                else:
                    below += holds
            level = below
        if level:
            self.left_out = f"Folders more than {DEPTH} levels below this one were not searched for runs."
        return found

    def _holds(self, folder: Path) -> list[Path] | None:
        """The folders in it that may be searched; None of one that is a run. It is within the folder that is viewed."""
        below = []
        try:
            with os.scandir(folder) as entries:
                named = {entry.name: entry for entry in entries}
            if FILE in named and named[FILE].is_file():
                linked = (name for name in FILES if name in named and named[name].is_symlink())
                return None if all(self._within(folder / name) for name in linked) else []
            for name, entry in named.items():
                if not name.startswith(".") and entry.is_dir() and (not entry.is_symlink() or self._within(entry)):
                    below.append(folder / name)
        except OSError:
            return []
        return sorted(below)

    def _is_run(self, folder: Path) -> bool:
        """Whether it holds a store, and it and all that belongs to it are within the folder that is viewed."""
        return self._within(folder) and self._holds(folder) is None

    def _within(self, path: os.PathLike[str]) -> bool:
        try:
            return Path(path).resolve().is_relative_to(self.root)
        except (OSError, RuntimeError):  # a loop of links
            return False


def _gone(run_id: str) -> InvalidInput:
    return InvalidInput(f"there is no run {run_id!r} here. It may have been moved or deleted.")


def _id(relative: Path) -> str:
    """The path as text, also where it is no UTF-8."""
    return os.fsencode(relative.as_posix()).decode("utf-8", "backslashreplace")


def _now(path: Path) -> tuple[Stamp, bool]:
    """Changes whenever the store does, or whether somebody runs it."""
    running = lock.holder(path) is not None
    return (*stamp_of(path), (int(running), 0)), running
