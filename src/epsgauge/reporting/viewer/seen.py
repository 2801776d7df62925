"""What a session has seen of each run: results of an unfinished run are asked for, and every look is logged."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock

from epsgauge.reporting.viewer.standing import Standing
from epsgauge.runner.view import Brief

KIND = "view"
UNLOGGED = "This look could not be logged: the folder of the run cannot be written."


class Seen:
    """Which runs a session opened before they were finished, and which looks were logged."""

    def __init__(self) -> None:
        self._opened: set[tuple[str, str]] = set()
        self._logged: set[tuple[str, str, int]] = set()
        self._lock = Lock()

    def may_see(self, session: str, standing: Standing) -> bool:
        return standing.finished or (session, standing.id) in self._opened

    def open(self, session: str, ids: Iterable[str]) -> None:
        """Somebody read what a look costs, and asked for it."""
        self._opened |= {(session, run_id) for run_id in ids}

    def has_looked(self, session: str, run_id: str, n_done: int) -> bool:
        return (session, run_id, n_done) in self._logged

    def look(self, session: str, run_id: str, run: Brief) -> bool:
        """Log that results are shown, once a session for each number of models; False where that cannot be done."""
        key = (session, run_id, run.n_done)
        with self._lock:  # two requests of a page are one look
            if key in self._logged:
                return True
            self._logged.add(key)
        if run.log_look(KIND):
            return True
        self._logged.discard(key)
        return False

    def was_logged(self, session: str, run_id: str, run: Brief) -> None:
        """Somebody else logged this look."""
        self._logged.add((session, run_id, run.n_done))
