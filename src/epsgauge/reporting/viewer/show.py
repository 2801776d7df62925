"""What the pages show: fragments of HTML and pictures, by name, for a session."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import Any

from epsgauge.auditing.audit import audit
from epsgauge.errors import EpsgaugeError, InvalidInput
from epsgauge.reporting import words
from epsgauge.reporting.viewer import calculator, explore, upload
from epsgauge.reporting.viewer.audits import Audits, Declared
from epsgauge.reporting.viewer.explore import Explored, Moved
from epsgauge.reporting.viewer.overlays import Overlays
from epsgauge.reporting.viewer.pictures import Pictures, of_scores
from epsgauge.reporting.viewer.render import level_text, page
from epsgauge.reporting.viewer.runs import Folder, Standing
from epsgauge.reporting.viewer.seen import Seen
from epsgauge.stats.methods import METHODS

Parts = dict[str, Any]
UNLOGGED = "This look could not be logged: the folder of the run cannot be written."


class Show:
    """Everything that a page can ask for about the runs of one folder."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.seen = Seen()
        self.audits = Audits()
        self.pictures = Pictures()
        self.overlays = Overlays(folder, self.seen)
        self._shown: dict[tuple[str, str], Declared] = {}  # what the sliders of a page are about
        self._turns: dict[tuple[str, str], int] = {}
        self._slow = Lock()

    # the list

    def rows(self, session: str) -> tuple[str, list[Standing]]:
        """A row a run; of finished runs that were looked at the verdict too."""
        standings = [self.folder.standing(run_id) for run_id in self.folder.ids()]
        return page("rows.html.j2", standings=standings), standings

    def verdict_cell(self, session: str, run_id: str) -> str:
        """The verdict of a finished run, in a word; to show it is a look."""
        standing = self.folder.standing(run_id)
        if not standing.finished:
            raise InvalidInput("the verdict of a run that is not finished is shown on its own page.")
        try:
            found = self.audits.of(self.folder.path(run_id))
        except EpsgaugeError as error:
            return page("verdict_cell.html.j2", audit=None, trouble=str(error))
        self.seen.look(session, run_id, found.run)
        return page("verdict_cell.html.j2", audit=found.audit, trouble=None)

    # a run

    def progress(self, session: str, run_id: str) -> Parts:
        """How far it is, without results; `step` changes when there is enough to look again."""
        standing = self._readable(run_id)
        status = self.folder.open(run_id).status()
        every = 1 if standing.finished else max(1, standing.n_models // 100)
        return {
            "parts": {"progress": page("progress.html.j2", s=standing, status=status)},
            "state": standing.state,
            "step": f"{standing.state == 'complete'} {standing.n_done // every}",
            "maySee": self.seen.may_see(session, standing),
        }

    def results(self, session: str, run_id: str) -> Parts:
        """The declared verdict, its ruler and the words of the run. A look, which is logged."""
        declared, unlogged = self._declared(session, run_id)
        self._shown[session, run_id] = declared
        found = declared.audit
        warnings = (*found.warnings, *([UNLOGGED] if unlogged else []))
        verdict = page(
            "verdict.html.j2",
            audit=found,
            finished=self.folder.standing(run_id).finished,
            ruler=self.pictures.verdict(declared),
            words=words.ruler(found),
            warnings=warnings,
            method=METHODS[found.verdict.method],
        )
        return {
            "parts": {"verdict": verdict, "about": page("about.html.j2", run=declared.run, audit=found)},
            "controls": page("controls.html.j2", **_controls(declared)),
        }

    def explored(self, session: str, run_id: str, moved: Moved, *, late: bool, turn: str) -> Parts:
        """What the sliders show; `late` waits for the bounds that take a moment."""
        standing = self._readable(run_id)
        known = self._shown.get((session, run_id)) if self.seen.may_see(session, standing) else None
        declared = self._declared(session, run_id)[0] if known is None else known  # a live run moves on by itself
        if not late:
            self._turns[session, run_id] = _whole(turn)
            return self._parts(declared, explore.quick(declared, moved))
        with self._slow:
            if self._turns.get((session, run_id), 0) > _whole(turn):
                return {"stale": True}
            found = explore.late(declared, moved)
        return self._parts(declared, found)

    def _declared(self, session: str, run_id: str) -> tuple[Declared, bool]:
        """The declared audit, with a look; True where the look could not be logged."""
        standing = self._readable(run_id)
        if not self.seen.may_see(session, standing):
            raise InvalidInput("this run is not finished, and nobody asked for its results yet.")
        declared = self.audits.of(self.folder.path(run_id))
        return declared, not self.seen.look(session, run_id, declared.run)

    def _readable(self, run_id: str) -> Standing:
        standing = self.folder.standing(run_id)
        if standing.trouble is not None:
            raise InvalidInput(standing.trouble)
        return standing

    def _parts(self, declared: Declared, found: Explored) -> Parts:
        shown = found.audit
        drawn, ruler = self.pictures.explored(declared, found)
        values = {
            "delta": f"{shown.settings.delta:g}",
            "level": level_text(shown.settings.level),
            "percentile": _rule_text(declared, shown.judged.threshold),
            "method": METHODS[shown.verdict.method].label,
        }
        said = page("explored.html.j2", audit=shown, values=values, found=found, ruler=ruler)
        return {
            "parts": {"said": said, **{f"fig-{name}": svg for name, svg in drawn.items()}},
            "values": values,
            "pending": found.pending,
            "explored": bool(found.moved),
        }

    # several runs, bare counts, dropped files

    def overlay(self, session: str, ids: list[str], query: Mapping[str, str]) -> Parts:
        return self.overlays.values(session, ids, query)

    def calculated(self, session: str, question: calculator.Question, *, late: bool, turn: str) -> Parts:
        if late:
            with self._slow:
                if self._turns.get((session, "calculator"), 0) > _whole(turn):
                    return {"stale": True}
                result = calculator.intervals_now(question, late=True)
        else:
            self._turns[session, "calculator"] = _whole(turn)
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
        return {"parts": {"said": said, **{f"fig-{k}": v for k, v in drawn.items()}}, "pending": not late}

    def scores(self, raw: bytes, name: str, query: Mapping[str, str]) -> Parts:
        """A dropped file of scores; it is not a run, and there is nothing to log."""
        table = upload.scores_of(raw, name, query.get("adjacency"))
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
        found = audit(table, **settings)
        drawn = of_scores(found, table)
        return {"parts": {"dropped": page("dropped.html.j2", audit=found, name=name[-80:], drawn=drawn)}}


def _controls(declared: Declared) -> dict[str, Any]:
    """Where the sliders stand at first."""
    settings, threshold = declared.audit.settings, declared.audit.judged.threshold
    method = declared.audit.verdict.method
    return {
        "delta": settings.delta,
        "level": settings.level,
        "percentile": explore.percentile_shown(declared, threshold),
        "least": explore.least_percentile(declared),
        "by_percentile": settings.attack == "percentile",
        "method": method,
        "methods": [METHODS[name] for name in dict.fromkeys((method, *explore.OFFERED))],
        "values": {
            "delta": f"{settings.delta:g}",
            "level": level_text(settings.level),
            "percentile": _rule_text(declared, threshold),
        },
        "several": declared.audit.pairs_per_model > 1,
        "words": {
            "density": words.density(declared.audit.posterior, None),
            "bars": words.bars(settings.level),
            "contours": words.region(settings.level),
            "histogram": words.histogram(declared.audit),
            "roc": words.roc(declared.audit),
            "percentiles": words.percentiles(declared.audit),
            "narrowing": words.narrowing(1, None),
            "dependence": words.dependence(declared.audit),
        },
    }


def _rule_text(declared: Declared, threshold: float) -> str:
    if declared.audit.settings.attack == "percentile":
        return f"{explore.percentile_shown(declared, threshold):.4g}"
    return f"{threshold:.4g}"


def _whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
