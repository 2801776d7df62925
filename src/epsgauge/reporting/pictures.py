"""The charts of a report, section by section."""

from __future__ import annotations

from epsgauge.auditing.audit import Audit
from epsgauge.auditing.cohorts import Cohorts
from epsgauge.auditing.compare import Comparison
from epsgauge.figures.chart import Drawn
from epsgauge.figures.charts import CHARTS, charts_of
from epsgauge.figures.ladder import pipelines_of
from epsgauge.figures.subject import Subject
from epsgauge.reporting.estimate import Answer

Sections = dict[str, list[Drawn]]


def of_subject(source: Audit | Answer, cohorts: Cohorts | None = None) -> Sections:
    """Every chart that an audit or four counts can show, and that of its groups."""
    subject = source.subject if isinstance(source, Answer) else Subject.of(source)
    out: Sections = {}
    for chart in charts_of(subject):
        out.setdefault(chart.section, []).append(chart.drawn(subject))
    return out if cohorts is None else {**out, "cohorts": [CHARTS["groups"].drawn(cohorts)]}


def of_comparison(found: Comparison) -> Sections:
    """What each adversary shows, where they differ; the distribution functions, then each run's ruler."""
    rulers = [CHARTS["ruler"].drawn(Subject.of(run.audit), prefix=f"run{i}-") for i, run in enumerate(found.runs)]
    out: Sections = {"verdict": [CHARTS["ladder"].drawn(pipelines_of(found))]} if found.of_adversaries else {}
    return {**out, "comparison": [CHARTS["cdfs"].drawn(found)], "verdicts": rulers}
