"""The calculator: four counts in, posterior out. The address carries the counts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from epsgauge.errors import InvalidInput
from epsgauge.figures.charts import CHARTS, charts_of
from epsgauge.figures.subject import PENDING, Bar, Subject
from epsgauge.methods.cautions import cautions_of
from epsgauge.methods.intervals import Intervals, intervals_of
from epsgauge.methods.table import QUICK, SHARPEST
from epsgauge.reporting.viewer.pictures import parts_of
from epsgauge.stats import checks
from epsgauge.stats.posterior import estimate
from epsgauge.stats.tally import CELLS, Tally

# An attack of the paper, so that the page shows something before a count is typed.
EXAMPLE = {"tp": "31", "tn": "996", "fp": "5", "fn": "968", "delta": "1e-5", "level": "0.9", "claimed": ""}
MOST = 10**9
SHOWN = [chart for chart in CHARTS.values() if "counts" in chart.of]


@dataclass(frozen=True)
class Question:
    """What was typed."""

    tally: Tally
    delta: float
    level: float
    claimed: float | None

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> Question:
        cells = {name: _whole(name, query.get(name, "")) for name in CELLS}
        level = number("level", query.get("level") or EXAMPLE["level"])
        claimed = (query.get("claimed") or "").strip()
        return cls(
            Tally(**cells),
            float(checks.delta(number("delta", query.get("delta") or EXAMPLE["delta"]))),
            checks.level(level),
            float(checks.eps(number("claimed", claimed), "claimed")) if claimed else None,
        )


def typed(query: Mapping[str, str]) -> dict[str, str]:
    """What the fields of the page hold: what its address carries, else the example."""
    if not any(name in query for name in CELLS):
        return dict(EXAMPLE)
    return {name: query.get(name, "" if name in CELLS else value)[:40] for name, value in EXAMPLE.items()}


def intervals_now(question: Question, *, late: bool) -> Intervals:
    """Every method's interval; the exact one only where there is time for it."""
    posterior = estimate(question.tally, delta=question.delta)
    return intervals_of(posterior, level=question.level, methods=(*QUICK, SHARPEST.name) if late else QUICK)


def pictures(question: Question, result: Intervals) -> dict[str, str]:
    """The charts of the counts, by place; with room for the exact bound while it is computed."""
    subject = Subject.of(result, claimed=question.claimed)
    if not any(bar.method == SHARPEST.name for bar in subject.bars):
        waits = Bar(SHARPEST.name, f"{SHARPEST.label}, pending", SHARPEST.promise, 0.0, math.inf, note=PENDING)
        subject = replace(subject, bars=(*subject.bars, waits))
    parts: dict[str, str] = {}
    for chart in charts_of(subject):
        parts |= parts_of(chart.drawn(subject))
    return parts


def warnings(result: Intervals) -> tuple[str, ...]:
    return tuple(cautions_of(result))


def _whole(name: str, text: str) -> int:
    cleaned = text.strip()
    digits = cleaned.lstrip("0")[: len(str(MOST)) + 1]  # Python reads no number of thousands of digits
    if not (cleaned.isascii() and cleaned.isdigit()) or int(digits or 0) > MOST:
        raise InvalidInput(f"{name.upper()} must be a whole number from 0 to {MOST:,}, but got {text[:40]!r}.")
    return int(digits or 0)


def number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"{name} must be a number, but got {text[:40]!r}.") from None
