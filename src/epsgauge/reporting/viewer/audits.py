"""Audits of runs as their plans declare them, kept for as long as their results do not change."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from epsgauge.auditing.audit import Audit, audit_run
from epsgauge.games.signals import Signals
from epsgauge.reporting.viewer.standing import Stamp, content_of, stamp_of
from epsgauge.runner.view import Run, results_of

KEPT = 8


@dataclass(frozen=True, eq=False)
class Declared:
    """A run, the audit that its plan declares, and what was seen of the models that chose its rule."""

    key: tuple[Any, ...]  # another one as soon as the results change
    run: Run
    signals: Signals
    audit: Audit


Judge = Callable[[tuple[Any, ...], Path], Declared]


class Audits:
    """The last few audits; no look is logged here, but by whoever shows one."""

    def __init__(self, judge: Judge | None = None) -> None:
        self._judge = judged if judge is None else judge
        self._kept: OrderedDict[tuple[Any, ...], Declared] = OrderedDict()
        self._contents: dict[Path, tuple[Stamp, str]] = {}  # of stores as they were last read
        self._turns: dict[Path, Lock] = {}
        self._lock = Lock()

    def of(self, path: Path) -> Declared:
        with self._lock:
            turn = self._turns.setdefault(path, Lock())
        with turn:  # two pages that want the same audit wait for one; other runs do not wait
            key = (path, self._content(path))
            with self._lock:
                known = self._kept.get(key)
                if known is not None:
                    self._kept.move_to_end(key)
                    return known
            made = self._judge(key, path)
            with self._lock:
                self._kept[key] = made
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            return made

    def _content(self, path: Path) -> str:
        stamp, known = stamp_of(path), self._contents.get(path)
        if known is None or known[0] != stamp:
            known = self._contents[path] = stamp, content_of(path)[0]
        return known[1]


def judged(key: tuple[Any, ...], path: Path) -> Declared:
    """The audit of a run, here and now."""
    run = Run.open(path)
    audit = audit_run(run)
    few = _of_fit(audit.signals or results_of(run).signals, audit)
    return Declared(key, run, few, replace(audit, signals=None))


def _of_fit(signals: Signals, audit: Audit) -> Signals:
    """All that pictures need beside the judged scores; at least one model, for the number of reference losses."""
    chose = np.isin(signals.models, audit.judged.fit_models)
    return signals[chose if chose.any() else signals.models == signals.models[0]]
