"""Audits of runs as their plans declare them, kept for as long as the stores do not change."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

import numpy as np

from epsgauge.auditing.audit import Audit, audit_run
from epsgauge.games.signals import Signals
from epsgauge.reporting.viewer.runs import Stamp, stamp_of
from epsgauge.runner.view import Run

KEPT = 8


@dataclass(frozen=True, eq=False)
class Declared:
    """A run, the audit that its plan declares, and what was seen of the models that chose its rule."""

    key: tuple[str, Stamp]  # another one as soon as the store changes
    run: Run
    signals: Signals
    audit: Audit


class Audits:
    """The last few audits; no look is logged here, but by whoever shows one."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, Stamp], Declared] = OrderedDict()
        self._lock = Lock()

    def of(self, path: Path) -> Declared:
        with self._lock:  # two pages that want the same audit wait for one
            key = (str(path), stamp_of(path))
            if key not in self._kept:
                run = Run.open(path)
                audit = audit_run(run)
                few = _of_fit(audit.signals or run.signals(), audit)
                self._kept[key] = Declared(key, run, few, replace(audit, signals=None))
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(key)
            return self._kept[key]


def _of_fit(signals: Signals, audit: Audit) -> Signals:
    """All that pictures need beside the judged scores; at least one model, for the number of reference losses."""
    chose = np.isin(signals.models, audit.judged.fit_models)
    return signals[chose if chose.any() else signals.models == signals.models[0]]
