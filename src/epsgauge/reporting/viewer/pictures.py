"""The charts of the viewer, each drawn again only where what it shows has changed."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import replace
from threading import Lock

from markupsafe import Markup

from epsgauge.auditing.audit import Audit
from epsgauge.figures.chart import Chart, Drawn
from epsgauge.figures.charts import CHARTS, charts_of
from epsgauge.figures.ruler import Ruler
from epsgauge.figures.subject import Subject
from epsgauge.reporting.viewer.audits import Declared
from epsgauge.reporting.viewer.explore import Explored
from epsgauge.reporting.viewer.render import page

KEPT = 400
DENSITY_POINTS = 90  # fewer than on paper: they must come quickly


class Pictures:
    """Draws the charts of audits, and keeps the last ones."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Drawn] = OrderedDict()
        self._lock = Lock()

    def verdict(self, declared: Declared) -> Drawn:
        """The ruler of the declared verdict."""
        return self._drawn((declared.key, "verdict"), CHARTS["ruler"], Subject.of(declared.audit), "declared-")

    def explored(self, declared: Declared, found: Explored) -> tuple[dict[str, str], Ruler]:
        """Every chart of what the sliders show and the words beside it, by place, and the numbers of its ruler."""
        subject = replace(
            Subject.of(found.reading),
            signals=declared.signals,
            by_hand=found.moved.percentile is not None,
            points=DENSITY_POINTS,
        )
        at: dict[str, Hashable] = {
            "threshold": (found.reading.judged.threshold, subject.by_hand),
            "delta": (found.reading.settings.delta, bool(found.moved)),
            "level": subject.level,
            "bound": (found.label, found.pending),
        }
        drawn = {
            chart.name: self._drawn((declared.key, chart.name, *(at[name] for name in chart.follows)), chart, subject)
            for chart in charts_of(subject)
        }
        parts: dict[str, str] = {}
        for each in drawn.values():
            parts |= parts_of(each)
        return parts, drawn["ruler"].shown

    def _drawn(self, key: Hashable, chart: Chart, subject: Subject, prefix: str = "") -> Drawn:
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        out = chart.drawn(subject, prefix=prefix)
        with self._lock:
            self._kept[key] = out
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        return out


def of_scores(audit: Audit) -> list[Drawn]:
    """Of a table of scores, which has no run."""
    subject = replace(Subject.of(audit), points=DENSITY_POINTS)
    return [chart.drawn(subject, prefix="dropped-") for chart in charts_of(subject)]


def parts_of(drawn: Drawn) -> dict[str, str]:
    """The pictures and the words of one chart, by place on the page; the ruler stands below numbers that explain it."""
    names = [drawn.chart.name, *([drawn.chart.also.name] if drawn.chart.also else [])]
    if drawn.absent:
        return {f"fig-{name}": page("absent.html.j2", reason=drawn.absent) for name in names}
    out: dict[str, str] = {f"fig-{name}": Markup(svg) for name, svg in zip(names, drawn.svgs, strict=True)}
    if drawn.chart.name == "ruler":
        return out
    return {**out, f"words-{drawn.chart.name}": page("words.html.j2", words=drawn.words)}
