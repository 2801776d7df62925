"""Page: what a report says in words and tables, whatever it is of and however it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from epsgauge.auditing.decision import Decision
from epsgauge.methods.units import Units
from epsgauge.numbers import short
from epsgauge.probing.result import Probe
from epsgauge.stats.tally import Tally


@dataclass(frozen=True)
class Answered:
    """The answer in one sentence, which may begin with a ruling and a colon, and what belongs to it."""

    kind: str
    head: str
    headline: str
    rest: str = ""

    @property
    def sentence(self) -> str:
        return f"{self.head}: {self.headline}" if self.head else self.headline


@dataclass(frozen=True)
class Number:
    """One of the few numbers that stand beside the answer."""

    label: str
    value: str
    note: str


@dataclass(frozen=True)
class Line:
    """One method: its bound or interval, what is left of its promise, the letters of what it assumes."""

    label: str
    text: str
    level: str
    promise: str
    assumes: str
    note: str


@dataclass(frozen=True)
class Methods:
    """Every method's bound or interval, with what the words and letters in it mean."""

    lines: tuple[Line, ...]
    meanings: tuple[tuple[str, str], ...]
    assumptions: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Counted:
    """Four counts and both error rates, and what they are of."""

    title: str
    tally: Tally

    @property
    def fnr(self) -> str:
        return short(float(self.tally.fnr)) if self.tally.n_positive else "–"

    @property
    def fpr(self) -> str:
        return short(float(self.tally.fpr)) if self.tally.n_negative else "–"


@dataclass(frozen=True)
class Beside:
    """One run of a comparison."""

    label: str
    cells: tuple[str, ...]
    answer: Answered


@dataclass(frozen=True)
class Grouped:
    """Groups of points: a row each, and what they show together."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    said: tuple[str, ...]


@dataclass(frozen=True)
class Page:
    """A report but for its pictures."""

    title: str
    name: str
    about: tuple[str, ...]
    answer: Answered
    numbers: tuple[Number, ...]
    methods: Methods | None
    tallies: tuple[Counted, ...]
    warnings: tuple[str, ...]
    ran: dict[str, Any]
    settings: dict[str, Any] | None = None  # of an audit without a plan
    claim: str = ""  # that was judged
    facts: tuple[tuple[str, str], ...] = ()
    columns: tuple[str, ...] = ()  # of the table of a comparison
    beside: tuple[Beside, ...] = ()
    probe: Probe | None = None
    decision: Decision | None = None  # what an audit means, and what to do next
    cohorts: Grouped | None = None
    units: Units = "models"  # what is judged
