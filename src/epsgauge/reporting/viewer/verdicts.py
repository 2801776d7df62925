"""Verdicts of finished runs: those that were kept, and those that are computed beside the pages, small runs first."""

from __future__ import annotations

import heapq
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from threading import Condition, Thread

from epsgauge.errors import EpsgaugeError
from epsgauge.plain import block
from epsgauge.reporting.viewer.audits import Audits
from epsgauge.reporting.viewer.cache import Known
from epsgauge.reporting.viewer.runs import Folder
from epsgauge.reporting.viewer.standing import Standing, content_of

JUDGES = 2  # so that one large run holds up no other
UNREAD, AT_ONCE = -1, -2  # come before runs of any size, the second for a page that waits


@dataclass(frozen=True)
class Judged:
    """The verdict of a store with this content, or why there is none."""

    content: str
    verdict: Known | None
    trouble: str | None = None


class Verdicts:
    """Nothing is shown here: whoever shows a verdict logs a look."""

    def __init__(self, folder: Folder, audits: Audits) -> None:
        self.folder = folder
        self.audits = audits
        self._found: dict[str, Judged] = {}
        self._unread: list[tuple[int, str]] = []  # heaps: what is to be read, and what is to be judged
        self._unjudged: list[tuple[int, str]] = []
        self._busy: set[str] = set()
        self._changed = Condition()
        self._begun = False

    def of(self, standing: Standing) -> Judged | None:
        """None where it is not there yet: then it is asked for."""
        found = self._found.get(standing.id)
        if found is not None and found.content == standing.content:
            return found
        self.ask(standing.id, standing.n_done)
        return None

    def ask(self, run_id: str, size: int = UNREAD) -> None:
        """Read how a run stands, and judge it if it is finished; once, however often it is asked for."""
        with self._changed:
            wanted = self._unread if size < 0 else self._unjudged
            if run_id in self._busy or (size, run_id) in wanted:
                return
            heapq.heappush(wanted, (size, run_id))
            if not self._begun:
                self._begun = True
                for heap in (self._unread, *[self._unjudged] * JUDGES):
                    Thread(target=self._work, args=(heap,), name="reads and judges runs", daemon=True).start()
            self._changed.notify_all()

    def wait(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """Until nothing is asked for, or what is waited for is there, or so long."""
        end = time.monotonic() + seconds
        with self._changed:
            while (self._unread or self._unjudged or self._busy) and not until():
                if (left := end - time.monotonic()) <= 0:
                    return
                self._changed.wait(left)

    def _work(self, wanted: list[tuple[int, str]]) -> None:
        while True:
            with self._changed:
                while not wanted:
                    self._changed.wait()
                _, run_id = heapq.heappop(wanted)
                self._busy.add(run_id)
            again = self._judge(run_id, read_only=wanted is self._unread)
            with self._changed:
                self._busy.discard(run_id)
                if again is not None and (again, run_id) not in self._unjudged:
                    heapq.heappush(self._unjudged, (again, run_id))
                self._changed.notify_all()

    def _judge(self, run_id: str, *, read_only: bool) -> int | None:
        """One step: what is known at once, or the audit; the size of a run that is still to be judged."""
        standing = self.folder.standing(run_id)
        if not standing.finished:
            return None
        content, verdict, trouble = standing.content, self.folder.cache.verdict(standing.content), None
        if verdict is None and read_only:
            return standing.n_done
        if verdict is None:
            try:
                path = self.folder.path(run_id)
                verdict = Known.of(self.audits.of(path).audit)
                if content_of(path)[0] != content:  # it grew meanwhile, and is asked for again
                    return None
                self.folder.cache.keep(content, standing.facts, verdict)
            except EpsgaugeError as error:
                trouble = str(error)
            except Exception as error:  # a mistake of ours: shown whole, in the terminal alone
                sys.stderr.write(block("".join(traceback.format_exception(error))) + "\n")
                trouble = f"it could not be judged ({type(error).__name__}). The terminal says more."
        self._found[run_id] = Judged(content, verdict, trouble)
        return None
