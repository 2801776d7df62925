"""The list of runs for a session: what is known of each at once, the rest as it comes; a verdict shown is a look."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

from epsgauge.errors import EpsgaugeError
from epsgauge.reporting.viewer.listing import COLUMNS, NUMBERS, Row, Wanted
from epsgauge.reporting.viewer.render import page
from epsgauge.reporting.viewer.runs import Folder
from epsgauge.reporting.viewer.seen import UNLOGGED, Seen
from epsgauge.reporting.viewer.verdicts import Verdicts

MOMENT = 0.08  # seconds that an answer may wait for more, and again that it may take to log looks


@dataclass(frozen=True)
class Listed:
    """The rows that an address asks for, and how many there are in all."""

    rows: list[Row]
    n_all: int
    n_pending: int  # that are still read or judged, also among those that are not shown
    tags: list[str]


class Board:
    """Reads what is known already; stores are opened by the workers of `verdicts` alone."""

    def __init__(self, folder: Folder, seen: Seen, verdicts: Verdicts) -> None:
        self.folder = folder
        self.seen = seen
        self.verdicts = verdicts

    def listed(self, session: str, wanted: Wanted) -> Listed:
        ids = self.folder.ids()
        rows = [self._read(run_id) for run_id in ids]
        if any(row.standing is None for row in rows):
            self.verdicts.wait(MOMENT)
            rows = [self._read(run_id) for run_id in ids]
        until = time.monotonic() + MOMENT
        fit = [self._judged(session, row, until) for row in rows if row.standing is None or wanted.may_show(row)]
        tags = sorted({tag for row in rows for tag in row.tags} | set(wanted.tags))
        return Listed(wanted.shown(fit), len(ids), sum(row.pending for row in fit), tags)

    def _read(self, run_id: str) -> Row:
        standing, same = self.folder.glance(run_id)
        if not same:
            self.verdicts.ask(run_id)
        return Row(run_id, standing, pending=standing is None)

    def _judged(self, session: str, row: Row, until: float) -> Row:
        """With its verdict, if it is there and the look at it is logged."""
        standing = row.standing
        if standing is None or not standing.finished:
            return row
        found = self.verdicts.of(standing)
        if found is None:
            return replace(row, pending=True)
        if found.verdict is None:
            return replace(row, trouble=found.trouble)
        if not self.seen.has_looked(session, row.id, standing.n_done):
            if time.monotonic() > until:
                return replace(row, pending=True)
            try:
                path = self.folder.path(row.id)
            except EpsgaugeError:  # it went
                return row
            if not self.seen.look(session, row.id, standing.brief(path)):
                return replace(row, verdict=found.verdict, unlogged=True)
            self.folder.standing(row.id)  # which has one look more, and nothing else
        return replace(row, verdict=found.verdict)

    def parts(self, session: str, wanted: Wanted) -> dict[str, object]:
        """The fragments of the page."""
        found = self.listed(session, wanted)
        columns = [(name, title, name in NUMBERS) for name, (title, _, _) in COLUMNS.items()]
        values = {"found": found, "wanted": wanted, "columns": columns, "unlogged": UNLOGGED}
        return {
            "parts": {name: page(f"{name}.html.j2", **values) for name in ("heads", "rows", "tally", "tags")},
            "pending": found.n_pending,
            "any": found.n_all > 0,
            "leftOut": self.folder.left_out,
        }
