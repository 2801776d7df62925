"""Audits of runs as their plans declare them, kept for as long as their results do not change."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from epsgauge.auditing.audit import Audit, audit_run
from epsgauge.games.signals import Signals
from epsgauge.reporting.viewer.runs import Stamp, results_key, stamp_of
from epsgauge.runner.view import Run, results_of

KEPT = 8


@dataclass(frozen=True, eq=False)
class Declared:
    """A run, the audit that its plan declares, and what was seen of the models that chose its rule."""

    key: tuple[Any, ...]  # another one as soon as the results change
    run: Run
    signals: Signals
    audit: Audit


class Audits:
    """The last few audits; no look is logged here, but by whoever shows one."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[Any, ...], Declared] = OrderedDict()
        self._keys: dict[Path, tuple[Stamp, tuple[Any, ...]]] = {}  # of stores as they were last read
        self._lock = Lock()

    def of(self, path: Path) -> Declared:
        with self._lock:  # two pages that want the same audit wait for one
            stamp = stamp_of(path)
            known = self._keys.get(path)
            if known is None or known[0] != stamp or known[1] not in self._kept:
                run = Run.open(path)
                known = self._keys[path] = stamp, results_key(run)
                if known[1] not in self._kept:
                    self._keep(known[1], run)
            self._kept.move_to_end(known[1])
            return self._kept[known[1]]

    def _keep(self, key: tuple[Any, ...], run: Run) -> None:
        audit = audit_run(run)
        few = _of_fit(audit.signals or results_of(run).signals, audit)
        self._kept[key] = Declared(key, run, few, replace(audit, signals=None))
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)


def _of_fit(signals: Signals, audit: Audit) -> Signals:
    """All that pictures need beside the judged scores; at least one model, for the number of reference losses."""
    chose = np.isin(signals.models, audit.judged.fit_models)
    return signals[chose if chose.any() else signals.models == signals.models[0]]
