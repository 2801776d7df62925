"""What the pages show: fragments of HTML and pictures, by name, for a session."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Mapping
from threading import Lock
from typing import Any, TypeVar

from epsgauge.auditing.audit import audit
from epsgauge.errors import InvalidInput
from epsgauge.figures.charts import charts_of
from epsgauge.figures.subject import Subject
from epsgauge.methods.table import METHODS
from epsgauge.numbers import percent
from epsgauge.reporting.viewer import calculator, explore, upload
from epsgauge.reporting.viewer.audits import Audits, Declared, Judge
from epsgauge.reporting.viewer.board import MOMENT, Board
from epsgauge.reporting.viewer.downloads import OFFERED, Download, download_of
from epsgauge.reporting.viewer.explore import Explored, Moved
from epsgauge.reporting.viewer.overlays import Overlays
from epsgauge.reporting.viewer.pictures import Pictures, of_scores
from epsgauge.reporting.viewer.render import page, sentence
from epsgauge.reporting.viewer.runs import Folder
from epsgauge.reporting.viewer.seen import UNLOGGED, Seen
from epsgauge.reporting.viewer.standing import Standing, troubled, unread
from epsgauge.reporting.viewer.verdicts import AT_ONCE, Verdicts

Parts = dict[str, Any]
Key = TypeVar("Key", bound=Hashable)
Kept = TypeVar("Kept")
MOST_PAGES = 64  # that are remembered


class Show:
    """Everything that a page can ask for about the runs of one folder."""

    def __init__(self, folder: Folder, judge: Judge | None = None) -> None:
        self.folder = folder
        self.seen = Seen()
        self.audits = Audits(judge)
        self.pictures = Pictures()
        self.overlays = Overlays(folder, self.seen)
        self.verdicts = Verdicts(folder, self.audits)
        self.board = Board(folder, self.seen, self.verdicts)
        self._shown: OrderedDict[tuple[str, str, str], Declared] = OrderedDict()  # what a page's sliders are about
        self._turns: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._slow: dict[str, Lock] = {}  # of each run: one does not wait for another
        self.held = upload.Held()
        self._reading = Lock()  # one dropped file at a time

    # a run

    def first(self, session: str, run_id: str) -> Parts:
        """What is known of a run at once: how it stands, and a verdict that was kept, which is a look."""
        try:
            path = self.folder.path(run_id)
        except InvalidInput as error:
            return {"s": troubled(run_id, str(error)), "may_see": False, "reading": False, "known": None}
        standing, same = self.folder.glance(run_id)
        if standing is None or not same:
            self.verdicts.ask(run_id, AT_ONCE)
            self.verdicts.wait(MOMENT, until=lambda: self.folder.glance(run_id)[1])
            standing, _ = self.folder.glance(run_id)
        if standing is None:
            return {"s": unread(run_id), "may_see": False, "reading": True, "known": None}
        known = self.folder.cache.verdict(standing.content) if standing.finished else None
        if known is not None and not self.seen.look(session, run_id, standing.brief(path)):
            known = None  # the whole answer says that it could not be logged
        return {"s": standing, "may_see": self.seen.may_see(session, standing), "reading": False, "known": known}

    def download(self, session: str, run_id: str, kind: str) -> Download:
        """A file with results: a look, as the page itself is."""
        return download_of(self._declared(session, run_id)[0], kind)

    def progress(self, session: str, run_id: str) -> Parts:
        """How far it is, without results; `step` changes when there is enough to look again."""
        standing = self._readable(run_id)
        status = self.folder.status(run_id)
        every = 1 if standing.finished else max(1, standing.n_models // 100)
        return {
            "parts": {"progress": page("progress.html.j2", s=standing, status=status)},
            "state": standing.state,
            "name": standing.name,
            "step": f"{standing.state == 'complete'} {standing.n_done // every}",
            "maySee": self.seen.may_see(session, standing),
        }

    def results(self, session: str, run_id: str, caller: str = "") -> Parts:
        """The declared verdict, its ruler and the words of the run. A look, which is logged.

        Why it cannot be judged yet is an answer too, and no look. `caller` is one page of the session.
        """
        try:
            declared, unlogged = self._declared(session, run_id)
        except _Unjudged as reason:
            return {"waiting": sentence(str(reason))}
        _keep(self._shown, (session, caller, run_id), declared, 16)
        found = declared.audit
        warnings = (*found.warnings, *([UNLOGGED] if unlogged else []))
        verdict = page(
            "verdict.html.j2",
            audit=found,
            finished=self.folder.standing(run_id).finished,
            drawn=self.pictures.verdict(declared),
            warnings=warnings,
            run_id=run_id,
            downloads=OFFERED,
        )
        return {
            "parts": {"verdict": verdict, "about": page("about.html.j2", run=declared.run, audit=found)},
            "controls": page("controls.html.j2", **_controls(declared)),
        }

    def explored(self, session: str, run_id: str, moved: Moved, *, late: bool, turn: str, caller: str = "") -> Parts:
        """What the sliders show; `late` waits for the bounds that take a moment."""
        standing = self._readable(run_id)
        known = self._shown.get((session, caller, run_id)) if self.seen.may_see(session, standing) else None
        declared = self._declared(session, run_id)[0] if known is None else known  # a live run moves on by itself
        if not late:
            _keep(self._turns, (session, caller), _whole(turn), MOST_PAGES)
            return self._parts(declared, explore.quick(declared, moved))
        with self._slow.setdefault(run_id, Lock()):
            if self._turns.get((session, caller), 0) > _whole(turn):
                return {"stale": True}
            found = explore.late(declared, moved)
        return self._parts(declared, found)

    def _declared(self, session: str, run_id: str) -> tuple[Declared, bool]:
        """The declared audit, with a look; True where the look could not be logged."""
        standing = self._readable(run_id)
        if not self.seen.may_see(session, standing):
            raise InvalidInput("this run is not finished, and nobody asked for its results yet.")
        path = self.folder.path(run_id)
        try:
            declared = self.audits.of(path)
        except InvalidInput as reason:
            raise _Unjudged(str(reason)) from None
        return declared, not self.seen.look(session, run_id, declared.run.brief)

    def _readable(self, run_id: str) -> Standing:
        standing = self.folder.standing(run_id)
        if standing.trouble is not None:
            raise InvalidInput(standing.trouble)
        return standing

    def _parts(self, declared: Declared, found: Explored) -> Parts:
        shown = found.reading
        drawn, ruler = self.pictures.explored(declared, found)
        values = {
            "delta": f"{shown.settings.delta:g}",
            "level": percent(shown.settings.level),
            "percentile": _rule_text(declared, shown.judged.threshold),
            "method": found.label,
        }
        said = page(
            "explored.html.j2",
            seen=shown,
            by_percentile=explore.by_percentile(declared.audit),
            values=values,
            found=found,
            ruler=ruler,
        )
        return {
            "parts": {"said": said, **drawn},
            "values": values,
            "pending": found.pending,
            "explored": bool(found.moved),
        }

    # several runs, bare counts, dropped files

    def overlay(self, session: str, ids: list[str], query: Mapping[str, str]) -> Parts:
        return self.overlays.values(session, ids, query)

    def calculated(
        self, session: str, question: calculator.Question, *, late: bool, turn: str, caller: str = ""
    ) -> Parts:
        if late:
            with self._slow.setdefault("", Lock()):
                if self._turns.get((session, caller), 0) > _whole(turn):
                    return {"stale": True}
                result = calculator.intervals_now(question, late=True)
        else:
            _keep(self._turns, (session, caller), _whole(turn), MOST_PAGES)
            result = calculator.intervals_now(question, late=False)
        said = page(
            "calculated.html.j2",
            q=question,
            result=result,
            pending=not late,
            delta=f"{question.delta:g}",
            methods=METHODS,
            warnings=calculator.warnings(result),
        )
        drawn = calculator.pictures(question, result)
        return {"parts": {"said": said, **drawn}, "pending": not late}

    def scores(self, raw: bytes, name: str, query: Mapping[str, str]) -> Parts:
        """A dropped file of scores; it is not a run, and there is nothing to log."""
        with self._reading:
            return self._of_scores(raw, name, query)

    def _of_scores(self, raw: bytes, name: str, query: Mapping[str, str]) -> Parts:
        table = upload.scores_of(raw, name, query)
        settings: dict[str, Any] = {
            "delta": calculator.number("delta", query.get("delta") or calculator.EXAMPLE["delta"]),
            "level": calculator.number("level", query.get("level") or calculator.EXAMPLE["level"]),
        }
        if (query.get("claimed") or "").strip():
            settings |= {
                "claimed_eps": calculator.number("claimed", query["claimed"]),
                "claimed_delta": settings["delta"],
                "claimed_adjacency": table.adjacency,
            }
        if len(table.models) == 1:  # no other can choose the rule
            settings["rule"] = "split-pairs"
        found = audit(table, **settings)
        drawn = of_scores(found)
        return {"parts": {"dropped": page("dropped.html.j2", audit=found, name=name[-80:], drawn=drawn)}}


class _Unjudged(InvalidInput):
    """The run can be read, and not judged: often not yet."""


def _controls(declared: Declared) -> dict[str, Any]:
    """Where the sliders stand until they are moved, and how far they go."""
    settings, threshold = declared.audit.settings, declared.audit.judged.threshold
    method, power = declared.audit.judge.name, explore.power_shown(settings.delta)
    percentile = explore.percentile_shown(declared, threshold)
    return {
        "log_delta": (min(-12.0, math.floor(power)), max(-1.0, power), 0.1, power),
        "level": (min(0.5, settings.level), max(0.995, settings.level), _step(settings.level), settings.level),
        "percentile": (explore.least_percentile(declared), max(99.0, percentile), 0.5, percentile),
        "by_percentile": explore.by_percentile(declared.audit),
        "method": method,
        "methods": list(dict.fromkeys((declared.audit.judge, *(METHODS[name] for name in explore.OFFERED)))),
        "values": {
            "delta": f"{settings.delta:g}",
            "level": percent(settings.level),
            "percentile": _rule_text(declared, threshold),
        },
        "charts": charts_of(Subject.of(declared.audit)),
    }


def _step(level: float) -> float | str:
    """Of the slider, so that it can stand where the plan has it."""
    for step in (0.005, 0.001, 0.0001):
        if math.isclose((level - 0.5) / step, round((level - 0.5) / step), abs_tol=1e-6):
            return step
    return "any"


def _keep(kept: OrderedDict[Key, Kept], key: Key, value: Kept, most: int) -> None:
    """The last ones alone."""
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > most:
        kept.popitem(last=False)


def _rule_text(declared: Declared, threshold: float) -> str:
    if explore.by_percentile(declared.audit):
        return f"{explore.percentile_shown(declared, threshold):.4g}"
    return f"{threshold:.4g}"


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
